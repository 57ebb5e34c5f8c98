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

/** How many days back the probe of an entity's window looks. */
export const probedDays = 365

/** Why something is unknown: the service's error, no time or requests left, or a failure reported elsewhere. */
export type ProbeError = ApiError | { readonly _tag: 'Stopped' } | { readonly _tag: 'Failed' }

/** Sends a request, unless no more may be sent. */
export type ProbeGate = <A>(request: TaskEither<ApiError, A>) => TaskEither<ProbeError, A>

/** The operations whose windows are probed. */
export const windowOperations = [commentsOperation, publicReviewsOperation]

/** Resolves to true if the service uses fromDate and toDate, judging by an entity's rows. Undefined without rows. */
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

/** What the service says about the configured entities. */
export type EntityFacts = {
  readonly total: number
  /** The entities that it does not list, each with the reason. */
  readonly unknown: ReadonlyArray<ConfiguredEntity & { readonly reason: string }>
  /** How many were not checked. */
  readonly unasked: number
}

/** The most entities requested one by one, and the most groups. */
const maxSingles = 8
const maxGroups = 4

/** Always sent: some deployments have defaults that hide entities with few ratings. */
const noThresholds = { minRatingCount: -1, minSurveyCount: 0, minWordCount: 0 }

/** Describes an error that may concern one entity. */
const describeRefusal = (error: ProbeError): string | undefined => {
  if (error._tag === 'Http') return [400, 403, 404, 410].includes(error.status) ? `status ${error.status}` : undefined
  return error._tag === 'Application' && isRefusalInBody(error) ? 'an error in the answer' : undefined
}

/**
 * Requests the summaries of all entities, many at once, and again for each missing one: a group's answer may be cut
 * off, or list its entities under other ids.
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
    // A service that answers for no entity, for other reasons than not knowing them, is at fault itself.
    const isAtFault = unknown.length + unasked === all.length && unknown.every(({ reason }) => /40[03]/.test(reason))
    return refusal !== undefined && isAtFault ? E.left(refusal) : E.right({ total: all.length, unknown, unasked })
  }

/** Entities grouped by kind, as many as one request may have. */
const groupByKind = (all: ReadonlyArray<ConfiguredEntity>): ReadonlyArray<ReadonlyArray<ConfiguredEntity>> => {
  const { maxIdentifiers: size } = commentsOperation
  return (['person', 'location', 'entity'] as const).flatMap((kind) => {
    const ofKind = all.filter((entity) => entity.kind === kind)
    return Array.from({ length: Math.ceil(ofKind.length / size) }, (_, n) => ofKind.slice(n * size, (n + 1) * size))
  })
}
