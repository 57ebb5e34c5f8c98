/** The room sandbox. */
export { decodeFaultPlan, type FaultRule, faultKinds, parseFaultList } from './faults/plan'
export { exportOrders } from './operations/exports'
export { isOperationName, type OperationName, operationNames } from './operations/operation'
export { type Sandbox, type SandboxOptions, startSandbox } from './start'
