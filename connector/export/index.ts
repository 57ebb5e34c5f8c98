/**
 * The two exports of the service, reviews and deleted reviews, as lists for `reading/`.
 * In: an `Api`, and what to keep of a record. Out: a `List` whose pages hold checked `CutRecord`s. `cut/` turns the
 * bytes of an answer into records.
 */
export { createExtractor, fieldText, hasField, pickRecordAttributes, rawFieldText } from './cut/extract'
export { createOffsetReader, type FieldOffset, type FieldOffsets, type ObjectOffsets } from './cut/offsets'
export { type CutPage, createCutter } from './cut/page'
export type { CutRecord } from './cut/record'
export type { PrivacyAction } from './cut/shape'
export { attributePaths } from './cut/shape'
export type { ExportPage, FetchPage } from './fetch-page'
export { createDeletedReviewFetcher, createReviewFetcher } from './fetch-page'
export { type ExportFilters, readMentionTime } from './filters'
export { boundsOf, toList } from './list'
