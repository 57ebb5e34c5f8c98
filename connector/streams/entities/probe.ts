import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, isRefusalInBody } from '../../api'
import type { SourceEnv } from '../source-env'
import { type EntityOperation, isOutside } from './answer'
import { commentsOperation, publicReviewsOperation } from './operations'
import type { EntityKind } from './selection'

const day = 86_400_000

/** How far back the probe of an entity's window looks, days. */
export const probedDays = 365

/**
 * Why something was not found out: the service's error, no time or requests left, or a failure reported elsewhere.
 */
export type ProbeError = ApiError | { readonly _tag: 'Stopped' } | { readonly _tag: 'Failed' }

/** Sends a request, unless no more may be sent. */
export type ProbeGate = <A>(request: TaskEither<ApiError, A>) => TaskEither<ProbeError, A>

/** The operations whose windows are probed. */
export const windowOperations = [commentsOperation, publicReviewsOperation]

/** Whether the service uses fromDate and toDate, as an entity's rows show. Undefined: there are no rows to tell by. */
export const probeWindow = (
  operation: EntityOperation,
  source: SourceEnv,
  { kind, id }: Pick<ConfiguredEntity, 'kind' | 'id'>,
): TaskEither<ApiError, boolean | undefined> => {
  const fetch = operation.createFetch(source)
  const to = Math.floor(source.now() / 1000) * 1000
  const from = to - probedDays * day
  const year = { kind, ids: [id], from, to, page: operation.firstPage }
  const second = { ...year, to: from + 1000 }
  return pipe(
    fetch(year),
    TE.flatMap((page) => {
      if (isOutside(year, page)) return TE.right(false)
      // Rows of the first second are in both windows.
      if (!isOutside(second, page)) return TE.right(undefined)
      return pipe(
        fetch(second),
        TE.map((answer) => !isOutside(second, answer)),
      )
    }),
  )
}

/** An identifier of the config, with its key path. */
type ConfiguredEntity = { readonly key: string; readonly kind: EntityKind; readonly id: string }

export const listConfiguredEntities = ({
  entities: { persons, locations, entities },
}: Pick<SourceEnv, 'entities'>): ReadonlyArray<ConfiguredEntity> => [
  ...persons.map((id) => ({ key: 'entities.person_ids', kind: 'person', id }) as const),
  ...locations.map((id) => ({ key: 'entities.location_ids', kind: 'location', id }) as const),
  ...entities.map((id) => ({ key: 'entities.entity_ids', kind: 'entity', id }) as const),
]

/** What the service says of the configured entities. */
export type EntityFacts = {
  readonly total: number
  /** Those that it does not list, each with the reason. */
  readonly unknown: ReadonlyArray<ConfiguredEntity & { readonly reason: string }>
  /** How many were not asked for. */
  readonly unasked: number
}

/** The most entities that are asked for one by one, and the most groups. */
const maxSingles = 8
const maxGroups = 4

/** Sent always: deployments have other defaults, which hide entities with few ratings. */
const noThresholds = { minRatingCount: -1, minSurveyCount: 0, minWordCount: 0 }

/** An error that may be about one entity, in words. */
const describeRefusal = (error: ProbeError): string | undefined => {
  if (error._tag === 'Http') return [400, 403, 404, 410].includes(error.status) ? `status ${error.status}` : undefined
  return error._tag === 'Application' && isRefusalInBody(error) ? 'an error in the answer' : undefined
}

/**
 * Asks for the summaries of all entities, many at once, and once more for each that is missing: a group's answer may be
 * cut, or list its entities under other ids.
 */
export const probeEntities =
  (source: SourceEnv, send: ProbeGate): TaskEither<ProbeError, EntityFacts> =>
  async () => {
    const all = listConfiguredEntities(source)
    const filters = { ...noThresholds, days: probedDays, page: 1, showComments: false }
    const askGroup = (group: ReadonlyArray<ConfiguredEntity>) =>
      send(
        source.api.retrieveCommentsByForm({
          ...filters,
          perPage: commentsOperation.maxIdentifiers,
          [`${group[0]?.kind}Id`]: group.map(({ id }) => id),
        }),
      )()
    const askOne = ({ kind, id }: ConfiguredEntity) =>
      send(source.api.retrieveComments({ ...filters, perPage: 1, [`${kind}Id`]: id }))()
    const singles: ConfiguredEntity[] = []
    let unasked = 0
    for (const [i, group] of groupByKind(all).entries()) {
      if (group.length === 1) singles.push(...group)
      else if (i >= maxGroups) unasked += group.length
      else {
        const answer = await askGroup(group)
        const listed = new Set(E.isRight(answer) ? answer.right.data.entities.map(({ id }) => id) : [])
        singles.push(...group.filter(({ id }) => !listed.has(id)))
      }
    }
    const asked = singles.slice(0, maxSingles)
    unasked += singles.length - asked.length
    const unknown: Array<EntityFacts['unknown'][number]> = []
    let refusal: ProbeError | undefined
    for (const [i, entity] of asked.entries()) {
      const answer = await askOne(entity)
      if (E.isRight(answer)) {
        if (answer.right.data.entities.length === 0) unknown.push({ ...entity, reason: 'nothing is listed for it' })
        continue
      }
      refusal = answer.left
      const reason = describeRefusal(answer.left)
      if (reason === undefined) {
        unasked += asked.length - i
        break
      }
      unknown.push({ ...entity, reason })
    }
    // A service that answers for no entity, and not because it does not know them, is at fault itself.
    const isAtFault = unknown.length + unasked === all.length && unknown.every(({ reason }) => /40[03]/.test(reason))
    return refusal !== undefined && isAtFault ? E.left(refusal) : E.right({ total: all.length, unknown, unasked })
  }

/** Entities of one kind, as many as one request may have. */
const groupByKind = (all: ReadonlyArray<ConfiguredEntity>): ReadonlyArray<ReadonlyArray<ConfiguredEntity>> => {
  const { maxIdentifiers: size } = commentsOperation
  return (['person', 'location', 'entity'] as const).flatMap((kind) => {
    const ofKind = all.filter((entity) => entity.kind === kind)
    return Array.from({ length: Math.ceil(ofKind.length / size) }, (_, n) => ofKind.slice(n * size, (n + 1) * size))
  })
}
