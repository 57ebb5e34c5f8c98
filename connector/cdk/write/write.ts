import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { CommandError } from '../command'
import { configFailure, type Failure, systemFailure, unexpectedFailure } from '../failure'
import type { OpenSink } from '../sink'
import { createDeliveryTracker, type DeliveryTracker, type TrackedRecord } from './acknowledge'
import { createBatchers } from './batch'
import type { DeadLetters } from './dead-letters'
import type { FinalVerdict } from './delivery'
import { createSinkRoutes, type InputFeed, type InputMessage, type SinkRoute } from './input'
import type { RecordCounts, RejectPolicy } from './reject-policy'

export type WriteRun = {
  /** What comes in; it is to end once `halt` is aborted. */
  readonly input: (halt: AbortSignal) => InputFeed
  /** By their names; records of a sink may refer to records of those before it, which are sent first. */
  readonly sinks: ReadonlyMap<string, OpenSink<unknown>>
  readonly policy: RejectPolicy
  /** When a batch leaves: full by count or bytes, or after so many milliseconds. */
  readonly batch: { readonly count: number; readonly bytes: number; readonly millis: number }
  /** Batches under way at a time. */
  readonly inFlight: number
  readonly deadLetters: DeadLetters
  /** Takes the line of a state whose records are all acknowledged. */
  readonly acknowledge: (line: string) => Promise<void>
  readonly log: (level: 'info' | 'warn', message: string) => void
  readonly now: () => number
  /** Calls back after so many milliseconds; answers how to call it off. */
  readonly setTimer: (millis: number, callback: () => void) => () => void
  /** Once aborted, nothing more is read or sent; what is under way is waited for. */
  readonly stop: AbortSignal
}

/** How a run ended; without failures and not stopped, every record was written or put aside. */
export type WriteResult = {
  readonly failures: ReadonlyArray<Failure>
  /** Per stream. */
  readonly countsByStream: ReadonlyMap<string, RecordCounts>
}

/** How much may be read ahead of what is acknowledged: batches beyond those under way, and bytes. */
const readAheadLimit = { batches: 2, bytes: 64_000_000 }

/**
 * Sends what comes in to its sinks and answers each state, in order, once every record before it was accepted or put aside.
 * Reads on only while there is room, so that a slow service slows its caller down. Rejects where `answer` does.
 */
