import * as E from 'fp-ts/Either'
import type { TaskEither } from 'fp-ts/TaskEither'
import type { Api, ApiError, LookupQuery } from '../../api'
import type { Database } from '../../snapshot/store'
import { createSelectionCache, type ExportOrder, serveDeletedExport, serveReviewExport } from './exports'
import { listCategories, listEntities, listLocations, listSources } from './lookups'
import { credentialsError, type TokenRegistry } from './operation'
import { serveComments, serveReviews, type TransparencyRules } from './transparency'
import { readTruth, readTruthSummary, type Truth, type TruthSummary } from './truth'
import { applyChurn, type Churn, saveLocations, saveVisitRecords } from './writes'

type ServiceOptions = {
  readonly order: ExportOrder
  /** The changes after each page of operation 6. */
  readonly pageChurn: () => Churn
  readonly rules: TransparencyRules
  readonly tokenRegistry: TokenRegistry
  /** The service's clock in milliseconds. */
  readonly now: () => number
}

/** The service over a database: its `Api`, and what only its operator may do. */
export type SandboxService = {
  readonly api: Api
  /** The list of entities that published deployments have in addition to the `Api`. */
  readonly listEntities: (query: LookupQuery) => TaskEither<ApiError, unknown>
  readonly churn: (step: Churn) => Promise<void>
  readonly truth: () => Promise<Truth>
  readonly truthSummary: () => Promise<TruthSummary>
}

/** Runs one task at a time, so that nothing changes while a page is read. */
const createQueue = (): (<A>(task: () => Promise<A>) => Promise<A>) => {
  let last: Promise<unknown> = Promise.resolve()
  return (task) => {
    const next = last.then(task, task)
    last = next.catch(() => undefined)
    return next
  }
}

export const createSandboxService = (database: Database, options: ServiceOptions): SandboxService => {
  const { rules, now, tokenRegistry } = options
  const enqueue = createQueue()
  const selections = createSelectionCache(database)
  let nonce = 0
  const createContext = () => ({
    clientId: 'sandbox',
    order: options.order,
    now: now(),
    nonce: ++nonce,
    selections,
  })
  const applyChange = async <A>(change: Promise<A>): Promise<A> => {
    selections.clear()
    return change
  }
  const churn = async (step: Churn): Promise<void> => {
    if (step.change + step.delete + step.add + step.restore > 0)
      await applyChange(applyChurn(database, step, ++nonce * 31, now()))
  }
  return {
    api: {
      retrieveReviews: (request) => () => enqueue(() => serveReviews(database, now(), rules, request)),
      retrieveComments:
        ({ personId, locationId, entityId, ...filters }) =>
        () =>
          enqueue(() =>
            serveComments(database, now(), rules, {
              ...filters,
              personId: toList(personId),
              locationId: toList(locationId),
              entityId: toList(entityId),
            }),
          ),
      retrieveCommentsByForm: (request) => () => enqueue(() => serveComments(database, now(), rules, request)),
      createVisitRecords: (records) => () =>
        enqueue(async () => E.right(await saveVisitRecords(database, now(), ++nonce, records))),
      syncLocations: (items) => () =>
        enqueue(async () => E.right(await applyChange(saveLocations(database, now(), items)))),
      exportReviews: (request) => () =>
        enqueue(async () => {
          const page = await serveReviewExport(database, createContext(), request)
          if (E.isRight(page)) await churn(options.pageChurn())
          return page
        }),
      exportDeletedReviews: (request) => () => enqueue(() => serveDeletedExport(database, createContext(), request)),
      lookupSources: () => () => enqueue(async () => E.right(await listSources(database))),
      lookupCategories: () => async () => E.right(listCategories()),
      lookupLocations: (query) => () => enqueue(() => listLocations(database, query)),
      issueToken: (request) => async () => E.fromNullable(credentialsError)(tokenRegistry.issueToken(request)),
    },
    listEntities: (query) => () => enqueue(() => listEntities(database, query)),
    churn: (step) => enqueue(() => churn(step)),
    truth: () => enqueue(() => readTruth(database)),
    truthSummary: () => enqueue(() => readTruthSummary(database)),
  }
}

const toList = (id: string | undefined): ReadonlyArray<string> => (id === undefined ? [] : [id])
