/**
 * The test helper of the kit: runs a source as a platform does, in a process of its own against a server of yours, and
 * checks every message that it prints. It needs no test framework: what is wrong is thrown. package.json exports it as
 * `feedback-connector/testing`.
 */
export { createSourceTest, type SourceRun, type SourceTest } from './source-test'