export const writeToSinks = async (run: WriteRun): Promise<WriteResult> => {
  const halt = new AbortController()
  const failures: Array<Failure> = []
  const sources = createSinkRoutes(run.sinks)
  let wake: () => void = () => undefined
  let unanswerable: O.Option<unknown> = O.none

  const end = (): void => {
    halt.abort()
    for (const box of boxes.values()) box.stop()
    wake()
  }
  /** The first failure ends the run; what follows from that, such as other batches that fail for the same reason, is not told. */
  const fail = (failure: Failure): void => {
    if (!halt.signal.aborted) failures.push(failure)
    end()
  }
  const books: DeliveryTracker = createDeliveryTracker({
    ...run,
    onOutputError: (error) => {
      if (error instanceof CommandError) return fail(error.failure)
      unanswerable = O.some(error)
      end()
    },
  })
  const boxes = createBatchers(run, (failure) => {
    if (failure !== undefined) fail(failure)
    for (const box of boxes.values()) box.sendReady()
    books.acknowledge()
    wake()
  })

  const reject = (account: TrackedRecord, key: string | null, reason: string, batch: number | null): void => {
    const failure = books.reject(account, { key, reason, batch })
    if (O.isSome(failure)) fail(failure.value)
  }
  const take = ({ stream, prepare }: SinkRoute, record: Extract<InputMessage, { _tag: 'Record' }>): void => {
    const account = books.addRecord(stream, record)
    const prepared = prepare(record.columns)
    if (E.isLeft(prepared)) {
      reject(account, null, prepared.left, null)
      books.acknowledge()
      return
    }
    const { key, item } = prepared.right
    const settled = (verdict: FinalVerdict, batch: number): void =>
      verdict._tag === 'Accepted' ? books.accept(account) : reject(account, key, verdict.reason, batch)
    const box = boxes.get(stream.objectName)
    box?.add({ key, item, bytes: record.bytes, at: run.now(), onVerdict: settled })
    box?.sendReady()
  }

  const step = (arrival: InputMessage): void => {
    switch (arrival._tag) {
      case 'Opened': {
        const opened = sources.open(arrival.inlet)
        if (E.isLeft(opened)) fail(opened.left)
        books.openStream(arrival.inlet)
        break
      }
      case 'Record': {
        const source = sources.find(arrival.inlet)
        if (source === undefined) fail(systemFailure(`The stream ${arrival.inlet} was not opened.`))
        else take(source, arrival)
        break
      }
      case 'State':
        books.addState(arrival)
        books.acknowledge()
        break
      case 'Completed':
      case 'Broken':
        sources.recordEnding(arrival)
        break
      case 'Skipped':
        run.log('warn', arrival.message)
    }
  }

  const until = async (done: () => boolean): Promise<void> => {
    while (!done())
      await new Promise<void>((resolve) => {
        wake = resolve
      })
  }
  const isFull = (): boolean => {
    const { count, bytes } = books.pendingSize()
    return count >= run.batch.count * (run.inFlight + readAheadLimit.batches) || bytes >= readAheadLimit.bytes
  }
  /** Where all room is taken by what waits for fuller batches, waiting is over. */
  const mayReadOn = (): boolean => {
    if (halt.signal.aborted || !isFull()) return true
    if (![...boxes.values()].some((box) => box.isSending())) for (const box of boxes.values()) box.sendWaiting()
    return false
  }
  const isIdle = (): boolean => [...boxes.values()].every((box) => box.isEmpty())
  const sendAll = async (): Promise<void> => {
    for (const box of boxes.values()) box.sendReady(true)
    await until(isIdle)
  }
  /** What the input as a whole calls for; its rejections are no record's, so they only fail the run. */
  const finish = async (): Promise<void> => {
    for (const [name, sink] of run.sinks) {
      const rest = sink.finish(sources.isWhole(name))
      if (E.isLeft(rest)) {
        failures.push(rest.left)
        continue
      }
      for (const { level, message } of rest.right.notes) run.log(level === 'info' ? 'info' : 'warn', message)
      for (const { key, item } of rest.right.items)
        boxes.get(name)?.add({
          key,
          item,
          bytes: JSON.stringify(item).length,
          at: run.now(),
          onVerdict: (verdict) => {
            if (verdict._tag === 'Rejected') failures.push(configFailure(`${name}: ${key}: ${verdict.reason}.`))
          },
        })
    }
    await sendAll()
  }

  if (run.stop.aborted) halt.abort()
  run.stop.addEventListener('abort', end, { once: true })
  try {
    for await (const told of run.input(halt.signal)) {
      if (E.isLeft(told)) fail(told.left)
      for (const arrival of E.isLeft(told) ? [] : told.right) {
        if (halt.signal.aborted) break
        step(arrival)
        if (!mayReadOn()) await until(mayReadOn)
      }
      if (halt.signal.aborted) break
    }
  } catch (error) {
    fail(unexpectedFailure(error))
  }
  if (!halt.signal.aborted) await sendAll()
  if (!halt.signal.aborted) {
    failures.push(...sources.failures(run.policy, books.countsOf))
    if (failures.length === 0) await finish()
  }
  await until(isIdle)
  books.acknowledge()
  await books.flush().catch(() => undefined)
  run.stop.removeEventListener('abort', end)
  if (O.isSome(unanswerable)) throw unanswerable.value
  return { failures, countsByStream: new Map(sources.streamIds().map((id) => [id, books.countsOf(id)])) }
}
