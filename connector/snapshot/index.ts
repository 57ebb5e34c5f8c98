/**
 * The snapshot: a DuckDB file with one table for each stream, the saved states, and a row for each load. Messages of a run go in
 * (`createSnapshotWriter`); out come states for the next run, the results of `verify`, differences, hashes, Parquet files and the
 * report. Knows nothing of the service: what it compares with the service comes in as a `ServiceReviews`, or, for the SQL that audits a
 * table of a warehouse (`audit/`), as `ServiceVersions`,
 * `ServiceFeedback` or `ServiceDimensions`.
 */
export {
  type AuditAnswer,
  decodeAnswer,
  type ReviewDifference,
  summarizeAnswer,
} from './audit/answer'
export {
  type AuditedContent,
  type AuditedTable,
  clockZone,
  dialectNames,
  idTypes,
  isTableName,
  loaderNames,
  timeTypes,
  toAuditedTable,
} from './audit/audited-table'
export {
  type AuditedLoad,
  checkStatementSize,
  deleteStatement,
  type Expected,
  formatSeed,
  type ServiceVersion,
  type ServiceVersions,
  useExpected,
} from './audit/comparison'
export { type ContentDigest, chooseContent, createContentDigest, fieldName } from './audit/content'
export {
  checkDimensionStatementSize,
  type DimensionDifference,
  deleteDimensionStatement,
  dimensionStatement,
  readDimensions,
  type ServiceDimensions,
} from './audit/dimension-audit'
export {
  checkFeedbackStatementSize,
  type ExpectedFeedback,
  type ServiceFeedback,
  type ServiceFeedbackRow,
  useExpectedFeedback,
} from './audit/entity-comparison'
export {
  type AuditWindow,
  auditWindows,
  deleteFeedbackStatement,
  type FeedbackDifference,
  feedbackBucketStatement,
  feedbackRowStatement,
  isFeedbackBucket,
} from './audit/entity-statement'
export { bucketStatement, reviewStatement } from './audit/statement'
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
export { chooseStates, type ReceivedRangeReader, readReceivedRange, toLoadOptions } from './load/earlier-runs'
export type { LoadSummary } from './load/stream-load'
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
export { createNamedViews, explainUnknownRegions, readRegions } from './regions'
export { type FigureGroup, type GroupSection, metrics } from './report/comparisons'
export {
  type Figures,
  formatChange,
  formatMetricValue,
  formatMinute,
  formatMonth,
  type Metric,
  shortenText,
} from './report/html'
export { explainAlert, nameOwner, namePlace, type WorkItem } from './report/open-work'
export { explainMonth, listGroupSections, renderReport } from './report/page'
export { type Report, readReport } from './report/report'
export { compactSnapshot, copyTables, rewriteFile } from './rewrite'
export { type DuckDBValue, type QueryResult, quoteIdentifier, type Snapshot } from './store/database'
export { findDuckdb } from './store/duckdb'
export {
  chooseMemoryLimit,
  damagedFileFailure,
  databaseWriteFailure,
  explainWriteError,
  isDiskFull,
  isOutOfMemory,
  outputFullFailure,
  parseMemorySize,
} from './store/failures'
export { closeSnapshot, findPathProblem, openSnapshot, type SnapshotAccess, type SnapshotOptions } from './store/file'
export { readForgotten } from './store/forgotten'
export { isLakePath } from './store/lake-access'
export {
  claimSnapshot,
  importState,
  listStateTexts,
  type OtherService,
  readSnapshotState,
  requireService,
} from './store/metadata'
export {
  defaultModelVariables,
  type ModelOptions,
  type ModelVariables,
  type Region,
} from './store/models'
export { encodeJsonValue, encodeTextValue } from './store/values'
export { checkTimeZone, createModelViews, setReportingTimeZone } from './store/views'
export type { CheckResult } from './verify/check'
export { compareReviews, type NextRead, type ServiceReview, type ServiceReviews } from './verify/service'
export { type CheckCounts, countChecks, planRepair, verifySnapshot } from './verify/verify'
