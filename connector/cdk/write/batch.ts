import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { type Failure, unexpectedFailure } from '../failure'
import type { OpenSink } from '../sink'
import { deliverBatch, type FinalVerdict } from './delivery'

/** Something that waits to be sent; `at`: since when, milliseconds. */
export type BatchItem = { readonly key: string; readonly bytes: number; readonly at: number }

/** When a batch is full. */
export type BatchSize = { readonly count: number; readonly bytes: number }

/**
 * The next batch and what stays. An item waits while its key is in `busy`, in the batch or before it in the pool, so that the
 * items of one key are sent one after the other. Unless `ripe`, only a full batch leaves; none at all is an empty one.
 */
export const takeBatch = <W extends BatchItem>(
  pool: ReadonlyArray<W>,
  size: BatchSize,
  busy: ReadonlySet<string>,
  ripe: boolean,
): { readonly batch: ReadonlyArray<W>; readonly rest: ReadonlyArray<W> } => {
  const batch: Array<W> = []
  const rest: Array<W> = []
  const seen = new Set<string>()
  let bytes = 0
  let full = false
  for (const item of pool) {
    const blocked = full || busy.has(item.key) || seen.has(item.key)
    if (!full) seen.add(item.key)
    if (blocked) rest.push(item)
    else if (batch.length > 0 && bytes + item.bytes > size.bytes) {
      full = true
      rest.push(item)
    } else {
      batch.push(item)
      bytes += item.bytes
      full = batch.length >= size.count || bytes >= size.bytes
    }
  }
  return full || ripe ? { batch, rest } : { batch: [], rest: pool }
}

/** A record made ready, on its way to its sink. */
export type QueuedItem = BatchItem & {
  readonly item: unknown
  readonly onVerdict: (verdict: FinalVerdict, batch: number) => void
}

/** Slots that all sinks of a run share, so that they share its budget of requests. */
export type BatchSlots = {
  readonly acquire: () => boolean
  readonly release: () => void
  readonly nextBatchNumber: () => number
}

export type BatcherOptions = {
  readonly sink: Pick<OpenSink<unknown>, 'write' | 'isReachable'>
  readonly size: BatchSize
  /** How long a record may wait for its batch to fill, milliseconds. */
  readonly maxAge: number
  readonly slots: BatchSlots
  readonly now: () => number
  /** Calls back after so many milliseconds; answers how to call it off. */
  readonly setTimer: (millis: number, callback: () => void) => () => void
  /** Those that must be empty before this one sends: what they hold may be referred to by what this one holds. */
  readonly predecessors: ReadonlyArray<Batcher>
  /** Something was settled, or failed. */
  readonly onChange: (failure?: Failure) => void
}

/** What waits for one sink and what is on its way to it. */
export type Batcher = {
  readonly add: (parcel: QueuedItem) => void
  /** Sends what can be sent now; with `rest`, batches that are not full too. */
  readonly sendReady: (rest?: boolean) => void
  /** Sends what waits now without waiting for full batches. */
  readonly sendWaiting: () => void
  readonly isEmpty: () => boolean
  readonly isSending: () => boolean
  /** Sends nothing more. */
  readonly stop: () => void
}

export const createBatcher = ({
  sink,
  size,
  maxAge,
  slots,
  now,
  setTimer,
  predecessors,
  onChange,
}: BatcherOptions): Batcher => {
  let pool: Array<QueuedItem> = []
  let bytes = 0
  let count = size.count
  let resting = false
  let hurried = false
  let stopped = false
  let underway = 0
  let callOff: (() => void) | undefined
  const busy = new Set<string>()
  const send = deliverBatch(sink)

  const deliver = async (batch: ReadonlyArray<QueuedItem>): Promise<void> => {
    const number = slots.nextBatchNumber()
    const result = await send(batch.map(({ item }) => item))().catch((error: unknown) =>
      E.left(unexpectedFailure(error)),
    )
    for (const { key } of batch) busy.delete(key)
    underway -= 1
    slots.release()
    if (E.isLeft(result)) return onChange(result.left)
    const { verdicts, maxItems } = result.right
    if (O.isSome(maxItems)) count = Math.min(count, maxItems.value)
    batch.forEach(({ onVerdict }, index) => {
      const verdict = verdicts[index]
      if (verdict !== undefined) onVerdict(verdict, number)
    })
    onChange()
  }

  const isRipe = (): boolean => resting || hurried || now() - (pool[0]?.at ?? now()) >= maxAge
  const next = (): ReadonlyArray<QueuedItem> => {
    const { batch, rest } = takeBatch(pool, { ...size, count }, busy, isRipe())
    pool = [...rest]
    bytes = pool.reduce((sum, parcel) => sum + parcel.bytes, 0)
    hurried = hurried && pool.length > 0
    return batch
  }
  const isFull = (): boolean => pool.length >= count || bytes >= size.bytes
  const mayLaunch = (): boolean => !stopped && pool.length > 0 && (isFull() || isRipe())

  const isTurn = (): boolean => {
    const ahead = predecessors.filter((box) => !box.isEmpty())
    for (const box of ahead) box.sendWaiting()
    return ahead.length === 0
  }

  const launch = (): boolean => {
    if (!mayLaunch() || !isTurn() || !slots.acquire()) return false
    const batch = next()
    if (batch.length === 0) {
      slots.release()
      return false
    }
    for (const { key } of batch) busy.add(key)
    underway += 1
    void deliver(batch)
    return true
  }

  const pump: Batcher['sendReady'] = (rest = false) => {
    resting = resting || rest
    // Asked for each record, most of which only join those that wait for the alarm.
    if (callOff !== undefined && !resting && !hurried && !isFull()) return
    while (launch());
    const oldest = pool[0]
    if (stopped || resting || callOff !== undefined || oldest === undefined) return
    const wait = oldest.at + maxAge - now()
    // One that is ripe already only waits for a slot or for its key, and either comes with a change.
    if (wait > 0)
      callOff = setTimer(wait, () => {
        callOff = undefined
        pump()
      })
  }

  return {
    add: (parcel) => {
      pool.push(parcel)
      bytes += parcel.bytes
    },
    sendReady: pump,
    sendWaiting: () => {
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
export const createBatchers = (
  {
    sinks,
    batch: { count, bytes, millis },
    inFlight,
    now,
    setTimer,
  }: {
    readonly sinks: ReadonlyMap<string, OpenSink<unknown>>
    readonly batch: BatchSize & { readonly millis: number }
    readonly inFlight: number
  } & Pick<BatcherOptions, 'now' | 'setTimer'>,
  changed: BatcherOptions['onChange'],
): ReadonlyMap<string, Batcher> => {
  let taken = 0
  let batches = 0
  const slots: BatchSlots = {
    acquire: () => {
      if (taken >= inFlight) return false
      taken += 1
      return true
    },
    release: () => {
      taken -= 1
    },
    nextBatchNumber: () => {
      batches += 1
      return batches
    },
  }
  const boxes = new Map<string, Batcher>()
  for (const [name, sink] of sinks)
    boxes.set(
      name,
      createBatcher({
        sink,
        size: { count, bytes },
        maxAge: millis,
        slots,
        now,
        setTimer,
        predecessors: [...boxes.values()],
        onChange: changed,
      }),
    )
  return boxes
}
