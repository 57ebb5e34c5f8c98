import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { configFailure, type Failure } from '../failure'
import type { CheckpointMessage, Row, StateCounts } from '../message'
import type { InputStream } from '../sink'
import type { DeadLetter, DeadLetters } from './dead-letters'
import { hasOnlyRejections, type RecordCounts, type RejectPolicy, rejectionFailure, zeroCounts } from './reject-policy'

/**
 * The outcome of a record so far. Its text is kept only while it is pending, because the record may stay in the queue
 * for long after that.
 */
type RecordStatus =
  | { readonly _tag: 'Pending'; readonly row: Row }
  | { readonly _tag: 'Accepted' }
  | { readonly _tag: 'Rejected' }
  /** Rejected, and over the limit: no state of its stream may cover it. */
  | { readonly _tag: 'TooMany' }

/** A record in the queue. */
export type PendingRecord = {
  readonly stream: InputStream
  /** Counted from 1 within its stream. */
  readonly ordinal: number
  /** How much memory it uses. */
  readonly bytes: number
  status: RecordStatus
}

export type Rejection = Pick<DeadLetter, 'key' | 'reason' | 'batch'>

/** Why no further state can be emitted: the dead-letter file cannot be written, or the output threw `error`. */
export type AckError =
  | { readonly _tag: 'DeadLetters'; readonly failure: Failure }
  | { readonly _tag: 'Output'; readonly error: unknown }

export type AckQueueOptions = {
  readonly policy: RejectPolicy
  readonly deadLetters: DeadLetters
  readonly now: () => number
  /** Receives a state with its counts. Called for one state at a time, in order. */
  readonly emit: (checkpoint: CheckpointMessage) => Promise<void>
  /** Called at most once; nothing is emitted after it. */
  readonly onError: (error: AckError) => void
}

/** The records and states of a run in order of arrival, until each state is emitted. */
export type AckQueue = {
  readonly addRecord: (stream: InputStream, row: Row) => PendingRecord
  readonly addState: (state: CheckpointMessage) => void
  readonly accept: (record: PendingRecord) => void
  /**
   * Writes the dead letter. Returns a failure if the policy ends the run or, after too many rejections, the stream. No
   * state of the stream then covers the record.
   */
  readonly reject: (record: PendingRecord, rejection: Rejection) => O.Option<Failure>
  /**
   * Starts to emit every state that is due. States of a stream with only rejections wait; others do not wait for them.
   */
  readonly acknowledge: () => void
  /**
   * Resolves once all dead letters are on disk and all states started by `acknowledge` are emitted, or once `onError`
   * was called.
   */
  readonly flush: () => Promise<void>
  /** The entries not yet acknowledged, and the bytes of the records among them. */
  readonly pendingSize: () => { readonly count: number; readonly bytes: number }
  readonly countsOf: (streamId: string) => RecordCounts
}

type StreamCounters = {
  readonly total: { -readonly [K in keyof RecordCounts]: RecordCounts[K] }
  /** Records before the head of the queue that no state has counted yet. */
  uncounted: { accepted: number; rejected: number }
}

type QueueState = AckQueueOptions & {
  /** By stream id. */
  readonly counters: Map<string, StreamCounters>
  /** In order of arrival. Entries before `head` are acknowledged. */
  entries: Array<PendingRecord | CheckpointMessage>
  head: number
  pendingBytes: number
  /** States before the head that are not yet emitted. */
  dueStates: Array<CheckpointMessage>
  /** The streams that had one rejection too many. */
  readonly failedStreams: Set<string>
  /** The streams named by shared states. Later shared states carry their positions forward. */
  readonly sharedStreams: Set<string>
  isBroken: boolean
  /** Resolves when all emissions started so far have ended. */
  emission: Promise<void>
}

/** Roughly how much memory a record uses beside its text. */
const recordOverheadBytes = 64

const acceptedStatus: RecordStatus = { _tag: 'Accepted' }
const rejectedStatus: RecordStatus = { _tag: 'Rejected' }
const tooManyStatus: RecordStatus = { _tag: 'TooMany' }

/**
 * A state is due once every record before it is accepted or rejected. It is emitted after all earlier states of its
 * stream, and once the dead letters before it are on disk. It carries the numbers of records since the last state of
 * its stream.
 */
export const createAckQueue = (options: AckQueueOptions): AckQueue => {
  const queue: QueueState = {
    ...options,
    counters: new Map(),
    entries: [],
    head: 0,
    pendingBytes: 0,
    dueStates: [],
    failedStreams: new Set(),
    sharedStreams: new Set(),
    isBroken: false,
    emission: Promise.resolve(),
  }
  return {
    addRecord: (stream, row) => addRecord(queue, stream, row),
    addState: (state) => {
      queue.entries.push(state)
    },
    accept: (record) => {
      record.status = acceptedStatus
      countersOf(queue, record.stream.id).total.accepted += 1
    },
    reject: (record, rejection) => rejectRecord(queue, record, rejection),
    acknowledge: () => {
      advanceHead(queue)
      emitDueStates(queue)
    },
    flush: () => {
      startEmission(queue, [])
      return queue.emission
    },
    pendingSize: () => ({ count: queue.entries.length - queue.head, bytes: queue.pendingBytes }),
    countsOf: (streamId) => queue.counters.get(streamId)?.total ?? zeroCounts,
  }
}

