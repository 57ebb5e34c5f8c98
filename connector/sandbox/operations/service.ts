import * as E from 'fp-ts/Either'
import type { TaskEither } from 'fp-ts/TaskEither'
import { type Api, type ApiError, type LookupQuery, toInstant } from '../../api'
import { parseExactJson } from '../../cdk'
import type { CellValue, Database } from '../../snapshot/store'
import { readReviewRows, reviewText } from '../data/review-text'
import { phrases } from '../data/vocabulary'
import { createSelectionCache, type ExportOrder, serveDeletedExport, serveReviewExport } from './exports'
import { badRequestError, credentialsError, type TokenRegistry } from './operation'
import { serveComments, serveReviews, type TransparencyRules } from './transparency'
import { applyChurn, type Churn, saveLocations, saveVisitRecords } from './writes'

/** The sources of operation 8; the specification does not describe the answer, so its form is the sandbox's own. */
export const listSources = async (database: Database): Promise<unknown> => ({
  sources: await database.query('SELECT id, name FROM source ORDER BY id'),
})

/** The categories of operation 8; the specification does not describe the answer, so its form is the sandbox's own. */
export const listCategories = (): unknown => ({
  categories: [...new Map(phrases.map((phrase) => [`${phrase.category} ${phrase.subCategory}`, phrase])).values()].map(
    ({ category, subCategory }, n) => ({ id: n + 1, category, subCategory }),
  ),
})

const locationAttributes = [
  ...['internalName', 'phone', 'email', 'website', 'address1', 'address2', 'city', 'state', 'zip', 'country'],
  ...['productMappings', 'entityMappings', 'additionalAttributes', 'labels', 'modifiedTime'],
]

/** A page of the active locations, as deployments list them: at most 100, counted from 1, in the order of ids. */
export const listLocations = async (
  database: Database,
  { page = '1', size = '20', sortDirection = 'ASC' }: LookupQuery,
): Promise<E.Either<ApiError, unknown>> => {
  if (![page, size].every((value) => /^[1-9]\d{0,8}$/.test(String(value))))
    return E.left(badRequestError('page, size: expected whole numbers from 1'))
  const pageSize = Math.min(Number(size), 100)
  const totalCount = Number(await database.scalar('SELECT count(*) FROM location WHERE active'))
  const rows = await database.query(
    `SELECT id::VARCHAR AS id, name, code, code_type, details FROM location WHERE active
     ORDER BY location.id ${sortDirection === 'DESC' ? 'DESC' : 'ASC'} LIMIT ${pageSize} OFFSET ${(Number(page) - 1) * pageSize}`,
  )
  const data = rows.map(({ id, name, code, code_type, details }) => {
    const attributes = typeof details === 'string' ? (parseExactJson(details) as Record<string, unknown>) : {}
    return {
      id: Number(id),
      displayName: name,
      code,
      codeType: code_type,
      createdTime: null,
      ...Object.fromEntries(locationAttributes.map((attribute) => [attribute, attributes[attribute] ?? null])),
    }
  })
  return E.right({
    data,
    totalCount,
    totalPages: Math.ceil(totalCount / pageSize),
    currentPage: Number(page),
    pageSize,
  })
}

const entityTables: ReadonlyMap<unknown, string> = new Map([
  ['Person', 'SELECT id::VARCHAR AS code, name FROM provider ORDER BY provider.id'],
  ['Location', 'SELECT code, name FROM location WHERE active ORDER BY location.id'],
])

/** The entities of a type, as deployments list them: by codes that operations 1 to 3 take. */
export const listEntities = async (database: Database, { type }: LookupQuery): Promise<E.Either<ApiError, unknown>> => {
  const sql = entityTables.get(type)
  if (sql === undefined) return E.left(badRequestError(`type: expected ${[...entityTables.keys()].join(' or ')}`))
  const rows = await database.query(sql)
  return E.right({ entities: rows.map(({ code, name }) => ({ name, code, type })) })
}

export type ServiceOptions = {
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
  /** The list of entities that published deployments have beside the `Api`. */
  readonly listEntities: (query: LookupQuery) => TaskEither<ApiError, unknown>
  readonly churn: (step: Churn) => Promise<void>
  readonly truth: () => Promise<Truth>
  readonly truthSummary: () => Promise<TruthSummary>
}

/** Runs one task at a time, so that no change happens while a page is read. */
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

type ReviewVersion = { readonly id: string; readonly modifiedTime: string }

/** The data of the service, in the order of ids: the version of each review, the deletions, the locations and the visits. */
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

/** The data of the service with the JSON text of each review, which has all additional fields. */
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
