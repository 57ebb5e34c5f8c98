/** The room sinks. */
export { resendPolicy, resendUnanswered } from './batch-errors'
export { type LocationLedger, openLedger, readLedger } from './ledger'
export { sinks } from './registry'
export { dryRunApi, type SinkTarget } from './target'
