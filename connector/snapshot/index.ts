/**
 * The snapshot: a DuckDB file with one table for each stream, the saved states, and a row for each load.
 * In: messages of a run (`createSnapshotWriter`). Out: states for the next run, results of `verify`, differences,
 * hashes and Parquet files. Knows nothing about the service; what it compares with the service comes in as
 * `ServiceReviews`.
 */
export { compareSides, diffSnapshots, hashContent, isIdentical, type Side, type StreamDifference } from './diff'
export {
  exportParquet,
  exportQuery,
  listExportFiles,
  type ParquetPartition,
  partitionFormats,
  readParquetRows,
} from './export-parquet'
export {
  addRemoved,
  cleanExports,
  describeRequest,
  type ForgetReceipt,
  type ForgetRequest,
  type Forgotten,
  fillTombstones,
  forgetPersons,
  listUnsearched,
  type Removed,
  type RemovedLakeFiles,
  sortRemoved,
  tombstones,
} from './forget'
export { chooseStates, type ReceivedRangeReader, readReceivedRange } from './load/earlier-runs'
export type { LoadSummary } from './load/stream-load'
export { toLoadOptions } from './load/target'
export { createSnapshotWriter, type SnapshotWriter } from './load/writer'
export { explainQueryError, lockDatabase, typeNestedMembers } from './query'
export {
  askQuestion,
  type FilterValues,
  findQuestion,
  type Question,
  type QuestionFilter,
  questionFilters,
  questions,
  suggestQuestion,
} from './questions'
export { createNamedViews, explainUnknownRegions, findUnknownRegions } from './regions'
export { readRegions } from './regions-file'
export { compactSnapshot, copyTables, rewriteFile } from './rewrite'
export { readScales } from './scales'
export { claimSnapshot, type OtherService, requireService } from './store/claim'
export { type DuckDBValue, type QueryResult, quoteIdentifier, type Snapshot } from './store/database'
export { findDuckdb } from './store/duckdb'
export {
  damagedFileFailure,
  databaseWriteFailure,
  explainWriteError,
  isDiskFull,
  outputFullFailure,
} from './store/failures'
export { closeSnapshot, findPathProblem, openSnapshot, type SnapshotAccess, type SnapshotOptions } from './store/file'
export { readForgotten } from './store/forgotten'
export { importState } from './store/import-state'
export { isLakePath } from './store/lake-access'
export { chooseMemoryLimit, isOutOfMemory, parseMemorySize } from './store/memory'
export { listStateTexts, readSnapshotState } from './store/metadata'
export { defaultModelVariables, type ModelTables, type Region } from './store/models'
export { encodeJsonValue, encodeTextValue } from './store/values'
export { checkTimeZone, createModelViews, setReportingTimeZone } from './store/views'
export type { CheckResult } from './verify/check'
export { readSnapshotStreams, type SnapshotStream } from './verify/checked-file'
export { planRepair } from './verify/repair'
export { compareReviews, type NextRead, type ServiceReview, type ServiceReviews } from './verify/service'
export type { FindStateProblem } from './verify/states'
export { countChecks, type OnStep, verifySnapshot } from './verify/verify'
