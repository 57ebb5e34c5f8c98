import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import type { Catalog, SourceState, StreamSelection } from './catalog'
import { configFailure, type Failure, unexpectedFailure } from './failure'
import type { Message } from './message'
import { defined } from './schema'
import type { HoldsRows, Reader, ReaderEvent, Stream, StreamRequest } from './stream'

/** How many records of a stream, or milliseconds, may pass between two checkpoints. */
export type CheckpointInterval = { readonly records: number; readonly millis: number }

export type ReadRun<Env> = {
  readonly streams: ReadonlyArray<Stream<Env>>
  readonly env: Env
  readonly catalog: Catalog
  readonly state: SourceState
  /** All the states that the caller has, including those from which this run does not continue. Defaults to `state`. */
  readonly previous?: SourceState
  readonly holdsRows?: HoldsRows
  /** The consumer makes the rows of streams that have a derivation. */
  readonly derives?: boolean
  readonly now: () => number
  readonly checkpointInterval: CheckpointInterval
  /** Once aborted, nothing more is fetched, and each open stream sends its last checkpoint. */
  readonly stop: AbortSignal
  /**
   * Calls `listener` whenever the service makes the run wait, with the end of the wait in milliseconds since 1970.
   * Returns a function that unsubscribes.
   */
  readonly onWait: (listener: (until: number) => void) => () => void
}

type SelectedStream<Env> = { readonly stream: Stream<Env>; readonly selection: StreamSelection }

/**
 * Reads the selected streams and yields the messages of the run. Streams of the same reader are read together. A stop
 * ends the run early, without a further message.
 */
export async function* readStreams<Env>(run: ReadRun<Env>): AsyncGenerator<Message> {
  const byName = new Map(run.streams.map((stream) => [stream.name, stream]))
  for (const { name } of run.catalog)
    if (!byName.has(name)) yield { _tag: 'Failed', stream: name, failure: unknownStreamFailure(name, byName) }
  const selected = run.streams.flatMap((stream) => {
    const selection = run.catalog.find(({ name }) => name === stream.name)
    return selection === undefined ? [] : [{ stream, selection }]
  })
  const interrupts = listenForInterrupts(run)
  let runFailure: Failure | undefined
  try {
    for (const reader of new Set(selected.map(({ stream }) => stream.reader))) {
      if (run.stop.aborted) return
      const group = selected.filter(({ stream }) => stream.reader === reader)
      const messages =
        runFailure === undefined ? readGroup(run, interrupts, reader, group) : failGroup(group, runFailure)
      for await (const message of messages) {
        const isForAll = message._tag === 'Failed' && message.failure.scope === 'run'
        yield isForAll ? { ...message, isRepeated: runFailure !== undefined } : message
        if (isForAll) runFailure ??= message.failure
      }
    }
  } finally {
    interrupts.close()
  }
}

/** Fails the streams of a group that is no longer requested. */
function* failGroup<Env>(group: ReadonlyArray<SelectedStream<Env>>, failure: Failure): Generator<Message> {
  for (const { stream, selection } of group) {
    yield startedMessage(stream, selection)
    yield { _tag: 'Failed', stream: stream.name, failure }
  }
}

const startedMessage = <Env>(stream: Stream<Env>, selection: StreamSelection): Message => {
  const { name, schema, primaryKey, cursor, derivation } = stream
  const info = { name, schema, primaryKey, cursor, syncMode: syncModeOf(stream, selection) }
  return { _tag: 'Started', stream: { ...info, ...defined({ derivation }) } }
}

const unknownStreamFailure = (name: string, known: ReadonlyMap<string, unknown>): Failure =>
  configFailure(
    `The catalog asks for a stream "${name}", which does not exist. ` +
      `Refresh the schema, or choose among ${[...known.keys()].join(', ')}.`,
  )

/** What a stream has sent in this run, and its newest state that is not yet sent. */
type ReadProgress = {
  readonly name: string
  /** The consumer makes its rows from the records that are sent, so only the consumer can count them. */
  readonly isMade: boolean
  pendingState: O.Option<() => unknown>
  lastText: O.Option<string>
  isRunning: boolean
  /** Its records since the last checkpoint that was sent, or the records from which its rows are made. */
  recordCount: number
  lastCheckpointAt: number
  /** Its next checkpoint will be sent. */
  isDue: boolean
}

