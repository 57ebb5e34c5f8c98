/**
 * Connects a config with the service and the streams, and runs the result.
 * In: a config, with what the command line adds. Out: messages for a consumer (`consumeMessages` of the kit,
 * `syncSnapshot`), records accepted by the service (`runWrite`), or the findings of a check. DuckDB is loaded only when
 * it is used.
 */
export { type CheckStep, checkDestinationConfig, checkSourceConfig, checkStreams } from './check'
export type { Finding } from './findings'
export { auditedFeedbackStreams, createFeedbackService } from './service-feedback'
export {
  auditedDimensions,
  auditedStreams,
  createDimensionService,
  createReviewService,
  createVersionService,
  planAudit,
  rewindStream,
} from './service-versions'
export { buildStreams, type ConfiguredSource, checkOutput, createSource, identifySource } from './source'
export { checkSource, probeAccess } from './source-check'
export { type StreamOutcome, syncSnapshot } from './sync'
export { runWrite } from './write'
