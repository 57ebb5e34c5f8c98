import * as E from 'fp-ts/Either'
import type { Api } from '../api/api'
import type { Database } from '../snapshot/database'
import { type Churn, churn } from './churn'
import type { Order } from './export-orders'
import { exportDeletedReviews, exportReviews, textWith } from './exports'

/** What the service holds: every version of every review that lives, with all additional fields, and what was deleted. */
export type Truth = {
  readonly reviews: ReadonlyArray<{ readonly id: string; readonly modifiedTime: string; readonly json: string }>
  readonly deleted: ReadonlyArray<{ readonly id: string; readonly modifiedTime: string }>
}

export type Behaviour = {
  readonly order: Order
  /** What happens after every page of reviews. */
  readonly churn: Churn
  /** The service's clock, milliseconds. */
  readonly now: () => number
}

/** The service over a database: its `Api`, and what no client may do. */
export type Service = {
  readonly api: Api
  readonly churn: (step: Churn) => Promise<void>
  readonly truth: () => Promise<Truth>
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
  const inTurn = oneByOne()
  let turns = 0
  const served = () => ({ clientId: 'sandbox', order: behaviour.order, now: behaviour.now(), nonce: ++turns })
  const live = (step: Churn): Promise<void> => churn(database, step, ++turns * 31, behaviour.now())
  return {
    api: {
      exportReviews: (request) => () =>
        inTurn(async () => {
          const page = await exportReviews(database, served(), request)
          if (E.isRight(page)) await live(behaviour.churn)
          return page
        }),
      exportDeletedReviews: (request) => () => inTurn(() => exportDeletedReviews(database, served(), request)),
    },
    churn: (step) => inTurn(() => live(step)),
    truth: () => inTurn(() => truth(database)),
  }
}

const truth = async (database: Database): Promise<Truth> => {
  const reviews = await database.query(
    `SELECT id::VARCHAR AS id, instant(modified) AS modified, ${textWith(['brand', 'visitRecordId'])} AS json
     FROM document ORDER BY document.id`,
  )
  const deleted = await database.query(
    'SELECT id::VARCHAR AS id, instant(modified) AS modified FROM deleted ORDER BY deleted.id, deleted.modified',
  )
  return {
    reviews: reviews.map(({ id, modified, json }) => ({
      id: String(id),
      modifiedTime: String(modified),
      json: String(json),
    })),
    deleted: deleted.map(({ id, modified }) => ({ id: String(id), modifiedTime: String(modified) })),
  }
}
