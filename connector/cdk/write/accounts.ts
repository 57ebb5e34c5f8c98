import * as O from 'fp-ts/Option'
import { Stopped } from '../cli'
import { configFailure, type Failure } from '../failure'
import type { Inlet } from '../sink'
import type { Arrival } from './arrival'
import type { DeadLetter, DeadLetters } from './dead-letters'
import { type Receipt, receipts } from './receipts'
import { isBarren, judge, type RejectPolicy, type Tally, untouched } from './reject-policy'

/** A record that came in; `nth` of its stream. */
export type Account = {
  readonly inlet: Inlet
  readonly nth: number
  /** The record as it came. */
  readonly json: () => Uint8Array
  readonly receipt: Receipt
}

export type Rejection = Pick<DeadLetter, 'key' | 'reason' | 'batch'>

/** What became of each record, and which states may be answered. */
export type Accounts = {
  readonly open: (inlet: Inlet) => void
  readonly receive: (inlet: Inlet, record: Pick<Extract<Arrival, { _tag: 'Record' }>, 'bytes' | 'json'>) => Account
  readonly accept: (account: Account) => void
  /** Answers why the run may not go on, if so; the record then stays open. */
  readonly reject: (account: Account, rejection: Rejection) => O.Option<Failure>
  readonly state: (state: Extract<Arrival, { _tag: 'State' }>) => void
  /** Begins to answer the states that are due. */
  readonly answer: () => void
  /** Settles once all that was begun is on disk and answered. */
  readonly settled: () => Promise<void>
  readonly unacknowledged: () => { readonly count: number; readonly bytes: number }
  readonly tally: (inlet: string) => Tally
}

export type Books = {
  readonly policy: RejectPolicy
  readonly deadLetters: DeadLetters
  readonly now: () => number
  readonly answer: (line: string) => Promise<void>
  /** Nothing more can be answered. */
  readonly broken: (error: unknown) => void
}

/** A state is answered once the dead letters before it are on disk, and none while a stream has nothing but rejected records. */
export const accounts = ({ policy, deadLetters, now, answer, broken }: Books): Accounts => {
  const received = receipts()
  const tallies = new Map<string, { -readonly [K in keyof Tally]: Tally[K] }>()
  let held: Array<string> = []
  let answering: Promise<void> = Promise.resolve()

  const tally = (inlet: string): Tally => tallies.get(inlet) ?? untouched
  const count = ({ id }: Inlet, what: keyof Tally): Tally => {
    const counted = tallies.get(id) ?? { ...untouched }
    counted[what] += 1
    tallies.set(id, counted)
    return counted
  }
  const send = async (lines: ReadonlyArray<string>): Promise<void> => {
    await deadLetters.flush().catch((error: unknown) => {
      throw new Stopped(notKept(error))
    })
    for (const line of lines) await answer(line)
  }
  const begin = (lines: ReadonlyArray<string>): void => {
    answering = answering.then(() => send(lines))
    answering.catch(broken)
  }

  return {
    open: ({ id }) => {
      tallies.set(id, { ...tally(id) })
    },
    receive: (inlet, { json, bytes }) => ({
      inlet,
      json,
      nth: count(inlet, 'received').received,
      receipt: received.record(inlet.id, bytes),
    }),
    accept: ({ inlet, receipt }) => {
      receipt.outcome = 'accepted'
      count(inlet, 'accepted')
    },
    reject: ({ inlet, nth, json, receipt }, rejection) => {
      deadLetters.add({ stream: inlet.name, object: inlet.object, ...rejection, when: now(), record: json() })
      const failure = judge(policy, inlet.name, { nth, reason: rejection.reason }, count(inlet, 'rejected'))
      if (O.isNone(failure)) receipt.outcome = 'rejected'
      return failure
    },
    state: received.state,
    answer: () => {
      held.push(...received.due())
      if (held.length === 0 || [...tallies.values()].some(isBarren)) return
      begin(held)
      held = []
    },
    settled: () => {
      begin([])
      return answering
    },
    unacknowledged: received.open,
    tally,
  }
}

const notKept = (error: unknown): Failure =>
  configFailure(
    `The dead-letter file cannot be written: ${error instanceof Error ? error.message : String(error)}. Make room, or choose another dead_letter_path.`,
  )
