import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { filtersDigest } from '../../api/scan/marker'
import type { Failure } from '../../cdk/failure'
import { andThen, chainEither, type Feed, following, items } from '../../cdk/feed'
import type { Row } from '../../cdk/message'
import type { Demand, Reader, Reading } from '../../cdk/stream'
import { selecting } from '../selecting'
import type { Source } from '../source'
import { type Entity, type Found, keyOf, withEntities } from './entity'
import { gathering } from './gathering'
import { heeding } from './heed'
import type { Operation } from './listing'
import { ahead, nobody, refiltered } from './notes'
import { progressOf, windowFrom } from './progress'
import type { Records } from './records'
import type { Task } from './span'
import { cursorOf, type EntityState, noState, type Partitions, readState, writeState } from './state'
import { type Outcome, readWindows } from './windows'

const day = 86_400_000

/** An operation, and how what it lists becomes records. */
export type Feedback = Operation & { readonly records: Records }

/** Reads feedback under entities: each entity is a partition with a cursor of its own. */
export const feedbackReader = (feedback: Feedback): Reader<Source, Row> => ({
  name: feedback.name,
  read: (source) => (demands) => {
    const [demand] = demands
    if (demand === undefined) return items()
    return following(TE.fromEither(readState(demand.stream, demand.state)), (held) => {
      const state = demand.syncMode === 'full_refresh' && !held.refreshing ? anew(held) : held
      const filters = digestOfFilters(source)
      const feed = withEntities(source, demand, state, (found) => {
        const idle = isAhead(source, state) ? ahead(demand.stream) : nobody(demand.stream)
        return found.entities.length === 0 || isAhead(source, state)
          ? items<Failure, Reading>(E.right(idle), E.right(unchanged(demand.stream, source, state)))
          : readPartitions(feedback, source, demand, state, found)
      })
      return state.filters === undefined || state.filters === filters
        ? feed
        : andThen(() => feed)(items<Failure, Reading>(E.right(refiltered(demand.stream))))
    })
  },
})

/** What of the config's filters decides which rows there are. */
const digestOfFilters = ({ feedback: { thresholds, additionalFields } }: Source): string =>
  filtersDigest({ ...thresholds, ...(additionalFields === undefined ? {} : { additionalFields }) })

/** By the clock here, which may be off by a day: a cursor beyond that is of no use to any entity, a new one neither. */
const isAhead = ({ now }: Source, { fromDate }: EntityState): boolean =>
  O.isSome(fromDate) && fromDate.value > now() + day

const anew = ({ partitions, reviews }: EntityState): EntityState => ({
  ...noState,
  partitions: Object.fromEntries(
    Object.entries(partitions).flatMap(([key, { seen }]) => (seen ? [[key, { seen }]] : [])),
  ),
  reviews,
})

const unchanged = (stream: string, { startDate }: Source, state: EntityState): Reading => ({
  _tag: 'Checkpoint',
  stream,
  state: () => writeState(O.getOrElse(() => startDate)(state.fromDate), { ...state, refreshing: false }),
})

const readPartitions = (
  feedback: Feedback,
  source: Source,
  demand: Demand<Row>,
  before: EntityState,
  found: Found,
): Feed<Failure, Reading> => {
  const { stream } = demand
  const lookback = source.feedback.lookbackDays * day
  const begun: Partitions = Object.fromEntries(
    found.entities.map((entity) => {
      const { seen: _, ...standing } = before.partitions[keyOf(entity)] ?? {}
      return [keyOf(entity), { ...standing, ...seenOf(entity) }]
    }),
  )
  const take = gathering(feedback, source, found.entities, (entity) => {
    const standing = begun[keyOf(entity)] ?? {}
    return progressOf(cursorOf(standing), standing.digest ?? '', lookback)
  })
  // A state must not see what came after it: it is built of the first so many entries.
  const log: Array<readonly [key: string, partition: Partitions[string]]> = []
  const checkpoint = (finished: boolean): Reading => {
    const count = log.length
    return {
      _tag: 'Checkpoint',
      stream,
      state: () =>
        writeState(O.getOrElse(() => source.startDate)(before.fromDate), {
          filters: digestOfFilters(source),
          partitions: { ...begun, ...Object.fromEntries(log.slice(0, count)) },
          reviews: found.reviews,
          refreshing: !finished && demand.syncMode === 'full_refresh',
        }),
    }
  }
  const select = selecting(demand.attributes)
  const toReadings = ({ parts, until, notes }: Outcome): E.Either<Failure, ReadonlyArray<Reading>> =>
    pipe(
      parts,
      E.traverseArray((part) => take(part, until)),
      E.map((taken) => {
        for (const { entity, standing } of taken)
          if (O.isSome(standing)) log.push([keyOf(entity), { ...standing.value, ...seenOf(entity) }])
        const rows = taken.flatMap((one) => one.rows.map(select))
        return [
          ...notes.map((note): Reading => ({ _tag: 'Note', ...note })),
          ...taken.flatMap((one) => one.notes),
          ...(rows.length === 0 ? [] : [{ _tag: 'Rows', stream, rows } as const]),
          checkpoint(false),
        ]
      }),
    )

  return pipe(
    readWindows(
      { operation: feedback, fetch: heeding(feedback.ask(source)), now: source.now, concurrency: source.concurrency },
      tasksOf(feedback, found.entities, (entity) =>
        windowFrom(cursorOf(begun[keyOf(entity)] ?? {}), source.startDate, lookback),
      ),
    ),
    chainEither(toReadings),
    andThen(() => items<Failure, Reading>(E.right(checkpoint(true)))),
  )
}

const seenOf = ({ seen }: Entity): { readonly seen?: true } => (seen ? { seen: true } : {})

/** Entities of one kind whose windows begin at the same time are asked for together. */
export const tasksOf = (
  { most }: Operation,
  entities: ReadonlyArray<Entity>,
  fromOf: (entity: Entity) => number,
): ReadonlyArray<Task> => {
  const groups = new Map<string, { readonly kind: Entity['kind']; readonly from: number; readonly ids: string[] }>()
  for (const entity of entities) {
    const from = fromOf(entity)
    const key = `${entity.kind} ${from}`
    const group = groups.get(key) ?? { kind: entity.kind, from, ids: [] }
    group.ids.push(entity.id)
    groups.set(key, group)
  }
  return [...groups.values()].flatMap(({ kind, from, ids }) =>
    Array.from({ length: Math.ceil(ids.length / most) }, (_, n) => ({
      kind,
      from,
      to: undefined,
      ids: ids.slice(n * most, (n + 1) * most),
    })),
  )
}
