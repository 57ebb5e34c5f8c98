/** The room streams. */
export { deletedReviewsStream } from './deleted-reviews'
export { mergeStates } from './export-state'
export { isLookupStream } from './lookups'
export { type PrivacySettings, privacyActions } from './privacy'
export { reviewExportOperation } from './reviews'
export { createEntityIndex, type SourceEnv } from './source'
export { applyStreamSettings, selectStreams, streams } from './streams'
export type { DeletedAtColumn } from './tombstones'
