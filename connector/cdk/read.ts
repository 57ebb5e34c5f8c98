import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import type { Catalog, SourceState, StreamSelection } from './catalog'
import { configFailure, type Failure, unexpectedFailure } from './failure'
import type { Message, Row } from './message'
import type { Reader, ReaderEvent, Stream, StreamRequest } from './stream'

/** How many records, or milliseconds, may pass before a stream's next checkpoint is sent. */
export type CheckpointInterval = { readonly records: number; readonly millis: number }

export type ReadRun<Env> = {
  readonly streams: ReadonlyArray<Stream<Env>>
  readonly env: Env
  readonly catalog: Catalog
  readonly state: SourceState
  readonly now: () => number
  readonly checkpointInterval: CheckpointInterval
  /** Once aborted, nothing more is fetched and each stream under way says its last checkpoint. */
  readonly stop: AbortSignal
  /** Calls back whenever the service makes us wait, with the end in milliseconds since 1970; answers how to be left alone again. */
  readonly onWait: (listener: (until: number) => void) => () => void
}

type SelectedStream<Env> = { readonly stream: Stream<Env>; readonly selection: StreamSelection }

/** Reads the selected streams, those of one reader together, and says what happens. Ends early, without a word, when stopped. */
export async function* readStreams<Env>(run: ReadRun<Env>): AsyncGenerator<Message> {
  const byName = new Map(run.streams.map((stream) => [stream.name, stream]))
  for (const { name } of run.catalog)
    if (!byName.has(name)) yield { _tag: 'Failed', stream: name, failure: unknownStreamFailure(name, byName) }
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

const unknownStreamFailure = (name: string, known: ReadonlyMap<string, unknown>): Failure =>
  configFailure(
    `The catalog asks for a stream "${name}", which does not exist. Refresh the schema, or choose among ${[...known.keys()].join(', ')}.`,
  )

/** One stream's side of a pass: what it has sent, and the newest state that covers it. */
type ReadProgress = {
  readonly name: string
  pendingState: O.Option<() => unknown>
  lastText: O.Option<string>
  running: boolean
  /** Records since the last checkpoint sent. */
  count: number
  lastCheckpointAt: number
}

async function* readGroup<Env>(
  run: ReadRun<Env>,
  reader: Reader<Env, unknown>,
  group: ReadonlyArray<SelectedStream<Env>>,
): AsyncGenerator<Message> {
  const legs = new Map<string, ReadProgress>()
  for (const { stream, selection } of group) {
    const { name, schema, primaryKey, cursor } = stream
    legs.set(name, {
      name,
      pendingState: O.none,
      lastText: O.none,
      running: false,
      count: 0,
      lastCheckpointAt: run.now(),
    })
    yield { _tag: 'Started', stream: { name, schema, primaryKey, cursor, syncMode: syncModeOf(stream, selection) } }
  }
  const feed = reader
    .read(run.env)(group.map(streamRequestOf(run.state)))
    [Symbol.asyncIterator]()
  let next = pullNext(feed)
  for (;;) {
    const turn = run.stop.aborted ? 'stopped' : await nextOrInterrupt(run, next)
    if (turn === 'stopped') {
      for (const leg of legs.values()) yield* checkpointMessages(leg, run.now())
      return
    }
    if (typeof turn === 'number') {
      for (const leg of legs.values()) {
        yield { _tag: 'Waiting', stream: leg.name, until: turn }
        yield* checkpointMessages(leg, run.now())
      }
      continue
    }
    if (turn.done === true) {
      for (const leg of legs.values()) {
        yield* checkpointMessages(leg, run.now())
        yield { _tag: 'Finished', stream: leg.name }
      }
      return
    }
    if (E.isLeft(turn.value)) {
      for (const leg of legs.values()) yield* failureMessages(leg, run.now(), turn.value.left)
      return
    }
    yield* toMessages(run, legs, turn.value.right)
    // Only now: the bytes of rows last until the next reading is asked for.
    if (!run.stop.aborted) next = pullNext(feed)
  }
}

/** A feed should not throw; one that does is our fault, and the run still ends in order. */
const pullNext = async (
  feed: AsyncIterator<E.Either<Failure, ReaderEvent>>,
): Promise<IteratorResult<E.Either<Failure, ReaderEvent>>> =>
  feed.next().catch((error: unknown) => ({ done: false, value: E.left(unexpectedFailure(error)) }))

function* toMessages<Env>(
  run: ReadRun<Env>,
  legs: Map<string, ReadProgress>,
  reading: ReaderEvent,
): Generator<Message> {
  if (reading._tag === 'Note') {
    yield { _tag: 'Log', level: reading.level, message: reading.message }
    return
  }
  const leg = legs.get(reading.stream)
  if (leg === undefined) return
  if (reading._tag === 'Rows') {
    yield* recordMessages(leg, reading.rows, run.now())
    return
  }
  if (reading._tag === 'Failed') {
    legs.delete(leg.name)
    yield* failureMessages(leg, run.now(), reading.failure)
    return
  }
  leg.pendingState = O.some(reading.state)
  if (leg.count >= run.checkpointInterval.records || run.now() - leg.lastCheckpointAt >= run.checkpointInterval.millis)
    yield* checkpointMessages(leg, run.now())
}

function* recordMessages(leg: ReadProgress, rows: ReadonlyArray<Row>, at: number): Generator<Message> {
  if (rows.length === 0) return
  if (!leg.running) yield { _tag: 'Running', stream: leg.name }
  leg.running = true
  leg.count += rows.length
  yield { _tag: 'Records', stream: leg.name, rows, at }
}

function* failureMessages(leg: ReadProgress, at: number, failure: Failure): Generator<Message> {
  yield* checkpointMessages(leg, at)
  yield { _tag: 'Failed', stream: leg.name, failure }
}

/** Says the newest state, unless it is word for word the last one said: clients drop the counts of a repeated one. */
function* checkpointMessages(leg: ReadProgress, at: number): Generator<Message> {
  if (O.isNone(leg.pendingState)) return
  const state = leg.pendingState.value()
  const text = JSON.stringify(state)
  leg.pendingState = O.none
  leg.lastCheckpointAt = at
  if (O.isSome(leg.lastText) && leg.lastText.value === text) return
  leg.lastText = O.some(text)
  yield { _tag: 'Checkpoint', stream: leg.name, state, count: leg.count }
  leg.count = 0
}

const syncModeOf = <Env>(stream: Stream<Env>, { syncMode }: StreamSelection) =>
  stream.syncModes.includes(syncMode) ? syncMode : 'full_refresh'

const streamRequestOf =
  (state: SourceState) =>
  <Env>({ stream, selection }: SelectedStream<Env>): StreamRequest<unknown> => ({
    stream: stream.name,
    syncMode: syncModeOf(stream, selection),
    state: O.fromNullable(state[stream.name]),
    attributes: selection.attributes,
    project: stream.projector(),
  })

/** The next reading, unless a stop or a wait comes first. No race of promises: that would hold every page it ever saw. */
const nextOrInterrupt = <Env, A>({ stop, onWait }: ReadRun<Env>, next: Promise<A>): Promise<A | 'stopped' | number> =>
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
