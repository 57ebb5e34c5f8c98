import * as O from 'fp-ts/Option'
import { CommandError } from '../command'
import { configFailure, type Failure } from '../failure'
import type { InputStream } from '../sink'
import type { DeadLetter, DeadLetters } from './dead-letters'
import type { DestinationStats, InputMessage } from './input'
import { hasOnlyRejections, type RecordCounts, type RejectPolicy, rejectionFailure, zeroCounts } from './reject-policy'

/** A record on its way; `outcome` is set once it is known. */
export type PendingRecord = { readonly inlet: string; readonly bytes: number; outcome?: 'accepted' | 'rejected' }

type PendingState = Extract<InputMessage, { _tag: 'State' }>

/** Records and states in the order they came in. */
export type AckQueue = {
  readonly addRecord: (inlet: string, bytes: number) => PendingRecord
  readonly addState: (state: PendingState) => void
  /** The lines of the states before which nothing is open any more, each once. */
  readonly takeDueLines: () => ReadonlyArray<string>
  /** What is not acknowledged yet: how many, and how long their records are together. */
  readonly pendingSize: () => { readonly count: number; readonly bytes: number }
}

const zeroStats: DestinationStats = { accepted: 0, rejected: 0 }

/** Answers states in order, each once every record before it has an outcome, with the counts since the state before it. */
export const createAckQueue = (): AckQueue => {
  let entries: Array<PendingRecord | PendingState> = []
  let head = 0
  let bytes = 0
  const counts = new Map<string, { accepted: number; rejected: number }>()

  const count = ({ inlet, outcome }: PendingRecord): void => {
    const counted = counts.get(inlet) ?? { ...zeroStats }
    counted[outcome ?? 'rejected'] += 1
    counts.set(inlet, counted)
  }
  const taken = (inlets: ReadonlyArray<string>): DestinationStats => {
    const sum = inlets
      .map((inlet) => counts.get(inlet) ?? zeroStats)
      .reduce((a, b) => ({ accepted: a.accepted + b.accepted, rejected: a.rejected + b.rejected }), zeroStats)
    for (const inlet of inlets) counts.delete(inlet)
    return sum
  }
  const due = (): ReadonlyArray<string> => {
    const lines: Array<string> = []
    for (let entry = entries[head]; entry !== undefined; entry = entries[++head])
      if ('answer' in entry)
        lines.push(entry.answer(taken(entry.inlet === undefined ? [...counts.keys()] : [entry.inlet])))
      else if (entry.outcome === undefined) break
      else {
        count(entry)
        bytes -= entry.bytes
      }
    if (head > 1024 && head * 2 > entries.length) {
      entries = entries.slice(head)
      head = 0
    }
    return lines
  }

  return {
    addRecord: (inlet, length) => {
      const receipt: PendingRecord = { inlet, bytes: length }
      entries.push(receipt)
      bytes += length
      return receipt
    },
    addState: (state) => {
      entries.push(state)
    },
    takeDueLines: due,
    pendingSize: () => ({ count: entries.length - head, bytes }),
  }
}

/** A record that came in; `nth` of its stream. */
export type TrackedRecord = {
  readonly stream: InputStream
  readonly ordinal: number
  /** The record as it came. */
  readonly json: () => Uint8Array
  readonly pending: PendingRecord
}

export type Rejection = Pick<DeadLetter, 'key' | 'reason' | 'batch'>

/** What became of each record, and which states may be answered. */
export type DeliveryTracker = {
  readonly openStream: (inlet: InputStream) => void
  readonly addRecord: (
    inlet: InputStream,
    record: Pick<Extract<InputMessage, { _tag: 'Record' }>, 'bytes' | 'json'>,
  ) => TrackedRecord
  readonly accept: (account: TrackedRecord) => void
  /** Answers why the run may not go on, if so; the record then stays open. */
  readonly reject: (account: TrackedRecord, rejection: Rejection) => O.Option<Failure>
  readonly addState: (state: Extract<InputMessage, { _tag: 'State' }>) => void
  /** Begins to answer the states that are due. */
  readonly acknowledge: () => void
  /** Settles once all that was begun is on disk and answered. */
  readonly flush: () => Promise<void>
  readonly pendingSize: () => { readonly count: number; readonly bytes: number }
  readonly countsOf: (inlet: string) => RecordCounts
}

export type DeliveryTrackerOptions = {
  readonly policy: RejectPolicy
  readonly deadLetters: DeadLetters
  readonly now: () => number
  readonly acknowledge: (line: string) => Promise<void>
  /** Nothing more can be answered. */
  readonly onOutputError: (error: unknown) => void
}

/** A state is answered once the dead letters before it are on disk, and none while a stream has nothing but rejected records. */
export const createDeliveryTracker = ({
  policy,
  deadLetters,
  now,
  acknowledge,
  onOutputError,
}: DeliveryTrackerOptions): DeliveryTracker => {
  const received = createAckQueue()
  const tallies = new Map<string, { -readonly [K in keyof RecordCounts]: RecordCounts[K] }>()
  let held: Array<string> = []
  let answering: Promise<void> = Promise.resolve()

  const tally = (inlet: string): RecordCounts => tallies.get(inlet) ?? zeroCounts
  const count = ({ id }: InputStream, what: keyof RecordCounts): RecordCounts => {
    const counted = tallies.get(id) ?? { ...zeroCounts }
    counted[what] += 1
    tallies.set(id, counted)
    return counted
  }
  const send = async (lines: ReadonlyArray<string>): Promise<void> => {
    await deadLetters.flush().catch((error: unknown) => {
      throw new CommandError(deadLetterFailure(error))
    })
    for (const line of lines) await acknowledge(line)
  }
  const begin = (lines: ReadonlyArray<string>): void => {
    answering = answering.then(() => send(lines))
    answering.catch(onOutputError)
  }

  return {
    openStream: ({ id }) => {
      tallies.set(id, { ...tally(id) })
    },
    addRecord: (inlet, { json, bytes }) => ({
      stream: inlet,
      json,
      ordinal: count(inlet, 'received').received,
      pending: received.addRecord(inlet.id, bytes),
    }),
    accept: ({ stream, pending }) => {
      pending.outcome = 'accepted'
      count(stream, 'accepted')
    },
    reject: ({ stream, ordinal, json, pending }, rejection) => {
      deadLetters.add({ stream: stream.name, object: stream.objectName, ...rejection, when: now(), record: json() })
      const failure = rejectionFailure(
        policy,
        stream.name,
        { nth: ordinal, reason: rejection.reason },
        count(stream, 'rejected'),
      )
      if (O.isNone(failure)) pending.outcome = 'rejected'
      return failure
    },
    addState: received.addState,
    acknowledge: () => {
      held.push(...received.takeDueLines())
      if (held.length === 0 || [...tallies.values()].some(hasOnlyRejections)) return
      begin(held)
      held = []
    },
    flush: () => {
      begin([])
      return answering
    },
    pendingSize: received.pendingSize,
    countsOf: tally,
  }
}

const deadLetterFailure = (error: unknown): Failure =>
  configFailure(
    `The dead-letter file cannot be written: ${error instanceof Error ? error.message : String(error)}. Make room, or choose another dead_letter_path.`,
  )
