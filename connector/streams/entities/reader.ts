import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { toFailure } from '../../api/error'
import type { Cut } from '../../api/page'
import { signpost } from '../../api/scan/signpost'
import type { Failure } from '../../cdk/failure'
import { andThen, chainEither, type Feed, following, items } from '../../cdk/feed'
import type { Row } from '../../cdk/message'
import type { Demand, Reader, Reading } from '../../cdk/stream'
import { selecting } from '../selecting'
import type { Source } from '../source'
import { type Entity, findEntities, type Kind, keyOf } from './entity'
import type { Listing, Operation } from './listing'
import { cursorOf, digestOf, type EntityState, hashOf, noState, readState, writeState } from './state'
import { type Outcome, readWindows, type Task } from './windows'

const second = 1000
const day = 86_400_000
const floorToSecond = (time: number): number => Math.floor(time / second) * second

/** An operation, and how what it lists becomes records. */
export type Feedback = Operation & {
  /** The records of a listing, checked; a failure says at which attribute the answer breaks. */
  readonly records: (source: Source) => (entity: Entity, listing: Listing) => E.Either<Failure, ReadonlyArray<Cut>>
}

/** What is held of an entity until its window has come whole. */
type Progress = {
  readonly entity: Entity
  /** Milliseconds; none on its first reading. */
  readonly cursor: O.Option<number>
  windows: number
  readonly ids: Set<string>
  /** Rows that the next window will serve again, and those that the last one served already: id and hash. */
  readonly next: Map<string, string>
  readonly old: Map<string, string>
  /** Rows up to the old cursor, which leave only if their digest has changed. */
  readonly held: Row[]
}

/** Reads feedback under entities: each entity is a partition with a cursor of its own. */
export const feedbackReader = (feedback: Feedback): Reader<Source, Row> => ({
  name: feedback.name,
  read: (source) => (demands) => {
    const [demand] = demands
    if (demand === undefined) return items()
    return following(
      pipe(
        TE.fromEither(readState(demand.stream, demand.state)),
        TE.map((state) => (demand.syncMode === 'full_refresh' ? { ...noState, partitions: onlySeen(state) } : state)),
        TE.bindTo('state'),
        TE.bind('found', ({ state }) => findEntities(source, state)),
      ),
      ({ state, found }) =>
        found.entities.length === 0
          ? items<Failure, Reading>(E.right(nobody(demand.stream)), E.right(unchanged(demand.stream, source, state)))
          : following(timeOf(feedback, source, found.entities), ([now, notes]) =>
              andThen(() =>
                isAhead(state, now)
                  ? items<Failure, Reading>(
                      E.right(ahead(demand.stream)),
                      E.right(unchanged(demand.stream, source, state)),
                    )
                  : readPartitions(feedback, source, demand, state, found, now),
              )(items(...notes.map((note) => E.right<Failure, Reading>({ _tag: 'Note', ...note })))),
            ),
    )
  },
})

const isAhead = ({ fromDate }: EntityState, now: number): boolean =>
  O.isSome(fromDate) && Date.parse(fromDate.value) > now

const ahead = (stream: string): Reading => ({
  _tag: 'Note',
  level: 'warn',
  message: `${stream}: its cursor lies ahead of the service's time, so nothing is read until then. If that is a mistake, refresh the stream.`,
})

const onlySeen = ({ partitions }: EntityState): EntityState['partitions'] =>
  Object.fromEntries(Object.entries(partitions).flatMap(([key, { seen }]) => (seen === true ? [[key, { seen }]] : [])))

/** Said where the config names no entities. */
export const nobody = (stream: string): Reading => ({
  _tag: 'Note',
  level: 'warn',
  message: `${stream}: the config names no entities, so there is nothing to read. Set entities.`,
})

const unchanged = (stream: string, source: Source, { fromDate, partitions, reviews }: EntityState): Reading => ({
  _tag: 'Checkpoint',
  stream,
  state: () => writeState(O.isSome(fromDate) ? Date.parse(fromDate.value) : source.startDate, partitions, reviews),
})

/** The service's time, from an answer about nothing but the first entity's last second. */
const timeOf = (
  feedback: Feedback,
  source: Source,
  [entity]: ReadonlyArray<Entity>,
): TaskEither<Failure, ReturnType<typeof signpost>> => {
  const { kind, id } = entity as Entity
  const to = floorToSecond(source.now())
  return pipe(
    feedback.ask(source)({ kind, ids: [id], from: to - second, to, page: feedback.firstPage }),
    TE.bimap(
      (error) => toFailure(feedback.name, error),
      ({ servedAt }) => signpost(servedAt, source.now()),
    ),
  )
}

