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
  /** The rows to request for a page, where they differ from the configured ones. */
  readonly perPage?: number
  /** Leaves the dates out, for a service that ignores them: the days decide. */
  readonly byDays?: boolean
  /** The days of an earlier page, since a key may hold only for requests with equal filters. */
  readonly days?: number
  /** The key that the last answer gave for this page; sent instead of its number. */
  readonly scrollKey?: string
}

/** The rows of one entity in an answer. */
export type EntityRows = {
  readonly id: string
  readonly name: unknown
  readonly rows: ReadonlyArray<Readonly<Record<string, unknown>>>
  /** The number of pages, if the answer gives one. */
  readonly pages?: number
}

/** The answer to a request. */
export type EntityAnswer = {
  readonly entities: ReadonlyArray<EntityRows>
  /** The most rows of a page: as the answer echoes it, else as requested. Infinity: the operation has no pages. */
  readonly perPage: number
  /** The key of the page that follows, where the answer gives one. */
  readonly scrollKey?: string
  /** The service refused the page, which may be behind the last one, so there are no rows. */
  readonly isRefused?: true
  /** The days that were requested. */
  readonly days?: number
  /** The days that the answer covers, where its echo tells fewer than the requested ones. */
  readonly coveredDays?: number
  /** The service's clock, milliseconds, where it is known. */
  readonly servedAt?: number
}

export type FetchEntities = (request: EntityRequest) => TaskEither<ApiError, EntityAnswer>

/** An operation that lists rows by entity, in pages. */
export type EntityOperation = {
  readonly name: string
  /** The most identifiers of a request, until the service refuses so many. */
  readonly maxIdentifiers: number
  readonly firstPage: 0 | 1
  /** The attribute that identifies a row among those of its entity. */
  readonly key: string
  readonly createFetch: (source: SourceEnv) => FetchEntities
}

/** Some rows of an entity, or why it is left out of the rest of the run. */
export type EntityResult = {
  readonly kind: EntityKind
  readonly id: string
  /** Up to when the rows reach, milliseconds; none: the run's cutoff, and the entity is complete. */
  readonly to: number | undefined
  /**
   * Of a page of an entity that is read page by page: which reading it belongs to, and whether the entity ends with it.
   */
  readonly scroll?: { readonly reading: number; readonly isEnd: boolean }
  /** None: the service does not know the entity. */
  readonly answer: Either<ApiError, EntityRows | undefined>
}

export const countRows = ({ entities }: Pick<EntityAnswer, 'entities'>): number =>
  entities.reduce((count, { rows }) => count + rows.length, 0)

/** The rows of the only requested entity, under whatever id the service lists it; none if it lists nothing. */
export const rowsOfEntity = (id: string, { entities }: EntityAnswer): EntityRows | undefined => {
  const [first] = entities
  const sameId = entities.find((entity) => entity.id === id)
  return sameId ?? (first === undefined ? undefined : { ...first, rows: entities.flatMap(({ rows }) => rows) })
}

/** Requests have whole seconds, and a service may leave the fractions of its rows out of account. */
const edgeMargin = 2000

/** Whether rows lie outside the window (milliseconds), which shows that the service ignores its dates. */
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

/** Why an entity cannot be read completely, though the service answers for it. */
export const incomplete = {
  otherEntity: decodeError('the answer is about another entity than the requested one', '$.data.entities.id'),
  refusedKey: decodeError('the service refuses the scrollKey that it gave itself, three times'),
  endless: decodeError('its pages do not end'),
  cutOff: decodeError('the pages come again and lead no further, and the last of them is full'),
  changing: (rows: number) =>
    decodeError(`its ${rows} rows are others, or come in another order, each time they are read`),
}

/** Whether an error may say that a scroll key is no longer valid. */
export const isKeyRefusal = (error: ApiError): boolean =>
  isRefusalInBody(error) || (error._tag === 'Http' && [400, 404, 410].includes(error.status))

/**
 * Whether an error may be about an entity and not about the service: an error inside a 200, whose codes are not
 * specified, unless it is an outage, a rate limit or about the token; and a 403, 404 or 410, with which a service may
 * answer for a closed location.
 */
export const concernsEntity = (error: ApiError): boolean =>
  isRefusalInBody(error) || (error._tag === 'Http' && [403, 404, 410].includes(error.status))

/** Why entities were not read, and which, where one request was for them. */
export class EntityError extends Error {
  constructor(
    readonly error: ApiError,
    readonly entities?: Pick<EntityRequest, 'kind' | 'ids'>,
  ) {
    super(error._tag)
  }
}
