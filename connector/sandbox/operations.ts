import type { Api } from '../api/api'
import * as routes from '../api/routes'

export type Operation = keyof Api

/** The operations by name, as plans, grants, the log and the counts call them. */
export const operations = Object.keys(routes) as ReadonlyArray<Operation>

export const isOperation = (name: string): name is Operation => operations.some((known) => known === name)

/** What `exports` stands for in a plan. */
export const exportOperations: ReadonlyArray<Operation> = ['exportReviews', 'exportDeletedReviews']
