import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { type ApiError, toInstant, toMillis } from '../../api'
import type { SourceEnv } from '../source-env'
import type { EntityKind } from './entities'

const day = 86_400_000

/** How far back the probe of an entity's window looks, days. */
export const probedDays = 365

/** Why something was not found out: the service's error, no time or requests left, or a failure that is told elsewhere. */
export type ProbeError = ApiError | { readonly _tag: 'Stopped' | 'Failed' }

/** Sends a request, unless no more may be sent. */
export type ProbeGate = <A>(request: TaskEither<ApiError, A>) => TaskEither<ProbeError, A>

/** Sent always: deployments have other defaults, which hide entities with few ratings. */
const noThresholds = { minRatingCount: -1, minSurveyCount: 0, minWordCount: 0 }

/** Whether a service heeds fromDate and toDate, and what shows it: rows, or only the echo of the filter. */
export type WindowEvidence = { readonly isHeeded: boolean; readonly by: 'rows' | 'echo' }

type TimeSpan = { readonly from: number; readonly to: number }

/** What an answer shows of its window: its rows' times, and the window it echoes. */
type WindowAnswer = { readonly times: ReadonlyArray<number>; readonly echo: TimeSpan | undefined }

const toWindowAnswer = (
  rows: ReadonlyArray<{ readonly mentionTime: string }>,
  filter: Readonly<Record<string, unknown>> | null | undefined,
): WindowAnswer => {
  const period = t.UnknownRecord.is(filter?.period) ? filter.period : {}
  const from = toMillis(String(filter?.fromDate ?? period.from))
  const to = toMillis(String(filter?.toDate ?? period.to))
  return {
    times: rows.map(({ mentionTime }) => toMillis(mentionTime)),
    echo: Number.isNaN(from + to) ? undefined : { from, to },
  }
}

/** Deployments refuse fractions of a second. */
const toWholeSeconds = (time: number): string => toInstant(time).replace(/\.\d+Z$/, 'Z')

type WindowOperation = {
  readonly name: string
  readonly ask: (source: SourceEnv, entity: object, window: TimeSpan) => TaskEither<ApiError, WindowAnswer>
}

/** The operations whose windows are probed. */
export const windowOperations: ReadonlyArray<WindowOperation> = [
  {
    name: 'retrieve comments',
    ask: ({ api, feedback }, entity, { from, to }) =>
      pipe(
        api.retrieveComments({
          ...entity,
          ...noThresholds,
          fromDate: toWholeSeconds(from),
          toDate: toWholeSeconds(to),
          page: 1,
          perPage: feedback.perPage,
        }),
        TE.map(({ data }) =>
          toWindowAnswer(
            data.entities.flatMap(({ comments }) => comments ?? []),
            data.filter,
          ),
        ),
      ),
  },
  {
    name: 'retrieve reviews',
    ask: ({ api, feedback }, entity, { from, to }) =>
      pipe(
        api.retrieveReviews({
          ...entity,
          ...noThresholds,
          fromDate: toWholeSeconds(from),
          toDate: toWholeSeconds(to),
          days: probedDays + 1,
          page: 0,
          perPage: feedback.perPage,
        }),
        TE.map(({ data }) =>
          toWindowAnswer(
            data.entities.flatMap(({ reviews }) => reviews ?? []),
            data.filter,
          ),
        ),
      ),
  },
]

const isOutside = ({ from, to }: TimeSpan, { times }: WindowAnswer): boolean =>
  times.some((time) => time < from - day || time > to + day)

/**
 * Asks for an entity's newest rows and then for those of the first second of the same window, which the newest are not in.
 * Undefined: there are no rows to tell by, and no echo.
 */
export const probeWindow = (
  { ask }: WindowOperation,
  source: SourceEnv,
  { kind, id }: Pick<ConfiguredEntity, 'kind' | 'id'>,
  send: ProbeGate,
): TaskEither<ProbeError, WindowEvidence | undefined> => {
  const from = Math.floor(source.now() / 1000) * 1000 - probedDays * day
  const entity = { [`${kind}Id`]: id }
  const second = { from, to: from + 1000 }
  return pipe(
    TE.Do,
    TE.apS('newest', send(ask(source, entity, { from, to: from + probedDays * day }))),
    TE.bind('oldest', () => send(ask(source, entity, second))),
    TE.map(({ newest, oldest }): WindowEvidence | undefined => {
      if (isOutside(second, oldest)) return { isHeeded: false, by: 'rows' }
      // What the echo says is only believed where no rows can tell.
      if (isOutside(second, newest)) return { isHeeded: true, by: 'rows' }
      const { echo } = oldest
      // An echo may be of a narrower window.
      return echo === undefined ? undefined : { isHeeded: echo.from >= second.from && echo.to <= second.to, by: 'echo' }
    }),
  )
}

/** An identifier of the config, with its key path. */
export type ConfiguredEntity = { readonly key: string; readonly kind: EntityKind; readonly id: string }

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

/** The most entities of a request, those that are asked for one by one, and the most groups. */
const maxGroupSize = 50
const maxSingles = 8
const maxGroups = 4

/** An error that may be about one entity, in words. */
const describeRefusal = (error: ProbeError): string | undefined => {
  if (error._tag === 'Application') return 'an error in the answer'
  return error._tag === 'Http' && [400, 403, 404, 410].includes(error.status) ? `status ${error.status}` : undefined
}

/**
 * Asks for the summaries of all entities, many at once, and once more for each that is missing: a group's answer may be cut, or
 * list its entities under other ids.
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
          perPage: maxGroupSize,
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
  return (['person', 'location', 'entity'] as const).flatMap((kind) => {
    const ofKind = all.filter((entity) => entity.kind === kind)
    return Array.from({ length: Math.ceil(ofKind.length / maxGroupSize) }, (_, n) =>
      ofKind.slice(n * maxGroupSize, (n + 1) * maxGroupSize),
    )
  })
}