async function* readGroup<Env>(
  run: ReadRun<Env>,
  interrupts: Interrupts,
  reader: Reader<Env, unknown>,
  group: ReadonlyArray<SelectedStream<Env>>,
): AsyncGenerator<Message> {
  const progressByStream = new Map<string, ReadProgress>()
  const requests = group.map(streamRequestOf(run))
  for (const [i, { stream, selection }] of group.entries()) {
    const { name } = stream
    progressByStream.set(name, {
      name,
      isMade: requests[i]?.derives === true && stream.derivation?._tag !== 'record',
      pendingState: O.none,
      lastText: O.none,
      isRunning: false,
      recordCount: 0,
      lastCheckpointAt: run.now(),
      isDue: false,
    })
    yield startedMessage(stream, selection)
  }
  const feed = reader.read(run.env)(requests)[Symbol.asyncIterator]()
  let next = pullNext(feed)
  let reportedWaitEnd: number | undefined
  for (;;) {
    const event = await nextOrInterrupt(run, interrupts, reportedWaitEnd, next)
    if (event === 'stopped') {
      for (const progress of progressByStream.values()) yield* checkpointMessages(progress, run.now())
      return
    }
    if (typeof event === 'number') {
      reportedWaitEnd = event
      // The states come first, so that a consumer that commits when it learns of the wait has all of them.
      for (const progress of progressByStream.values()) yield* checkpointMessages(progress, run.now())
      for (const { name } of progressByStream.values()) yield { _tag: 'Waiting', stream: name, until: event }
      continue
    }
    // A platform assumes that a stream no longer waits once it sends something.
    reportedWaitEnd = undefined
    if (event.done === true) {
      for (const progress of progressByStream.values()) {
        yield* checkpointMessages(progress, run.now())
        yield { _tag: 'Finished', stream: progress.name }
      }
      return
    }
    if (E.isLeft(event.value)) {
      for (const progress of progressByStream.values()) yield* failureMessages(progress, run.now(), event.value.left)
      return
    }
    yield* toMessages(run, progressByStream, event.value.right)
    // Not earlier: the bytes of the rows are valid only until the next event is pulled.
    if (!run.stop.aborted) next = pullNext(feed)
  }
}

/** A feed must not throw. If one does, its streams still end with a failure. */
const pullNext = async (
  feed: AsyncIterator<E.Either<Failure, ReaderEvent>>,
): Promise<IteratorResult<E.Either<Failure, ReaderEvent>>> =>
  feed.next().catch((error: unknown) => ({ done: false, value: E.left(unexpectedFailure(error)) }))

function* toMessages<Env>(
  run: ReadRun<Env>,
  progressByStream: Map<string, ReadProgress>,
  event: ReaderEvent,
): Generator<Message> {
  if (event._tag === 'Note') {
    yield { ...event, _tag: 'Log' }
    return
  }
  if (event._tag === 'SharedRows') {
    yield* sharedMessages(progressByStream, event, run.now())
    return
  }
  const progress = progressByStream.get(event.stream)
  if (progress === undefined) return
  if (event._tag === 'Rows') {
    yield* recordMessages(progress, event, run.now())
    return
  }
  if (event._tag === 'Failed') {
    progressByStream.delete(progress.name)
    yield* failureMessages(progress, run.now(), event.failure)
    return
  }
  progress.pendingState = O.some(event.state)
  const group = [...progressByStream.values()]
  if (!progress.isDue && isCheckpointDue(run, group)) for (const each of group) each.isDue = true
  if (progress.isDue) yield* checkpointMessages(progress, run.now())
}

/**
 * True if the streams of a group should send their next checkpoints. They do so together, after the configured number
 * of records of a stream on average. A resumed run continues from the oldest of their states, so a stream with few
 * records must not hold back the others.
 */
const isCheckpointDue = <Env>(
  { checkpointInterval: { records, millis }, now }: ReadRun<Env>,
  group: ReadonlyArray<ReadProgress>,
): boolean =>
  group.reduce((sum, { recordCount }) => sum + recordCount, 0) >= records * group.length ||
  group.some(({ pendingState, lastCheckpointAt }) => O.isSome(pendingState) && now() - lastCheckpointAt >= millis)

function* sharedMessages(
  progressByStream: ReadonlyMap<string, ReadProgress>,
  { streams: names, rows, hasUndeclared }: ReaderEvent & { readonly _tag: 'SharedRows' },
  at: number,
): Generator<Message> {
  const open = names.flatMap((name) => progressByStream.get(name) ?? [])
  if (rows.length === 0 || open.length === 0) return
  for (const progress of open) {
    if (!progress.isRunning) yield { _tag: 'Running', stream: progress.name }
    progress.isRunning = true
    progress.recordCount += rows.length
  }
  yield { _tag: 'SharedRecords', streams: open.map(({ name }) => name), rows, hasUndeclared, at }
}

