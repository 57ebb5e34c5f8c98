/**
 * The test helper of the kit. It runs a source as a platform does, in its own process against your server, and checks
 * every message that it prints. It needs no test framework: problems are thrown as an error. package.json exports it as
 * `feedback-connector/testing`.
 */
export { createSourceTest, type SourceRun, type SourceTest } from './source-test'
