import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import type { Catalog, Selection, State } from './catalog'
import { configFailure, type Failure, unexpected } from './failure'
import type { Message, Row } from './message'
import type { Demand, Reader, Reading, Stream } from './stream'

/** How many records, or milliseconds, may pass before a stream's next checkpoint is sent. */
export type Cadence = { readonly records: number; readonly millis: number }

export type Run<Env> = {
  readonly streams: ReadonlyArray<Stream<Env>>
  readonly env: Env
  readonly catalog: Catalog
  readonly state: State
  readonly now: () => number
  readonly cadence: Cadence
  /** Once aborted, nothing more is fetched and each stream under way says its last checkpoint. */
  readonly stop: AbortSignal
  /** Calls back whenever the service makes us wait, with the end in milliseconds since 1970; answers how to be left alone again. */
  readonly onWait: (listener: (until: number) => void) => () => void
}

type Selected<Env> = { readonly stream: Stream<Env>; readonly selection: Selection }

/** Reads the selected streams, those of one reader together, and says what happens. Ends early, without a word, when stopped. */
export async function* read<Env>(run: Run<Env>): AsyncGenerator<Message> {
  const byName = new Map(run.streams.map((stream) => [stream.name, stream]))
  for (const { name } of run.catalog)
    if (!byName.has(name)) yield { _tag: 'Failed', stream: name, failure: noSuchStream(name, byName) }
  const selected = run.streams.flatMap((stream) => {
    const selection = run.catalog.find(({ name }) => name === stream.name)
    return selection === undefined ? [] : [{ stream, selection }]
  })
  for (const reader of new Set(selected.map(({ stream }) => stream.reader))) {
    if (run.stop.aborted) return
    yield* readGroup(
      run,
      reader,
      selected.filter(({ stream }) => stream.reader === reader),
    )
  }
}

const noSuchStream = (name: string, known: ReadonlyMap<string, unknown>): Failure =>
  configFailure(
    `The catalog asks for a stream "${name}", which does not exist. Refresh the schema, or choose among ${[...known.keys()].join(', ')}.`,
  )

/** One stream's side of a pass: what it has sent, and the newest state that covers it. */
type Leg = {
  readonly name: string
  pending: O.Option<() => unknown>
  said: O.Option<string>
  running: boolean
  /** Records since the last checkpoint sent. */
  count: number
  saidAt: number
}

async function* readGroup<Env>(
  run: Run<Env>,
  reader: Reader<Env, unknown>,
  group: ReadonlyArray<Selected<Env>>,
): AsyncGenerator<Message> {
  const legs = new Map<string, Leg>()
  for (const { stream, selection } of group) {
    const { name, schema, primaryKey, cursor } = stream
    legs.set(name, { name, pending: O.none, said: O.none, running: false, count: 0, saidAt: run.now() })
    yield { _tag: 'Started', stream: { name, schema, primaryKey, cursor, syncMode: modeOf(stream, selection) } }
  }
  const feed = reader
    .read(run.env)(group.map(demandOf(run.state)))
    [Symbol.asyncIterator]()
  let next = pull(feed)
  for (;;) {
    const turn = run.stop.aborted ? 'stopped' : await firstOf(run, next)
    if (turn === 'stopped') {
      for (const leg of legs.values()) yield* checkpoint(leg, run.now())
      return
    }
    if (typeof turn === 'number') {
      for (const leg of legs.values()) {
        yield { _tag: 'Waiting', stream: leg.name, until: turn }
        yield* checkpoint(leg, run.now())
      }
      continue
    }
    if (turn.done === true) {
      for (const leg of legs.values()) {
        yield* checkpoint(leg, run.now())
        yield { _tag: 'Finished', stream: leg.name }
      }
      return
    }
    if (E.isLeft(turn.value)) {
      for (const leg of legs.values()) yield* failed(leg, run.now(), turn.value.left)
      return
    }
    yield* say(run, legs, turn.value.right)
    // Only now: a state is built from where its reader stands, and must not see what comes after it.
    if (!run.stop.aborted) next = pull(feed)
  }
}

/** A feed should not throw; one that does is our fault, and the run still ends in order. */
const pull = async (
  feed: AsyncIterator<E.Either<Failure, Reading>>,
): Promise<IteratorResult<E.Either<Failure, Reading>>> =>
  feed.next().catch((error: unknown) => ({ done: false, value: E.left(unexpected(error)) }))

function* say<Env>(run: Run<Env>, legs: Map<string, Leg>, reading: Reading): Generator<Message> {
  if (reading._tag === 'Note') {
    yield { _tag: 'Log', level: reading.level, message: reading.message }
    return
  }
  const leg = legs.get(reading.stream)
  if (leg === undefined) return
  if (reading._tag === 'Rows') {
    yield* records(leg, reading.rows, run.now())
    return
  }
  if (reading._tag === 'Failed') {
    legs.delete(leg.name)
    yield* failed(leg, run.now(), reading.failure)
    return
  }
  leg.pending = O.some(reading.state)
  if (leg.count >= run.cadence.records || run.now() - leg.saidAt >= run.cadence.millis)
    yield* checkpoint(leg, run.now())
}

function* records(leg: Leg, rows: ReadonlyArray<Row>, at: number): Generator<Message> {
  if (rows.length === 0) return
  if (!leg.running) yield { _tag: 'Running', stream: leg.name }
  leg.running = true
  leg.count += rows.length
  yield { _tag: 'Records', stream: leg.name, rows, at }
}

function* failed(leg: Leg, at: number, failure: Failure): Generator<Message> {
  yield* checkpoint(leg, at)
  yield { _tag: 'Failed', stream: leg.name, failure }
}

/** Says the newest state, unless it is word for word the last one said: clients drop the counts of a repeated one. */
function* checkpoint(leg: Leg, at: number): Generator<Message> {
  if (O.isNone(leg.pending)) return
  const state = leg.pending.value()
  const text = JSON.stringify(state)
  leg.pending = O.none
  leg.saidAt = at
  if (O.isSome(leg.said) && leg.said.value === text) return
  leg.said = O.some(text)
  yield { _tag: 'Checkpoint', stream: leg.name, state, count: leg.count }
  leg.count = 0
}

const modeOf = <Env>(stream: Stream<Env>, { syncMode }: Selection) =>
  stream.syncModes.includes(syncMode) ? syncMode : 'full_refresh'

const demandOf =
  (state: State) =>
  <Env>({ stream, selection }: Selected<Env>): Demand<unknown> => ({
    stream: stream.name,
    syncMode: modeOf(stream, selection),
    state: O.fromNullable(state[stream.name]),
    attributes: selection.attributes,
    project: stream.projector(),
  })

/** The next reading, unless a stop or a wait comes first. No race of promises: that would hold every page it ever saw. */
const firstOf = <Env, A>({ stop, onWait }: Run<Env>, next: Promise<A>): Promise<A | 'stopped' | number> =>
  new Promise((resolve) => {
    const settle = (turn: A | 'stopped' | number) => {
      stop.removeEventListener('abort', onStop)
      leave()
      resolve(turn)
    }
    const onStop = () => settle('stopped')
    const leave = onWait(settle)
    stop.addEventListener('abort', onStop)
    if (stop.aborted) settle('stopped')
    else void next.then(settle)
  })