const countersOf = ({ counters }: QueueState, streamId: string): StreamCounters => {
  const known = counters.get(streamId)
  if (known !== undefined) return known
  const created = { total: { ...zeroCounts }, uncounted: { accepted: 0, rejected: 0 } }
  counters.set(streamId, created)
  return created
}

const addRecord = (queue: QueueState, stream: InputStream, row: Row): PendingRecord => {
  const bytes = row.lineLength ?? row.json.length + recordOverheadBytes
  const { total } = countersOf(queue, stream.id)
  total.received += 1
  const record: PendingRecord = { stream, ordinal: total.received, bytes, status: { _tag: 'Pending', row } }
  queue.entries.push(record)
  queue.pendingBytes += bytes
  return record
}

const rejectRecord = (queue: QueueState, record: PendingRecord, rejection: Rejection): O.Option<Failure> => {
  const { stream, ordinal, status } = record
  const { policy, deadLetters, now } = queue
  if (status._tag !== 'Pending') return O.none
  const { total } = countersOf(queue, stream.id)
  total.rejected += 1
  deadLetters.add({
    stream: stream.origin ?? stream.id,
    object: stream.objectName,
    primaryKey: stream.key,
    deletes: stream.isDeletion,
    ...rejection,
    when: now(),
    record: status.row.json,
  })
  const failure = rejectionFailure(policy, stream.name, { ordinal, reason: rejection.reason }, total)
  if (O.isNone(failure)) record.status = rejectedStatus
  else if (policy.onReject === 'continue') record.status = tooManyStatus
  return failure
}

/** Moves the head past all entries up to the first pending record. */
const advanceHead = (queue: QueueState): void => {
  const { entries } = queue
  for (let entry = entries[queue.head]; entry !== undefined; entry = entries[++queue.head])
    if ('_tag' in entry) passState(queue, entry)
    else if (entry.status._tag === 'Pending') break
    else {
      if (entry.status._tag === 'TooMany') queue.failedStreams.add(entry.stream.id)
      const { uncounted } = countersOf(queue, entry.stream.id)
      uncounted[entry.status._tag === 'Accepted' ? 'accepted' : 'rejected'] += 1
      queue.pendingBytes -= entry.bytes
    }
  if (queue.head > 1024 && queue.head * 2 > entries.length) {
    queue.entries = entries.slice(queue.head)
    queue.head = 0
  }
}

/** Makes a state due, unless it covers a stream that failed. */
const passState = (queue: QueueState, state: CheckpointMessage): void => {
  if (state._tag === 'SharedCheckpoint') for (const { stream } of state.states) queue.sharedStreams.add(stream)
  if (coversAny(queue, state, queue.failedStreams)) return
  queue.dueStates.push({ ...state, counts: takeCounts(queue, state) })
}

/** True if a state covers one of the streams. A shared state that names none may cover all. */
const coversAny = ({ sharedStreams }: QueueState, state: CheckpointMessage, streams: ReadonlySet<string>): boolean =>
  state._tag === 'Checkpoint'
    ? streams.has(state.stream)
    : streams.size > 0 && (sharedStreams.size === 0 || [...streams].some((id) => sharedStreams.has(id)))

/** The counts for a state: those of its stream, or of all streams if it is shared. */
const takeCounts = (queue: QueueState, state: CheckpointMessage): StateCounts => {
  const sum = { accepted: 0, rejected: 0 }
  const all = state._tag === 'Checkpoint' ? [countersOf(queue, state.stream)] : queue.counters.values()
  for (const counted of all) {
    sum.accepted += counted.uncounted.accepted
    sum.rejected += counted.uncounted.rejected
    counted.uncounted = { accepted: 0, rejected: 0 }
  }
  return sum
}

/** Starts to emit the states that are due, except those of streams with only rejections. */
const emitDueStates = (queue: QueueState): void => {
  if (queue.dueStates.length === 0) return
  const barren = new Set([...queue.counters].flatMap(([id, { total }]) => (hasOnlyRejections(total) ? [id] : [])))
  const states = queue.dueStates.filter((state) => !coversAny(queue, state, barren))
  queue.dueStates = queue.dueStates.filter((state) => coversAny(queue, state, barren))
  if (states.length > 0) startEmission(queue, states)
}

const startEmission = (queue: QueueState, states: ReadonlyArray<CheckpointMessage>): void => {
  queue.emission = queue.emission.then(async () => {
    if (queue.isBroken) return
    const emitted = await emitStates(queue, states)()
    if (E.isRight(emitted)) return
    queue.isBroken = true
    queue.onError(emitted.left)
  })
}

const emitStates = (
  { deadLetters, emit }: QueueState,
  states: ReadonlyArray<CheckpointMessage>,
): TE.TaskEither<AckError, void> =>
  pipe(
    TE.tryCatch(() => deadLetters.flush(), toDeadLetterError),
    TE.flatMap(() =>
      TE.tryCatch(async () => {
        for (const state of states) await emit(state)
      }, toOutputError),
    ),
  )

const toOutputError = (error: unknown): AckError => ({ _tag: 'Output', error })

const toDeadLetterError = (error: unknown): AckError => ({
  _tag: 'DeadLetters',
  failure: configFailure(
    `The dead-letter file cannot be written: ${error instanceof Error ? error.message : String(error)}. ` +
      'Free up space, or choose another dead_letter_path.',
  ),
})
