/**
 * The objects of the service that can be written to: visit records and locations. In: records of any columns, and the mapping from attributes to
 * columns. Out: batches for the service, and a verdict on each record. The ledger remembers which locations were accepted, from run to run.
 */
export { resendPolicy, resendUnanswered } from './batch-errors'
export { type LocationLedger, openLedger, readLedger } from './ledger'
export { locationSink } from './locations'
export { sinks } from './registry'
export { dryRunApi, type SinkTarget } from './target'
export { visitRecordSink } from './visit-records'
