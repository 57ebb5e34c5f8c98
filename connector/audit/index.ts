/**
 * Audits: SQL that holds a table of a warehouse against the service. In: what the service has of a stream (`ServiceVersions`) and how the
 * table is laid down. Out: a statement for the warehouse. Knows neither the service nor the warehouse, and keeps no text of a record.
 */
export {
  type DialectName,
  dialectNames,
  type IdType,
  idTypes,
  maxStatementBytes,
  type TimeType,
  timeTypes,
} from './dialect'
export { type Difference, decodeDifferences, deleteStatement } from './differences'
export { type Expected, type ServiceVersion, type ServiceVersions, useExpected } from './expected'
export { type AuditedTable, bucketStatement, reviewStatement } from './statement'
