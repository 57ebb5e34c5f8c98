/**
 * The streams of the source, one file a stream or a family of streams, and the readers that feed them.
 *
 * In: a `SourceEnv` (the service's client and the parts of the config that concern the streams) and, in each run, the
 * selected streams with their states (`StreamRequest` of cdk). Out: a feed of `ReaderEvent`s: rows as JSON text,
 * checkpoints with the state that covers the rows before them, notes, and failures of single streams.
 */
export {
  type EntityFacts,
  listConfiguredEntities,
  type ProbeError,
  type ProbeGate,
  probedDays,
  probeEntities,
  probeWindow,
  windowOperations,
} from './entities/probe'
export { nextWindowFrom, readEntityCursors, rewindEntities } from './entities/state'
export { createEntityIndex } from './entity-index'
export { type ExportDefinition, toReadEnv } from './export-reader'
export {
  decodeExportState,
  mergeStates,
  openExportState,
  type Rewind,
  readScanStart,
  readStateCursor,
  rewindStates,
} from './export-state'
export { isLookupStream } from './lookups'
export { findPrivacyPath, type PrivacySettings, privacyActions } from './privacy'
export { createDeletionFetcher, deletedReviewsStream, deletionExportOperation, reviewExportOperation } from './reviews'
export type { SourceEnv } from './source-env'
export { checkSourceLookup } from './source-lookup'
export { futureStartFailure, isStartMovedBack } from './start-date'
export {
  applyStreamSettings,
  declaredStreams,
  exportFilters,
  findForeignProblem,
  findStateProblem,
  selectStreams,
  streams,
  streamsReadWith,
} from './streams'
export { createRunSummary } from './sync-audit'
export type { DeletedAtColumn } from './tombstones'
