import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { type Failure, unexpectedFailure } from '../failure'
import type { OpenSink } from '../sink'
import type { PendingRecord } from './acknowledge'
import { deliverBatch, type FinalVerdict } from './delivery'

/** An item to send. `queuedAt`: when it was queued, in milliseconds. */
export type BatchItem = { readonly key: string; readonly bytes: number; readonly queuedAt: number }

/** When a batch is full. */
type BatchSize = { readonly count: number; readonly bytes: number }

/**
 * Takes the next batch from a queue. Items with the same key are sent one after the other: an item stays in the queue
 * while another one with its key is in flight, in the batch or ahead of it. Without `flush`, the batch is empty unless
 * it is full.
 */
export const takeBatch = <Item extends BatchItem>(
  queue: ReadonlyArray<Item>,
  size: BatchSize,
  keysInFlight: ReadonlySet<string>,
  flush: boolean,
): { readonly batch: ReadonlyArray<Item>; readonly rest: ReadonlyArray<Item> } => {
  const batch: Array<Item> = []
  const rest: Array<Item> = []
  const keys = new Set<string>()
  let bytes = 0
  let full = false
  for (const item of queue) {
    const blocked = full || keysInFlight.has(item.key) || keys.has(item.key)
    keys.add(item.key)
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
  return full || flush ? { batch, rest } : { batch: [], rest: queue }
}

/** A prepared item on its way to its sink. */
type QueuedItem = BatchItem & {
  readonly objectName: string
  readonly item: unknown
  /** The record that the item was made from; undefined if the sink itself added it at the end of the input. */
  readonly record: PendingRecord | undefined
}

/** The slots for batches in flight. All sinks of a run share them, because they share its request budget. */
type BatchSlots = {
  readonly acquire: () => boolean
  readonly release: () => void
  /** Counted from 1. */
  readonly nextBatchNumber: () => number
}

type BatcherOptions = {
  readonly sink: Pick<OpenSink<unknown>, 'write' | 'isReachable'>
  readonly size: BatchSize
  /** How long an item may wait for its batch to fill, in milliseconds. */
  readonly maxAge: number
  readonly slots: BatchSlots
  readonly now: () => number
  /** Calls back after this many milliseconds. Returns a function that cancels the call. */
  readonly setTimer: (millis: number, callback: () => void) => () => void
  /** Batchers that must be empty before this one sends, because its items may refer to theirs. */
  readonly predecessors: ReadonlyArray<Batcher>
  readonly onVerdict: (item: QueuedItem, verdict: FinalVerdict, batchNumber: number) => void
  /** Called after a batch was delivered and its verdicts processed, or after it failed. */
  readonly onDelivery: (failure?: Failure) => void
}

/** Collects the items of one sink and sends them in batches. */
type Batcher = {
  readonly add: (item: QueuedItem) => void
  /** Sends every batch that is full or has waited long enough, as long as slots are free. */
  readonly sendReady: () => void
  /** Sends all waiting items now, even in batches that are not full. */
  readonly flush: () => void
  readonly isEmpty: () => boolean
  readonly isSending: () => boolean
  readonly stop: () => void
}

type BatcherState = BatcherOptions & {
  readonly deliver: ReturnType<typeof deliverBatch<unknown>>
  /** The waiting items, in order of arrival. */
  queue: Array<QueuedItem>
  queuedBytes: number
  /** The maximum number of items per batch; lower than the configured size if the service rejects that many. */
  maxCount: number
  /** The waiting items may leave in batches that are not full. */
  isFlushing: boolean
  isStopped: boolean
  batchesInFlight: number
  readonly keysInFlight: Set<string>
  cancelTimer: (() => void) | undefined
}

const createBatcher = (options: BatcherOptions): Batcher => {
  const batcher: BatcherState = {
    ...options,
    deliver: deliverBatch(options.sink),
    queue: [],
    queuedBytes: 0,
    maxCount: options.size.count,
    isFlushing: false,
    isStopped: false,
    batchesInFlight: 0,
    keysInFlight: new Set(),
    cancelTimer: undefined,
  }
  return {
    add: (item) => {
      batcher.queue.push(item)
      batcher.queuedBytes += item.bytes
    },
    sendReady: () => sendReady(batcher),
    flush: () => {
      if (batcher.isFlushing || batcher.queue.length === 0) return
      batcher.isFlushing = true
      sendReady(batcher)
    },
    isEmpty: () => batcher.queue.length === 0 && batcher.batchesInFlight === 0,
    isSending: () => batcher.batchesInFlight > 0,
    stop: () => {
      batcher.isStopped = true
      batcher.queue = []
      batcher.cancelTimer?.()
    },
  }
}

const sendReady = (batcher: BatcherState): void => {
  // The common case, once per record: the item joins others that already have a timer.
  if (batcher.cancelTimer !== undefined && !batcher.isFlushing && !isFull(batcher)) return
  while (sendNext(batcher));
  startTimer(batcher)
}

const isFull = ({ queue, queuedBytes, maxCount, size }: BatcherState): boolean =>
  queue.length >= maxCount || queuedBytes >= size.bytes

const mayBePartial = ({ queue, isFlushing, maxAge, now }: BatcherState): boolean =>
  isFlushing || now() - (queue[0]?.queuedAt ?? now()) >= maxAge

/** Returns true if a batch was sent. */
const sendNext = (batcher: BatcherState): boolean => {
  const { isStopped, queue, predecessors, slots, keysInFlight } = batcher
  if (isStopped || queue.length === 0 || !(isFull(batcher) || mayBePartial(batcher))) return false
  if (!areEmpty(predecessors) || !slots.acquire()) return false
  const batch = dequeueBatch(batcher)
  if (batch.length === 0) {
    slots.release()
    return false
  }
  for (const { key } of batch) keysInFlight.add(key)
  batcher.batchesInFlight += 1
  void send(batcher, batch)
  return true
}

/** Sends what waits in these batchers. Returns true if nothing waits or is in flight. */
const areEmpty = (predecessors: ReadonlyArray<Batcher>): boolean => {
  const busy = predecessors.filter((batcher) => !batcher.isEmpty())
  for (const batcher of busy) batcher.flush()
  return busy.length === 0
}

const dequeueBatch = (batcher: BatcherState): ReadonlyArray<QueuedItem> => {
  const { queue, size, maxCount, keysInFlight } = batcher
  const { batch, rest } = takeBatch(queue, { ...size, count: maxCount }, keysInFlight, mayBePartial(batcher))
  batcher.queue = [...rest]
  batcher.queuedBytes = rest.reduce((sum, { bytes }) => sum + bytes, 0)
  batcher.isFlushing = batcher.isFlushing && rest.length > 0
  return batch
}

const send = async (batcher: BatcherState, batch: ReadonlyArray<QueuedItem>): Promise<void> => {
  const { slots, keysInFlight, onVerdict, onDelivery } = batcher
  const batchNumber = slots.nextBatchNumber()
  const result = await batcher
    .deliver(batch.map(({ item }) => item))()
    .catch((error: unknown) => E.left(unexpectedFailure(error)))
  for (const { key } of batch) keysInFlight.delete(key)
  batcher.batchesInFlight -= 1
  slots.release()
  if (E.isLeft(result)) return onDelivery(result.left)
  const { verdicts, maxItems } = result.right
  if (O.isSome(maxItems)) batcher.maxCount = Math.min(batcher.maxCount, maxItems.value)
  batch.forEach((item, index) => {
    const verdict = verdicts[index]
    if (verdict !== undefined) onVerdict(item, verdict, batchNumber)
  })
  onDelivery()
}

const startTimer = (batcher: BatcherState): void => {
  const { queue, isStopped, isFlushing, cancelTimer, maxAge, now, setTimer } = batcher
  const [oldest] = queue
  if (isStopped || isFlushing || cancelTimer !== undefined || oldest === undefined) return
  const wait = oldest.queuedAt + maxAge - now()
  // An item that has waited long enough needs no timer: it waits for a slot or its key, and is sent after the next
  // delivery.
  if (wait > 0)
    batcher.cancelTimer = setTimer(wait, () => {
      batcher.cancelTimer = undefined
      sendReady(batcher)
    })
}

export type BatchersOptions = {
  /** By name. Items of a sink may refer to items of the sinks before it, so those are sent first. */
  readonly sinks: ReadonlyMap<string, OpenSink<unknown>>
  /** When a batch is sent: once it is full by count or bytes, or after this many milliseconds. */
  readonly batch: BatchSize & { readonly millis: number }
  /** The maximum number of batches in flight at a time. */
  readonly inFlight: number
} & Pick<BatcherOptions, 'now' | 'setTimer' | 'onVerdict' | 'onDelivery'>

/** A batcher for each sink, by the sink's name. */
export const createBatchers = ({
  sinks,
  batch: { count, bytes, millis },
  inFlight,
  ...options
}: BatchersOptions): ReadonlyMap<string, Batcher> => {
  const slots = createBatchSlots(inFlight)
  const batchers = new Map<string, Batcher>()
  for (const [name, sink] of sinks) {
    const predecessors = [...batchers.values()]
    batchers.set(name, createBatcher({ ...options, sink, size: { count, bytes }, maxAge: millis, slots, predecessors }))
  }
  return batchers
}

const createBatchSlots = (limit: number): BatchSlots => {
  let taken = 0
  let batches = 0
  return {
    acquire: () => {
      if (taken >= limit) return false
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
}
