import type { Api } from '../api/api'
import * as routes from '../api/routes'

export type OperationName = keyof Api

/** The operations by name, as plans, grants, the log and the counts call them. */
export const operationNames = Object.keys(routes) as ReadonlyArray<OperationName>

export const isOperationName = (name: string): name is OperationName => operationNames.some((known) => known === name)

/** What `exports` stands for in a plan. */
export const exportOperations: ReadonlyArray<OperationName> = ['exportReviews', 'exportDeletedReviews']
