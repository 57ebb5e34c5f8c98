import * as E from 'fp-ts/Either'
import type { Api } from '../api/api'
import type { Database } from '../snapshot/database'
import { type Churn, churn } from './churn'
import type { Order } from './export-orders'
import { exportDeletedReviews, exportReviews, textWith } from './exports'
import { syncLocations } from './locations'
import { lookupCategories, lookupSources } from './lookups'
import { badToken } from './refusals'
import type { Tokens } from './tokens'
import { type Limits, retrieveComments, retrieveReviews } from './transparency'
import { createVisitRecords } from './visits'

/** What the service holds: every version of every review that lives, with all additional fields, and what was deleted. */
export type Truth = {
  readonly reviews: ReadonlyArray<{ readonly id: string; readonly modifiedTime: string; readonly json: string }>
  readonly deleted: ReadonlyArray<{ readonly id: string; readonly modifiedTime: string }>
  readonly locations: ReadonlyArray<{
    readonly id: number
    readonly code: string
    readonly name: string
    readonly active: boolean
  }>
  readonly visits: ReadonlyArray<{ readonly id: string; readonly received: string; readonly reviewed: boolean }>
}

export type Behaviour = {
  readonly order: Order
  /** What happens after every page of reviews. */
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
  let turns = 0
  const served = () => ({ clientId: 'sandbox', order: behaviour.order, now: now(), nonce: ++turns })
  const live = (step: Churn): Promise<void> => churn(database, step, ++turns * 31, now())
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
      syncLocations: (items) => () => inTurn(async () => E.right(await syncLocations(database, now(), items))),
      exportReviews: (request) => () =>
        inTurn(async () => {
          const page = await exportReviews(database, served(), request)
          if (E.isRight(page)) await live(behaviour.churn())
          return page
        }),
      exportDeletedReviews: (request) => () => inTurn(() => exportDeletedReviews(database, served(), request)),
      lookupSources: () => () => inTurn(async () => E.right(await lookupSources(database))),
      lookupCategories: () => () => inTurn(async () => E.right(await lookupCategories(database))),
      issueToken: (request) => async () => E.fromNullable(badToken)(tokens.exchange(request)),
    },
    churn: (step) => inTurn(() => live(step)),
    truth: () => inTurn(() => truth(database)),
  }
}

const one = (id: string | undefined): ReadonlyArray<string> => (id === undefined ? [] : [id])

const truth = async (database: Database): Promise<Truth> => {
  const reviews = await database.query(
    `SELECT id::VARCHAR AS id, instant(modified) AS modified, ${textWith(['brand', 'visitRecordId'])} AS json
     FROM document ORDER BY document.id`,
  )
  const deleted = await database.query(
    'SELECT id::VARCHAR AS id, instant(modified) AS modified FROM deleted ORDER BY deleted.id, deleted.modified',
  )
  const locations = await database.query('SELECT id, code, name, active FROM location ORDER BY id')
  const visits = await database.query('SELECT id, instant(received) AS received, reviewed FROM visit ORDER BY id')
  return {
    locations: locations.map(({ id, code, name, active }) => ({
      id: Number(id),
      code: String(code),
      name: String(name),
      active: active === true,
    })),
    visits: visits.map(({ id, received, reviewed }) => ({
      id: String(id),
      received: String(received),
      reviewed: reviewed === true,
    })),
    reviews: reviews.map(({ id, modified, json }) => ({
      id: String(id),
      modifiedTime: String(modified),
      json: String(json),
    })),
    deleted: deleted.map(({ id, modified }) => ({ id: String(id), modifiedTime: String(modified) })),
  }
}
