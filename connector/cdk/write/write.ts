import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { createConditionVariable } from '../abort'
import { configFailure, type Failure, systemFailure, unexpectedFailure } from '../failure'
import { createAckQueue, type PendingRecord, type Rejection } from './acknowledge'
import { type BatchersOptions, createBatchers } from './batch'
import type { DeadLetters } from './dead-letters'
import { createSinkRoutes, type InputFeed, type InputMessage, type SinkRoute } from './input'
import type { RecordCounts, RejectPolicy } from './reject-policy'

export type WriteRun = Pick<BatchersOptions, 'sinks' | 'batch' | 'inFlight' | 'now' | 'setTimer'> & {
  /** The messages to write; ends once `halt` is aborted. */
  readonly input: (halt: AbortSignal) => InputFeed
  readonly policy: RejectPolicy
  readonly deadLetters: DeadLetters
  /** Takes the line of a state whose records are all acknowledged. */
  readonly acknowledge: (line: string) => Promise<void>
  readonly log: (level: 'info' | 'warn', message: string) => void
  /** Once aborted, nothing more is read or sent; batches in flight are waited for. */
  readonly stop: AbortSignal
}

/** How a run ended; without failures and not stopped, every record was written or is a dead letter. */
export type WriteResult = {
  readonly failures: ReadonlyArray<Failure>
  readonly countsByStream: ReadonlyMap<string, RecordCounts>
}

/** How much may be read ahead of what is acknowledged: batches beyond those in flight, and bytes. */
const readAheadLimit = { batches: 2, bytes: 64_000_000 }

/**
 * Sends the records of the input to their sinks, and emits each state, in order, once every record before it is accepted or a dead letter.
 * Reads on only while there is room, so that a slow service slows its caller down. Rejects if `acknowledge` does.
 */
export const writeToSinks = async (run: WriteRun): Promise<WriteResult> => {
  const halt = new AbortController()
  const failures: Array<Failure> = []
  const routes = createSinkRoutes(run.sinks)
  const progress = createConditionVariable()
  let outputError: O.Option<unknown> = O.none

  const end = (): void => {
    halt.abort()
    for (const batcher of batchers.values()) batcher.stop()
    progress.notify()
  }
  /** The first failure ends the run. Later ones, such as those of other batches in flight, mostly have the same cause and are left out. */
  const fail = (failure: Failure): void => {
    if (!halt.signal.aborted) failures.push(failure)
    end()
  }
  const queue = createAckQueue({
    ...run,
    emit: run.acknowledge,
    onError: (problem) => {
      if (problem._tag === 'DeadLetters') return fail(problem.failure)
      outputError = O.some(problem.error)
      end()
    },
  })
  const reject = (record: PendingRecord, rejection: Rejection): void => {
    const failure = queue.reject(record, rejection)
    if (O.isSome(failure)) fail(failure.value)
  }
  const batchers = createBatchers({
    ...run,
    onVerdict: ({ record, key, objectName }, verdict, batch) => {
      if (record === undefined) {
        if (verdict._tag === 'Rejected') failures.push(configFailure(`${objectName}: ${key}: ${verdict.reason}.`))
      } else if (verdict._tag === 'Accepted') queue.accept(record)
      else reject(record, { key, reason: verdict.reason, batch })
    },
    onDelivery: (failure) => {
      if (failure !== undefined) fail(failure)
      for (const batcher of batchers.values()) batcher.sendReady()
      queue.acknowledge()
      progress.notify()
    },
  })

  const addRecord = ({ stream, prepare }: SinkRoute, message: Extract<InputMessage, { _tag: 'Record' }>): void => {
    const record = queue.addRecord(stream, message)
    const prepared = prepare(message.columns)
    if (E.isLeft(prepared)) {
      reject(record, { key: null, reason: prepared.left, batch: null })
      queue.acknowledge()
      return
    }
    const { key, item } = prepared.right
    const { objectName } = stream
    const batcher = batchers.get(objectName)
    batcher?.add({ key, item, objectName, record, bytes: message.bytes, queuedAt: run.now() })
    batcher?.sendReady()
  }

  const processMessage = (message: InputMessage): void => {
    switch (message._tag) {
      case 'Opened': {
        const opened = routes.open(message.inlet)
        if (E.isLeft(opened)) fail(opened.left)
        queue.openStream(message.inlet)
        break
      }
      case 'Record': {
        const route = routes.find(message.inlet)
        if (route === undefined) fail(systemFailure(`The stream ${message.inlet} was not opened.`))
        else addRecord(route, message)
        break
      }
      case 'State':
        queue.addState(message)
        queue.acknowledge()
        break
      case 'Completed':
      case 'Broken':
        routes.recordEnding(message)
        break
      case 'Skipped':
        run.log('warn', message.message)
    }
  }

  const isFull = (): boolean => {
    const { count, bytes } = queue.pendingSize()
    return count >= run.batch.count * (run.inFlight + readAheadLimit.batches) || bytes >= readAheadLimit.bytes
  }
  const flushBatchers = (): void => {
    for (const batcher of batchers.values()) batcher.flush()
  }
  const waitForRoom = (): Promise<void> =>
    progress.waitFor(() => {
      if (halt.signal.aborted || !isFull()) return true
      // All room is taken by items that wait for fuller batches, which cannot come.
      if (![...batchers.values()].some((batcher) => batcher.isSending())) flushBatchers()
      return false
    })
  const waitForDelivery = (): Promise<void> =>
    progress.waitFor(() => [...batchers.values()].every((batcher) => batcher.isEmpty()))
  const sendAll = async (): Promise<void> => {
    flushBatchers()
    await waitForDelivery()
  }

  /** Sends the items that the sinks ask for after the whole input. They are no records, so their rejections only fail the run. */
  const sendFinalItems = async (): Promise<void> => {
    for (const [objectName, sink] of run.sinks) {
      const final = sink.finish(routes.isWhole(objectName))
      if (E.isLeft(final)) {
        failures.push(final.left)
        continue
      }
      for (const { level, message } of final.right.notes) run.log(level === 'info' ? 'info' : 'warn', message)
      for (const { key, item } of final.right.items) {
        const bytes = JSON.stringify(item).length
        batchers.get(objectName)?.add({ key, item, objectName, record: undefined, bytes, queuedAt: run.now() })
      }
    }
    await sendAll()
  }

  if (run.stop.aborted) halt.abort()
  run.stop.addEventListener('abort', end, { once: true })
  try {
    for await (const messages of run.input(halt.signal)) {
      if (E.isLeft(messages)) fail(messages.left)
      for (const message of E.isLeft(messages) ? [] : messages.right) {
        if (halt.signal.aborted) break
        processMessage(message)
        if (isFull()) await waitForRoom()
      }
      if (halt.signal.aborted) break
    }
  } catch (error) {
    fail(unexpectedFailure(error))
  }
  if (!halt.signal.aborted) await sendAll()
  if (!halt.signal.aborted) {
    failures.push(...routes.failures(run.policy, queue.countsOf))
    if (failures.length === 0) await sendFinalItems()
  }
  await waitForDelivery()
  queue.acknowledge()
  await queue.flush()
  run.stop.removeEventListener('abort', end)
  if (O.isSome(outputError)) throw outputError.value
  return { failures, countsByStream: new Map(routes.streamIds().map((id) => [id, queue.countsOf(id)])) }
}
