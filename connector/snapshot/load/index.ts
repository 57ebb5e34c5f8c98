/**
 * What a writer of messages shares with the different stores for its rows: a `Loader` opens streams and commits what
 * was received. A file merges rows into its tables; the lake, another room, appends them. Typed rows are SQL with the
 * columns of a table, those of Airbyte and the place of each record in its stream.
 */
export { type Change, describeCommit, forgetArrivals, loadsOf, type Received } from './changes'
export { findNewColumns } from './commit'
export { chooseStates } from './earlier-runs'
export { addColumns, mapToColumns, refuseOtherTypes, requireKey, requireStream } from './evolve'
export { type CommitLimits, fileLimits, type Loader } from './loader'
export { stageShared } from './shared'
export { createLoad, type Load } from './stream-load'
export { chooseLoadTarget, type LoadOptions, type LoadTarget } from './target'
export { type TypedRows, typeRows } from './typed-rows'
