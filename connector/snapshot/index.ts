/**
 * The snapshot: a DuckDB file with one table for each stream, the saved states, and a row for each load. Messages of a run go in
 * (`createSnapshotWriter`); out come states for the next run, the results of `verify`, differences, hashes, Parquet files and the
 * report. Knows nothing of the service: what it compares with the service comes in as a `ServiceReviews`.
 */
export { diffSnapshots, hashContent, isIdentical, type StreamDifference } from './diff'
export { exportParquet, type ParquetPartition, partitionFormats } from './export-parquet'
export { type ReceivedRangeReader, readReceivedRange, toLoadOptions } from './load/stream-load'
export { createSnapshotWriter, type LoadSummary } from './load/writer'
export { readReport, renderReport } from './report/report'
export { type DuckDBValue, damagedFileFailure, type Snapshot } from './store/database'
export {
  claimSnapshot,
  importState,
  listStateTexts,
  type OtherService,
  readSnapshotState,
  requireService,
} from './store/metadata'
export { closeSnapshot, type FileWait, openSnapshot, openSnapshotWithin, type SnapshotAccess } from './store/open'
export { encodeJsonValue, encodeTextValue } from './store/values'
export { setReportingTimeZone } from './store/views'
export type { CheckResult } from './verify/check'
export { compareReviews, type NextRead, planRepair, type ServiceReview, type ServiceReviews } from './verify/service'
export { type CheckCounts, countChecks, verifySnapshot } from './verify/verify'