const readPartitions = (
  feedback: Feedback,
  source: Source,
  demand: Demand<Row>,
  state: EntityState,
  found: { readonly entities: ReadonlyArray<Entity>; readonly reviews: unknown },
  now: number,
): Feed<Failure, Reading> => {
  const lookback = source.feedback.lookbackDays * day
  const select = selecting(demand.attributes)
  const progress = new Map<string, Progress>(
    found.entities.map((entity) => {
      const cursor = cursorOf(state, keyOf(entity))
      return [keyOf(entity), { entity, cursor, windows: 1, ids: new Set(), next: new Map(), old: new Map(), held: [] }]
    }),
  )
  const before = O.isSome(state.fromDate) ? Date.parse(state.fromDate.value) : source.startDate
  const partitions: Record<string, EntityState['partitions'][string]> = Object.fromEntries(
    found.entities.map((entity) => {
      const key = keyOf(entity)
      return [key, { ...state.partitions[key], ...(entity.seen ? { seen: true } : {}) }]
    }),
  )
  const done = (one: Progress): ReadonlyArray<Row> => {
    const key = keyOf(one.entity)
    const changed = O.isNone(one.cursor) || digestOf(one.old) !== state.partitions[key]?.digest
    partitions[key] = {
      fromDate: new Date(now).toISOString(),
      digest: digestOf(one.next),
      ...(one.entity.seen ? { seen: true } : {}),
    }
    progress.delete(key)
    return changed ? one.held : []
  }

  const take = (one: Progress, cut: Cut): ReadonlyArray<Row> => {
    if (one.ids.has(cut.id)) return []
    one.ids.add(cut.id)
    const hash = hashOf(cut.raw)
    if (cut.modifiedTime >= floorToSecond(now - lookback) && cut.modifiedTime <= now) one.next.set(cut.id, hash)
    const row = select(cut)
    if (O.isNone(one.cursor) || cut.modifiedTime > one.cursor.value) return [row]
    if (cut.modifiedTime >= floorToSecond(one.cursor.value - lookback)) one.old.set(cut.id, hash)
    one.held.push(row)
    return []
  }

  const rowsOf = ({ whole, cut }: Outcome, kind: Kind): E.Either<Failure, ReadonlyArray<Row>> => {
    for (const id of cut) {
      const one = progress.get(`${kind}:${id}`)
      if (one !== undefined) one.windows += 1
    }
    return pipe(
      whole,
      E.traverseArray(({ id, listing }) => {
        const one = progress.get(`${kind}:${id}`)
        if (one === undefined) return E.right<Failure, ReadonlyArray<Row>>([])
        return pipe(
          listing === undefined
            ? E.right<Failure, ReadonlyArray<Cut>>([])
            : feedback.records(source)(one.entity, listing),
          E.map((cuts) => {
            const rows = cuts.flatMap((row) => take(one, row))
            one.windows -= 1
            return one.windows === 0 ? [...rows, ...done(one)] : rows
          }),
        )
      }),
      E.map((rows) => rows.flat()),
    )
  }

  const checkpoint = (at: number): Reading => ({
    _tag: 'Checkpoint',
    stream: demand.stream,
    state: () => writeState(at, partitions, found.reviews),
  })

  const kinds = [...new Set(found.entities.map(({ kind }) => kind))]
  const readKind = (kind: Kind): Feed<Failure, Reading> =>
    pipe(
      readWindows(feedback, feedback.ask(source), tasksOf(feedback, source, [...progress.values()], kind, now)),
      chainEither((outcome: Outcome) =>
        pipe(
          rowsOf(outcome, kind),
          E.map((rows): ReadonlyArray<Reading> => [{ _tag: 'Rows', stream: demand.stream, rows }, checkpoint(before)]),
        ),
      ),
    )
  const all = kinds
    .map(readKind)
    .reduceRight<Feed<Failure, Reading>>((rest, feed) => andThen(() => rest)(feed), items())
  return andThen(() => items<Failure, Reading>(E.right(checkpoint(now))))(all)
}

/** Entities that stand at the same time are asked for together. */
const tasksOf = (
  feedback: Feedback,
  source: Source,
  all: ReadonlyArray<Progress>,
  kind: Kind,
  now: number,
): ReadonlyArray<Task> => {
  const groups = new Map<number, string[]>()
  for (const { entity, cursor } of all.filter((one) => one.entity.kind === kind)) {
    const since = O.isNone(cursor) ? source.startDate : cursor.value - source.feedback.lookbackDays * day
    const from = floorToSecond(since) - second
    const ids = groups.get(from) ?? []
    ids.push(entity.id)
    groups.set(from, ids)
  }
  return [...groups].flatMap(([from, ids]) =>
    Array.from({ length: Math.ceil(ids.length / feedback.most) }, (_, n) => ({
      kind,
      from,
      to: now,
      ids: ids.slice(n * feedback.most, (n + 1) * feedback.most),
    })),
  )
}