function* recordMessages(
  progress: ReadProgress,
  { rows, total }: ReaderEvent & { readonly _tag: 'Rows' },
  at: number,
): Generator<Message> {
  if (rows.length === 0) return
  if (!progress.isRunning) yield { _tag: 'Running', stream: progress.name, ...defined({ total }) }
  progress.isRunning = true
  progress.recordCount += rows.length
  yield { _tag: 'Records', stream: progress.name, rows, at }
}

function* failureMessages(progress: ReadProgress, at: number, failure: Failure): Generator<Message> {
  yield* checkpointMessages(progress, at)
  yield { _tag: 'Failed', stream: progress.name, failure }
}

/** Sends the newest state, unless it equals the last one sent: clients drop the counts of a repeated state. */
function* checkpointMessages(progress: ReadProgress, at: number): Generator<Message> {
  if (O.isNone(progress.pendingState)) return
  const state = progress.pendingState.value()
  const text = JSON.stringify(state)
  progress.pendingState = O.none
  progress.lastCheckpointAt = at
  progress.isDue = false
  if (O.isSome(progress.lastText) && progress.lastText.value === text) return
  progress.lastText = O.some(text)
  yield { _tag: 'Checkpoint', stream: progress.name, state, count: progress.isMade ? Number.NaN : progress.recordCount }
  progress.recordCount = 0
}

const syncModeOf = <Env>(stream: Stream<Env>, { syncMode }: StreamSelection) =>
  stream.syncModes.includes(syncMode) ? syncMode : 'full_refresh'

const streamRequestOf =
  <Env>({ state, previous = state, holdsRows, derives = false }: ReadRun<Env>) =>
  ({ stream, selection }: SelectedStream<Env>): StreamRequest<unknown> => {
    const syncMode = syncModeOf(stream, selection)
    return {
      stream: stream.name,
      syncMode,
      state: O.fromNullable(state[stream.name]),
      attributes: selection.attributes,
      project: stream.projector(),
      derives: derives && stream.derivation !== undefined && O.isNone(selection.attributes),
      replaces: selection.replaces ?? syncMode === 'full_refresh',
      ...defined({ previous: previous[stream.name], holdsRows }),
    }
  }

/** What may interrupt a run before its next event. */
type Interrupts = {
  /** The latest end of a wait so far, in milliseconds since 1970. */
  waitEnd: number
  /** Called when the run is stopped, and when a wait begins. */
  onInterrupt: () => void
  readonly close: () => void
}

/** Listens for stops and waits until it is closed. A wait may also begin while prefetched pages are sent. */
const listenForInterrupts = <Env>({ stop, onWait }: ReadRun<Env>): Interrupts => {
  const interrupts: Interrupts = {
    waitEnd: Number.NEGATIVE_INFINITY,
    onInterrupt: () => undefined,
    close: () => {
      stop.removeEventListener('abort', onStop)
      unsubscribe()
    },
  }
  const onStop = () => interrupts.onInterrupt()
  stop.addEventListener('abort', onStop)
  const unsubscribe = onWait((until) => {
    interrupts.waitEnd = Math.max(interrupts.waitEnd, until)
    interrupts.onInterrupt()
  })
  return interrupts
}

/**
 * The next event. Returns early if the run is stopped, or if the event is not ready and the run must wait beyond
 * `reportedWaitEnd`; in that case, with the end of that wait. Promise.race would keep every page in memory until the
 * stop.
 */
const nextOrInterrupt = <Env, A>(
  { stop, now }: ReadRun<Env>,
  interrupts: Interrupts,
  reportedWaitEnd: number | undefined,
  next: Promise<A>,
): Promise<A | 'stopped' | number> =>
  new Promise((resolve) => {
    interrupts.onInterrupt = () => {
      const { waitEnd } = interrupts
      if (stop.aborted) resolve('stopped')
      // A prefetched event arrives before the next turn of the event loop, so before the wait is reported.
      else if (waitEnd > now() && waitEnd !== reportedWaitEnd) setImmediate(resolve, waitEnd)
    }
    interrupts.onInterrupt()
    void next.then(resolve)
  })
