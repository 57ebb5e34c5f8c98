/**
 * What a writer of messages shares with whatever keeps its rows: a `Loader` opens streams and commits what was
 * received. A file merges rows into its tables; the lake, another room, appends them. Typed rows are SQL of the
 * columns of a table, those of Airbyte and the place of each record in its stream.
 */
export { chooseLoadTarget, chooseStates, type LoadOptions, type LoadTarget } from './earlier-runs'
export { evolveTable, findColumn, findUndeclaredColumns, mapToColumns, rejectStream } from './evolve'
export { type TypedRows, typeRows } from './insert'
export type { Loader } from './loader'
export {
  type Change,
  type CommitLimits,
  createLoad,
  describeChanges,
  fileLimits,
  type Load,
} from './stream-load'
