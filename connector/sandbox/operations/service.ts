import * as E from 'fp-ts/Either'
import { type Api, toInstant } from '../../api'
import type { CellValue, Database } from '../../snapshot/store'
import { applyChurn, type Churn } from '../data/churn'
import { reviewText } from '../data/review-text'
import { readReviewRows } from '../data/tables'
import { phrases } from '../data/vocabulary'
import { createSelectionCache, type ExportOrder, serveDeletedExport, serveReviewExport } from './exports'
import { credentialsError, type TokenRegistry } from './operation'
import { type RequestLimits, serveComments, serveReviews } from './transparency'
import { saveLocations, saveVisitRecords } from './writes'

/** Operation 8, sources; the form of the answer is the sandbox's own. */
export const listSources = async (database: Database): Promise<unknown> => ({
  sources: await database.query('SELECT id, name FROM source ORDER BY id'),
})

/** Operation 8, categories of analysed data; the form of the answer is the sandbox's own. */
export const listCategories = (): unknown => ({
  categories: [...new Map(phrases.map((phrase) => [`${phrase.category} ${phrase.subCategory}`, phrase])).values()].map(
    ({ category, subCategory }, n) => ({ id: n + 1, category, subCategory }),
  ),
})

export type ServiceOptions = {
  readonly order: ExportOrder
  /** What happens after the page of operation 6 that is being served. */
  readonly pageChurn: () => Churn
  readonly limits: RequestLimits
  readonly tokenRegistry: TokenRegistry
  /** The service's clock, milliseconds. */
  readonly now: () => number
}

/** The service over a database: its `Api`, and what no client may do. */
export type SandboxService = {
  readonly api: Api
  readonly churn: (step: Churn) => Promise<void>
  readonly truth: () => Promise<Truth>
  readonly truthSummary: () => Promise<TruthSummary>
}

/** One thing at a time: a page is one snapshot, however many ask at once. */
const createQueue = (): (<A>(task: () => Promise<A>) => Promise<A>) => {
  let last: Promise<unknown> = Promise.resolve()
  return (task) => {
    const next = last.then(task, task)
    last = next.catch(() => undefined)
    return next
  }
}

export const createSandboxService = (database: Database, behaviour: ServiceOptions): SandboxService => {
  const { limits, now, tokenRegistry } = behaviour
  const inTurn = createQueue()
  const ordering = createSelectionCache(database)
  let turns = 0
  const served = () => ({
    clientId: 'sandbox',
    order: behaviour.order,
    now: now(),
    nonce: ++turns,
    selections: ordering,
  })
  const changing = async <A>(change: Promise<A>): Promise<A> => {
    ordering.clear()
    return change
  }
  const live = async (step: Churn): Promise<void> => {
    if (step.change + step.delete + step.add + step.restore > 0)
      await changing(applyChurn(database, step, ++turns * 31, now()))
  }
  return {
    api: {
      retrieveReviews: (request) => () => inTurn(() => serveReviews(database, now(), limits, request)),
      retrieveComments:
        ({ personId, locationId, entityId, ...filters }) =>
        () =>
          inTurn(() =>
            serveComments(database, now(), limits, {
              ...filters,
              personId: toList(personId),
              locationId: toList(locationId),
              entityId: toList(entityId),
            }),
          ),
      retrieveCommentsByForm: (request) => () => inTurn(() => serveComments(database, now(), limits, request)),
      createVisitRecords: (records) => () =>
        inTurn(async () => E.right(await saveVisitRecords(database, now(), ++turns, records))),
      syncLocations: (items) => () =>
        inTurn(async () => E.right(await changing(saveLocations(database, now(), items)))),
      exportReviews: (request) => () =>
        inTurn(async () => {
          const page = await serveReviewExport(database, served(), request)
          if (E.isRight(page)) await live(behaviour.pageChurn())
          return page
        }),
      exportDeletedReviews: (request) => () => inTurn(() => serveDeletedExport(database, served(), request)),
      lookupSources: () => () => inTurn(async () => E.right(await listSources(database))),
      lookupCategories: () => async () => E.right(listCategories()),
      issueToken: (request) => async () => E.fromNullable(credentialsError)(tokenRegistry.issueToken(request)),
    },
    churn: (step) => inTurn(() => live(step)),
    truth: () => inTurn(() => readTruth(database)),
    truthSummary: () => inTurn(() => readTruthSummary(database)),
  }
}

const toList = (id: string | undefined): ReadonlyArray<string> => (id === undefined ? [] : [id])

type ReviewVersion = { readonly id: string; readonly modifiedTime: string }

/** What the service holds, in the order of ids: which reviews in which version, what was deleted when, the rest. */
export type TruthSummary = {
  readonly reviews: ReadonlyArray<ReviewVersion>
  readonly deleted: ReadonlyArray<ReviewVersion>
  readonly locations: ReadonlyArray<{
    readonly id: number
    readonly code: string
    readonly name: string
    readonly active: boolean
  }>
  readonly visits: ReadonlyArray<{ readonly id: string; readonly received: string; readonly reviewed: boolean }>
}

/** The same with each review's text, all additional fields in it. */
export type Truth = Omit<TruthSummary, 'reviews'> & {
  readonly reviews: ReadonlyArray<ReviewVersion & { readonly json: string }>
}

const formatTime = (millis: CellValue | undefined): string => toInstant(Number(millis))

const readVersions = async (database: Database, table: string): Promise<ReadonlyArray<ReviewVersion>> =>
  (
    await database.query(
      `SELECT t.id::VARCHAR AS id, epoch_ms(modified) AS modified FROM ${table} t ORDER BY t.id, t.modified`,
    )
  ).map(({ id, modified }) => ({ id: String(id), modifiedTime: formatTime(modified) }))

export const readTruthSummary = async (database: Database): Promise<TruthSummary> => {
  const locations = await database.query('SELECT id, code, name, active FROM location ORDER BY id')
  const visits = await database.query('SELECT id, epoch_ms(received) AS received, reviewed FROM visit ORDER BY id')
  return {
    reviews: await readVersions(database, 'review'),
    deleted: await readVersions(database, 'deleted'),
    locations: locations.map(({ id, code, name, active }) => ({
      id: Number(id),
      code: String(code),
      name: String(name),
      active: active === true,
    })),
    visits: visits.map(({ id, received, reviewed }) => ({
      id: String(id),
      received: formatTime(received),
      reviewed: reviewed === true,
    })),
  }
}

export const readTruth = async (database: Database): Promise<Truth> => {
  const rows = await readReviewRows(database, 'ORDER BY r.id')
  return {
    ...(await readTruthSummary(database)),
    reviews: rows.map((row) => ({
      id: row.id,
      modifiedTime: toInstant(Number(row.modified)),
      json: reviewText(row, ['brand', 'visitRecordId']),
    })),
  }
}
