/**
 * The objects of the service that can be written to: visit records and locations. In: records of any columns, and the
 * mapping from attributes to columns. Out: batches for the service, and a verdict on each record. The ledger remembers
 * which locations were accepted, from run to run.
 */
export { type LocationLedger, openLedger, readLedger } from './ledger'
export { locationSink } from './locations'
export { dryRunApi, resendPolicy, resendUnanswered, type SinkTarget } from './target'
export { sendVisits, sinks, visitRecordSink } from './visit-records'
