import * as E from 'fp-ts/Either'
import type { Api } from '../api/api'
import type { Database } from '../snapshot/database'
import { type Churn, churn } from './churn'
import type { Order } from './export-orders'
import { exportDeletedReviews, exportReviews } from './exports'
import { syncLocations } from './locations'
import { lookupCategories, lookupSources } from './lookups'
import { orderings } from './ordering'
import { badToken } from './refusals'
import type { Tokens } from './tokens'
import { type Limits, retrieveComments, retrieveReviews } from './transparency'
import { type Held, held, type Truth, truth } from './truth'
import { createVisitRecords } from './visits'

export type Behaviour = {
  readonly order: Order
  /** What happens after the page of operation 6 that is being served. */
  readonly churn: () => Churn
  readonly limits: Limits
  readonly tokens: Tokens
  /** The service's clock, milliseconds. */
  readonly now: () => number
}

/** The service over a database: its `Api`, and what no client may do. */
export type Service = {
  readonly api: Api
  readonly churn: (step: Churn) => Promise<void>
  readonly truth: () => Promise<Truth>
  readonly held: () => Promise<Held>
}

/** One thing at a time: a page is one snapshot, however many ask at once. */
const oneByOne = (): (<A>(task: () => Promise<A>) => Promise<A>) => {
  let last: Promise<unknown> = Promise.resolve()
  return (task) => {
    const next = last.then(task, task)
    last = next.catch(() => undefined)
    return next
  }
}

export const service = (database: Database, behaviour: Behaviour): Service => {
  const { limits, now, tokens } = behaviour
  const inTurn = oneByOne()
  const ordering = orderings(database)
  let turns = 0
  const served = () => ({ clientId: 'sandbox', order: behaviour.order, now: now(), nonce: ++turns, ordering })
  const changing = async <A>(change: Promise<A>): Promise<A> => {
    ordering.forget()
    return change
  }
  const live = async (step: Churn): Promise<void> => {
    if (step.change + step.delete + step.add + step.restore > 0)
      await changing(churn(database, step, ++turns * 31, now()))
  }
  return {
    api: {
      retrieveReviews: (request) => () => inTurn(() => retrieveReviews(database, now(), limits, request)),
      retrieveComments:
        ({ personId, locationId, entityId, ...filters }) =>
        () =>
          inTurn(() =>
            retrieveComments(database, now(), limits, {
              ...filters,
              personId: one(personId),
              locationId: one(locationId),
              entityId: one(entityId),
            }),
          ),
      retrieveCommentsByForm: (request) => () => inTurn(() => retrieveComments(database, now(), limits, request)),
      createVisitRecords: (records) => () =>
        inTurn(async () => E.right(await createVisitRecords(database, now(), ++turns, records))),
      syncLocations: (items) => () =>
        inTurn(async () => E.right(await changing(syncLocations(database, now(), items)))),
      exportReviews: (request) => () =>
        inTurn(async () => {
          const page = await exportReviews(database, served(), request)
          if (E.isRight(page)) await live(behaviour.churn())
          return page
        }),
      exportDeletedReviews: (request) => () => inTurn(() => exportDeletedReviews(database, served(), request)),
      lookupSources: () => () => inTurn(async () => E.right(await lookupSources(database))),
      lookupCategories: () => async () => E.right(lookupCategories()),
      issueToken: (request) => async () => E.fromNullable(badToken)(tokens.exchange(request)),
    },
    churn: (step) => inTurn(() => live(step)),
    truth: () => inTurn(() => truth(database)),
    held: () => inTurn(() => held(database)),
  }
}

const one = (id: string | undefined): ReadonlyArray<string> => (id === undefined ? [] : [id])
