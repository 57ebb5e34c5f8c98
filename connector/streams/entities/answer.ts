import type { Either } from 'fp-ts/Either'
import type { TaskEither } from 'fp-ts/TaskEither'
import { type ApiError, isRefusalInBody, toMillis } from '../../api'
import type { SourceEnv } from '../source-env'
import type { EntityKind } from './selection'

/** One request for the rows of some entities in a window of time; times in milliseconds. */
export type EntityRequest = {
  readonly kind: EntityKind
  readonly ids: ReadonlyArray<string>
  readonly from: number
  readonly to: number
  readonly page: number
  /** Number of rows per page, if different from the configured one. */
  readonly perPage?: number
  /** Omits the dates, for a service that ignores them and uses the days instead. */
  readonly byDays?: boolean
  /** The days of an earlier page, since a key may only be valid for requests with equal filters. */
  readonly days?: number
  /** The key that the last answer gave for this page; sent instead of the page number. */
  readonly scrollKey?: string
}

/** The rows of one entity in an answer. */
export type EntityRows = {
  readonly id: string
  readonly name: unknown
  readonly rows: ReadonlyArray<Readonly<Record<string, unknown>>>
  /** The number of pages, if the answer gives it. */
  readonly pages?: number
}

/** The answer to a request. */
export type EntityAnswer = {
  readonly entities: ReadonlyArray<EntityRows>
  /** The page size, as echoed or else as requested. Infinity: the operation has no pages. */
  readonly perPage: number
  /** The key of the next page, if the answer gives one. */
  readonly scrollKey?: string
  /** The service refused the page, which may be after the last one, so there are no rows. */
  readonly isRefused?: true
  /** The days that were requested. */
  readonly days?: number
  /** The days that the answer covers, if its echo shows fewer than requested. */
  readonly coveredDays?: number
  /** The service's clock, milliseconds, if known. */
  readonly servedAt?: number
}

export type FetchEntities = (request: EntityRequest) => TaskEither<ApiError, EntityAnswer>

/** An operation that lists rows by entity, in pages. */
export type EntityOperation = {
  readonly name: string
  /** The most identifiers in a request, until the service refuses that many. */
  readonly maxIdentifiers: number
  readonly firstPage: 0 | 1
  /** The attribute that identifies a row within its entity. */
  readonly key: string
  readonly createFetch: (source: SourceEnv) => FetchEntities
}

/** Some rows of an entity, or why the rest of the run skips it. */
export type EntityResult = {
  readonly kind: EntityKind
  readonly id: string
  /** The end of the covered time, milliseconds; undefined: the run's cutoff, so the entity is complete. */
  readonly to: number | undefined
  /** For an entity read page by page: the number of the reading, and if the entity ends with this page. */
  readonly scroll?: { readonly reading: number; readonly isEnd: boolean }
  /** Undefined: the service does not know the entity. */
  readonly answer: Either<ApiError, EntityRows | undefined>
}

export const countRows = ({ entities }: Pick<EntityAnswer, 'entities'>): number =>
  entities.reduce((count, { rows }) => count + rows.length, 0)

/** The rows of the only requested entity, under whatever id the service lists it; undefined if it lists nothing. */
export const rowsOfEntity = (id: string, { entities }: EntityAnswer): EntityRows | undefined => {
  const [first] = entities
  const sameId = entities.find((entity) => entity.id === id)
  return sameId ?? (first === undefined ? undefined : { ...first, rows: entities.flatMap(({ rows }) => rows) })
}

/** Requests use whole seconds, and a service may ignore the fractions of its rows' times. */
const edgeMargin = 2000

/** Rows lie outside the window (milliseconds), which shows that the service ignores its dates. */
export const isOutside = ({ from, to }: Pick<EntityRequest, 'from' | 'to'>, { entities }: EntityAnswer): boolean =>
  entities.some(({ rows }) =>
    rows.some(({ mentionTime }) => {
      const time = toMillis(String(mentionTime))
      return time < from - edgeMargin || time > to + edgeMargin
    }),
  )

const decodeError = (message: string, path = '$.data.entities'): ApiError & { readonly message: string } => ({
  _tag: 'Decode',
  path,
  message,
})

/** Why an entity cannot be read completely although the service answers for it. */
export const incomplete = {
  otherEntity: decodeError('the answer is about a different entity than requested', '$.data.entities.id'),
  refusedKey: decodeError('the service refused its own scrollKey three times'),
  endless: decodeError('its pages do not end'),
  cutOff: decodeError('the same pages come again, and the last one is full'),
  changing: (rows: number) => decodeError(`its ${rows} rows differ, or come in another order, each time they are read`),
}

/** The error may mean that a scroll key is no longer valid. */
export const isKeyRefusal = (error: ApiError): boolean =>
  isRefusalInBody(error) || (error._tag === 'Http' && [400, 404, 410].includes(error.status))

/**
 * The error may concern an entity and not the service: an unspecified error inside a 200 response, unless it reports an
 * outage, a rate limit or a token problem; or a 403, 404 or 410, with which a service may answer for a closed location.
 */
export const concernsEntity = (error: ApiError): boolean =>
  isRefusalInBody(error) || (error._tag === 'Http' && [403, 404, 410].includes(error.status))

/** Why entities were not read, and which ones, if one request covered them. */
export class EntityError extends Error {
  constructor(
    readonly error: ApiError,
    readonly entities?: Pick<EntityRequest, 'kind' | 'ids'>,
  ) {
    super(error._tag)
  }
}
