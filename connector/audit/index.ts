/**
 * SQL that compares a warehouse's table with the service. Input: `ServiceVersions`, `ServiceFeedback` or
 * `ServiceDimensions`. Output: statements, and what repairs the table.
 */
export {
  type AuditAnswer,
  decodeAnswer,
  type ReviewDifference,
  summarizeAnswer,
} from './answer'
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
} from './audited-table'
export {
  type AuditedLoad,
  checkStatementSize,
  deleteStatement,
  type Expected,
  formatSeed,
  type ServiceVersions,
  useExpected,
} from './comparison'
export { type ContentDigest, chooseContent, createContentDigest, fieldName } from './content'
export {
  checkDimensionStatementSize,
  type DimensionDifference,
  deleteDimensionStatement,
  dimensionStatement,
  readDimensions,
  type ServiceDimensions,
} from './dimension-audit'
export {
  checkFeedbackStatementSize,
  type ExpectedFeedback,
  type ServiceFeedback,
  type ServiceFeedbackRow,
  useExpectedFeedback,
} from './entity-comparison'
export {
  type AuditWindow,
  auditWindows,
  deleteFeedbackStatement,
  type FeedbackDifference,
  feedbackBucketStatement,
  feedbackRowStatement,
  isFeedbackBucket,
} from './entity-statement'
export { bucketStatement, reviewStatement } from './statement'
