/**
 * A DuckDB file: opening it, running SQL on it, the values it returns, and the names of its tables. Snapshots, lakes
 * and the sandbox store their data in one. Takes a path; returns a `Database` whose methods reject with DuckDB's own
 * errors, or a `Failure` that explains to the user why the file does not open.
 */
export {
  appendBatchRows,
  type Database,
  type DatabaseOptions,
  instantSql,
  type LakeMetadata,
  openDatabase,
  quoteIdentifier,
  quoteLiteral,
  type Snapshot,
} from './database'
export { loadDuckdb } from './duckdb'
export { databaseOpenFailure } from './failures'
export {
  checkFormat,
  closeSnapshot,
  findAddressProblem,
  findPathProblem,
  listTableNames,
  openWaiting,
  prepareWith,
  type SnapshotAccess,
  type SnapshotOptions,
  writerMemory,
} from './file'
export {
  addFurtherIds,
  cleanStatesSql,
  forgottenRowsSql,
  forgottenTableName,
  forgottenTableSql,
  hasForgotten,
  isSearched,
  listStoredTables,
  type StoredTable,
  stateTableNames,
  toPersonRows,
} from './forgotten'
export { dataFilePattern } from './lake-access'
export { chooseMemoryLimit, isOutOfMemory, listMemorySteps } from './memory'
export {
  cursorSql,
  dropOwnViews,
  findReadTime,
  firstFormat,
  readReportingTimeZone,
  readSnapshotState,
  regionsTableName,
  scalesTableName,
  settledName,
  snapshotFormat,
  viewsHashName,
} from './metadata'
export { defaultModelVariables, defineVersions, type Region } from './models'
export {
  airbyteColumns,
  type Column,
  chooseColumnType,
  columnsFromSchema,
  deletedAtSql,
  deletionsTableName,
  findReviewReference,
  hasTombstonesSql,
  historyTableName,
  isChildTable,
  listMembers,
  listStreamTables,
  loadColumnName,
  readTable,
  reviewsTableName,
  streamOfTable,
  type Table,
  versionsTableName,
} from './tables'
export type { CellValue, RowValues } from './values'
export { cellToNumber, cellToNumberOrNull, cellToTextOrNull, cellToTimeOrNull } from './values'
export { createModelViews, createTemporaryViews } from './views'
