/**
 * The Feedback Data Service on this machine: an HTTP server that answers all operations from a DuckDB database of
 * generated or imported reviews. Use it to try and to test the connector: it can change its data, limit its clients and
 * fail on purpose. In: `SandboxOptions`, with faults from `decodeFaultPlan` or `parseFaultList`. Out: a running
 * `Sandbox` with its address, its credentials, its data and the counts of its requests, or a thrown `CommandError`.
 */
export { trends } from './data/trend'
export { decodeFaultPlan, type FaultRule, faultKinds, parseFaultList } from './faults/plan'
export { exportOrders } from './operations/exports'
export { isOperationName, type OperationName, operationNames } from './operations/operation'
export type { ServiceKind } from './server/handlers'
export { isLocalHost } from './server/pages'
export { type Sandbox, type SandboxOptions, startSandbox } from './start'
