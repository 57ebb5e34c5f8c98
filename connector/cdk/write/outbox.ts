import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { type Failure, unexpected } from '../failure'
import type { OpenSink } from '../sink'
import { type Size, takeBatch, type Waiting } from './pool'
import { type Final, settle } from './settle'

/** A record made ready, on its way to its sink. */
export type Parcel = Waiting & { readonly item: unknown; readonly settled: (verdict: Final, batch: number) => void }

/** Slots that all sinks of a run share, so that they share its budget of requests. */
export type Slots = { readonly take: () => boolean; readonly free: () => void; readonly nextBatch: () => number }

export type OutboxOptions = {
  readonly sink: Pick<OpenSink<unknown>, 'write' | 'answers'>
  readonly size: Size
  /** How long a record may wait for its batch to fill, milliseconds. */
  readonly maxAge: number
  readonly slots: Slots
  readonly now: () => number
  /** Calls back after so many milliseconds; answers how to call it off. */
  readonly after: (millis: number, callback: () => void) => () => void
  /** Those that must be empty before this one sends: what they hold may be referred to by what this one holds. */
  readonly before: ReadonlyArray<Outbox>
  /** Something was settled, or failed. */
  readonly changed: (failure?: Failure) => void
}

/** What waits for one sink and what is on its way to it. */
export type Outbox = {
  readonly add: (parcel: Parcel) => void
  /** Sends what can be sent now; with `rest`, batches that are not full too. */
  readonly pump: (rest?: boolean) => void
  /** Sends what waits now without waiting for full batches. */
  readonly hurry: () => void
  readonly isEmpty: () => boolean
  readonly isSending: () => boolean
  /** Sends nothing more. */
  readonly stop: () => void
}

export const outbox = ({ sink, size, maxAge, slots, now, after, before, changed }: OutboxOptions): Outbox => {
  let pool: Array<Parcel> = []
  let bytes = 0
  let count = size.count
  let resting = false
  let hurried = false
  let stopped = false
  let underway = 0
  let callOff: (() => void) | undefined
  const busy = new Set<string>()
  const send = settle(sink)

  const deliver = async (batch: ReadonlyArray<Parcel>): Promise<void> => {
    const number = slots.nextBatch()
    const result = await send(batch.map(({ item }) => item))().catch((error: unknown) => E.left(unexpected(error)))
    for (const { key } of batch) busy.delete(key)
    underway -= 1
    slots.free()
    if (E.isLeft(result)) return changed(result.left)
    const { verdicts, most } = result.right
    if (O.isSome(most)) count = Math.min(count, most.value)
    batch.forEach(({ settled }, index) => {
      const verdict = verdicts[index]
      if (verdict !== undefined) settled(verdict, number)
    })
    changed()
  }

  const isRipe = (): boolean => resting || hurried || now() - (pool[0]?.at ?? now()) >= maxAge
  const next = (): ReadonlyArray<Parcel> => {
    const { batch, rest } = takeBatch(pool, { ...size, count }, busy, isRipe())
    pool = [...rest]
    bytes = pool.reduce((sum, parcel) => sum + parcel.bytes, 0)
    hurried = hurried && pool.length > 0
    return batch
  }
  const isFull = (): boolean => pool.length >= count || bytes >= size.bytes
  const mayLaunch = (): boolean => !stopped && pool.length > 0 && (isFull() || isRipe())

  const isTurn = (): boolean => {
    const ahead = before.filter((box) => !box.isEmpty())
    for (const box of ahead) box.hurry()
    return ahead.length === 0
  }

  const launch = (): boolean => {
    if (!mayLaunch() || !isTurn() || !slots.take()) return false
    const batch = next()
    if (batch.length === 0) {
      slots.free()
      return false
    }
    for (const { key } of batch) busy.add(key)
    underway += 1
    void deliver(batch)
    return true
  }

  const pump: Outbox['pump'] = (rest = false) => {
    resting = resting || rest
    // Asked for each record, most of which only join those that wait for the alarm.
    if (callOff !== undefined && !resting && !hurried && !isFull()) return
    while (launch());
    const oldest = pool[0]
    if (stopped || resting || callOff !== undefined || oldest === undefined) return
    const wait = oldest.at + maxAge - now()
    // One that is ripe already only waits for a slot or for its key, and either comes with a change.
    if (wait > 0)
      callOff = after(wait, () => {
        callOff = undefined
        pump()
      })
  }

  return {
    add: (parcel) => {
      pool.push(parcel)
      bytes += parcel.bytes
    },
    pump,
    hurry: () => {
      if (hurried || pool.length === 0) return
      hurried = true
      pump()
    },
    isEmpty: () => pool.length === 0 && underway === 0,
    isSending: () => underway > 0,
    stop: () => {
      stopped = true
      pool = []
      callOff?.()
    },
  }
}

/** An outbox for each sink, which share the slots of a run; a sink may refer to what those before it hold. */
export const openBoxes = (
  {
    sinks,
    batch: { count, bytes, millis },
    inFlight,
    now,
    after,
  }: {
    readonly sinks: ReadonlyMap<string, OpenSink<unknown>>
    readonly batch: Size & { readonly millis: number }
    readonly inFlight: number
  } & Pick<OutboxOptions, 'now' | 'after'>,
  changed: OutboxOptions['changed'],
): ReadonlyMap<string, Outbox> => {
  let taken = 0
  let batches = 0
  const slots: Slots = {
    take: () => {
      if (taken >= inFlight) return false
      taken += 1
      return true
    },
    free: () => {
      taken -= 1
    },
    nextBatch: () => {
      batches += 1
      return batches
    },
  }
  const boxes = new Map<string, Outbox>()
  for (const [name, sink] of sinks)
    boxes.set(
      name,
      outbox({
        sink,
        size: { count, bytes },
        maxAge: millis,
        slots,
        now,
        after,
        before: [...boxes.values()],
        changed,
      }),
    )
  return boxes
}
