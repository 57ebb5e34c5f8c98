/**
 * Reads an export of the service, reviews or deleted reviews, without loss although it has no fixed order and changes meanwhile.
 * In: an `Api`, filters, and where to start or go on. Out: pages of `CutRecord`s, each with the resume token that covers it.
 * `cut/` turns the bytes of an answer into checked records; `scan/` chooses the pages and shows that none is missing
 * (docs/lossless-export.md).
 */
export { createExtractor, fieldText, hasField, pickRecordAttributes, rawFieldText } from './cut/extract'
export { createOffsetReader, type FieldOffset, type FieldOffsets, type ObjectOffsets } from './cut/offsets'
export { type CutPage, createCutter } from './cut/page'
export type { CutRecord } from './cut/record'
export type { PrivacyAction } from './cut/shape'
export { attributePaths } from './cut/shape'
export type { ExportPage, FetchPage } from './fetch-page'
export { createDeletedReviewFetcher, createReviewFetcher } from './fetch-page'
export {
  ceilToSecond,
  chooseCutoff,
  cursorSlack,
  filterFrom,
  floorToSecond,
  nextCursor,
  type RunNote,
} from './scan/cutoff'
export {
  createWindowToken,
  decodeResumeToken,
  digestFilters,
  isResumable,
  leastAdvancedToken,
  ResumeToken,
  scanStartTime,
} from './scan/resume-token'
export { type ScanCompletion, type ScanEnv, type ScanItem, type ScanStart, scan, scanScope } from './scan/scan'
export { isInRange, matchesSentRow, SentRange, SentRows } from './scan/sent-rows'
export { overlapSize } from './scan/state'
export { readMentionTime, type ScanFilters, ScanWindow } from './scan/window'
