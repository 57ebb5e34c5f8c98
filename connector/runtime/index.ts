/** The room runtime. */
export {
  awaitOrTimeOut,
  checkAttempts,
  checkSource,
  checkTimeoutFailure,
  type SourceCheck,
  startSourceCheck,
  withCheckTimeouts,
} from './check'
export { checkDestination, openDestination } from './destination'
export { type MessageConsumer, type ReadOutcome, runRead } from './read'
export { buildStreams, type ConfiguredSource, createSource } from './source'
export { formatOutcomes, syncSnapshot } from './sync'
export { createReviewService } from './verify'
export { runWrite, type WriteLog } from './write'
