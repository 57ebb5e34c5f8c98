import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { configFailure, type Failure, systemFailure, unexpectedFailure } from '../failure'
import type { MessageFeed } from '../input'
import type { CheckpointMessage, Message, Row } from '../message'
import type { InputStream, SinkNote } from '../sink'
import { toDeclaredStream } from '../stream'
import { type AckError, type AckQueue, createAckQueue, type PendingRecord, type Rejection } from './acknowledge'
import { type BatchersOptions, createBatchers } from './batch'
import { withoutMarkedColumns } from './byte-order-mark'
import { createConditionVariable } from './condition-variable'
import type { DeadLetters } from './dead-letters'
import type { RecordCounts, RejectPolicy } from './reject-policy'
import {
  describeBrokenEndings,
  describeRejections,
  extentOf,
  mayReferTo,
  openRoute,
  recordEnding,
  type SinkRoute,
  type SinkRoutes,
} from './sink-routes'

export type WriteRun = Pick<BatchersOptions, 'sinks' | 'batch' | 'inFlight' | 'now' | 'setTimer'> & {
  /** The messages to write. Ends once `halt` is aborted. */
  readonly input: (halt: AbortSignal) => MessageFeed
  /** The streams of the caller's catalog. Others are opened as the input declares them. */
  readonly streams: ReadonlyArray<InputStream>
  /** The objects of streams that the input declares. By default, a stream goes to the object of the same name. */
  readonly objectNames?: Readonly<Record<string, string>>
  /**
   * The caller reports how each stream ended, so a stream without an ending is incomplete. Otherwise, the end of the
   * input completes every stream.
   */
  readonly saysEndings: boolean
  readonly policy: RejectPolicy
  readonly deadLetters: DeadLetters
  /** Prints a state whose records are all acknowledged, with their counts. */
  readonly emit: (checkpoint: CheckpointMessage) => Promise<void>
  readonly log: (level: 'info' | 'warn', message: string) => void
  /** Once aborted, nothing more is read or sent, but batches in flight are awaited. */
  readonly stop: AbortSignal
}

/** How a run ended. If there are no failures and it was not stopped, every record was written or is a dead letter. */
export type WriteResult = {
  readonly failures: ReadonlyArray<Failure>
  /** Why the input was incomplete. The caller already knows the source's own error, which these must not hide. */
  readonly inputFailures: ReadonlyArray<Failure>
  readonly countsByStream: ReadonlyMap<string, RecordCounts>
}

/** How far reading may be ahead of acknowledgement: in batches beyond those in flight, and in bytes. */
const readAheadLimit = { batches: 2, bytes: 64_000_000 }

type Writing = {
  readonly run: WriteRun
  /** Aborted once nothing more should be read or sent. */
  readonly halt: AbortController
  readonly routes: SinkRoutes
  readonly queue: AckQueue
  readonly batchers: ReturnType<typeof createBatchers>
  /** Notified when a batch was delivered, and at the end. */
  readonly progress: ReturnType<typeof createConditionVariable>
  readonly failures: Array<Failure>
  readonly inputFailures: Array<Failure>
  /** The streams that ended because of too many rejections, by id. */
  readonly failedStreams: Map<string, Failure>
  /** The error that `emit` threw. */
  outputError: O.Option<unknown>
  isInputEmpty: boolean
}

/**
 * Sends the records of the input to their sinks. Emits each state, in order, once every record before it is accepted or
 * a dead letter. Reads on only while there is room, so that a slow service slows its caller down. Rejects if `emit`
 * does.
 */
export const writeToSinks = async (run: WriteRun): Promise<WriteResult> => {
  const writing = startWriting(run)
  const { halt, routes, queue, failures, inputFailures } = writing
  const end = (): void => endWriting(writing)
  if (run.stop.aborted) halt.abort()
  run.stop.addEventListener('abort', end, { once: true })
  for (const stream of run.streams) openStream(writing, stream)
  await readInput(writing)
  if (!halt.signal.aborted) await sendAll(writing)
  if (!halt.signal.aborted) await finishSinks(writing)
  await waitForDelivery(writing)
  queue.acknowledge()
  await queue.flush()
  if (!run.stop.aborted) for (const sink of run.sinks.values()) logNotes(run, (await sink.verify?.()) ?? [])
  run.stop.removeEventListener('abort', end)
  if (O.isSome(writing.outputError)) throw writing.outputError.value
  const streamIds = [...routes.byStream.keys()]
  return { failures, inputFailures, countsByStream: new Map(streamIds.map((id) => [id, queue.countsOf(id)])) }
}

const startWriting = (run: WriteRun): Writing => {
  const writing: Writing = {
    run,
    halt: new AbortController(),
    routes: { sinks: run.sinks, byStream: new Map(), endings: new Map() },
    queue: createAckQueue({ ...run, onError: (problem) => failToAcknowledge(writing, problem) }),
    batchers: createBatchers({
      ...run,
      onVerdict: ({ record, key, objectName }, verdict, batch) => {
        if (record === undefined) {
          // An item that the sink itself added. If it is rejected, the run fails, but there is no dead letter.
          if (verdict._tag === 'Rejected')
            writing.failures.push(configFailure(`${objectName}: ${key}: ${verdict.reason}.`))
        } else if (verdict._tag === 'Accepted') writing.queue.accept(record)
        else reject(writing, record, { key, reason: verdict.reason, batch })
      },
      onDelivery: (failure) => {
        if (failure !== undefined) fail(writing, failure)
        for (const batcher of writing.batchers.values()) batcher.sendReady()
        writing.queue.acknowledge()
        writing.progress.notify()
      },
    }),
    progress: createConditionVariable(),
    failures: [],
    inputFailures: [],
    failedStreams: new Map(),
    outputError: O.none,
    isInputEmpty: true,
  }
  return writing
}

const endWriting = ({ halt, batchers, progress }: Writing): void => {
  halt.abort()
  for (const batcher of batchers.values()) batcher.stop()
  progress.notify()
}

/**
 * The first failure ends the run. Later ones, for example of other batches in flight, mostly have the same cause and
 * are dropped.
 */
const fail = (writing: Writing, failure: Failure): void => {
  if (!writing.halt.signal.aborted) writing.failures.push(failure)
  endWriting(writing)
}

const failToAcknowledge = (writing: Writing, problem: AckError): void => {
  if (problem._tag === 'DeadLetters') fail(writing, problem.failure)
  else {
    writing.outputError = O.some(problem.error)
    endWriting(writing)
  }
}

const reject = (writing: Writing, record: PendingRecord, rejection: Rejection): void => {
  const failure = writing.queue.reject(record, rejection)
  if (O.isNone(failure)) return
  if (writing.run.policy.onReject === 'fail') fail(writing, failure.value)
  else {
    writing.failedStreams.set(record.stream.id, failure.value)
    endIfNoStreamIsLeft(writing)
  }
}

/**
 * A stream with too many rejections ends alone. The run ends too if no stream is left, or if a remaining stream may
 * refer to its missing records.
 */
const endIfNoStreamIsLeft = (writing: Writing): void => {
  const { routes, failedStreams, halt, failures } = writing
  const left = [...routes.byStream.keys()].filter((id) => !failedStreams.has(id))
  const isLeft = left.length > 0 && !left.some((id) => mayReferTo(routes, id, [...failedStreams.keys()]))
  if (halt.signal.aborted || isLeft) return
  failures.push(...failedStreams.values())
  endWriting(writing)
}

const openStream = (writing: Writing, stream: InputStream): void => {
  const route = openRoute(writing.routes, stream)
  if (E.isLeft(route)) fail(writing, route.left)
  else endIfNoStreamIsLeft(writing)
}

const readInput = async (writing: Writing): Promise<void> => {
  const { run, halt } = writing
  try {
    for await (const messages of run.input(halt.signal)) {
      if (E.isLeft(messages)) fail(writing, messages.left)
      for (const message of E.isLeft(messages) ? [] : messages.right) {
        if (halt.signal.aborted) break
        writing.isInputEmpty = false
        if (message._tag === 'Records') await addRows(writing, message)
        else {
          processMessage(writing, message)
          if (isFull(writing)) await waitForRoom(writing)
        }
      }
      if (halt.signal.aborted) break
    }
  } catch (error) {
    fail(writing, unexpectedFailure(error))
  }
}

/** Row by row, because a page may be longer than the available room. */
const addRows = async (
  writing: Writing,
  { stream, rows }: Extract<Message, { readonly _tag: 'Records' }>,
): Promise<void> => {
  const route = writing.routes.byStream.get(stream)
  if (route === undefined) return fail(writing, systemFailure(`The stream ${stream} was not opened.`))
  for (const row of rows) {
    if (writing.halt.signal.aborted || writing.failedStreams.has(stream)) return
    addRecord(writing, route, row)
    if (isFull(writing)) await waitForRoom(writing)
  }
}

const addRecord = (writing: Writing, { stream, prepare }: SinkRoute, row: Row): void => {
  const { run, queue, batchers } = writing
  const record = queue.addRecord(stream, row)
  const prepared = prepare(withoutMarkedColumns(row.value ?? {}))
  if (E.isLeft(prepared)) {
    reject(writing, record, { key: null, reason: prepared.left, batch: null })
    queue.acknowledge()
    return
  }
  const { key, item } = prepared.right
  const batcher = batchers.get(stream.objectName)
  batcher?.add({ key, item, objectName: stream.objectName, record, bytes: record.bytes, queuedAt: run.now() })
  batcher?.sendReady()
}

/** Processes a message other than Records. */
const processMessage = (writing: Writing, message: Message): void => {
  const { run, routes, queue, inputFailures } = writing
  switch (message._tag) {
    case 'Started':
      if (!run.streams.some(({ id }) => id === message.stream.name))
        openStream(writing, toDeclaredStream(message.stream, run.objectNames))
      break
    case 'Checkpoint':
    case 'SharedCheckpoint':
      queue.addState(message)
      queue.acknowledge()
      break
    case 'Finished':
      recordEnding(routes, message.stream, message.extent === 'everything' ? 'whole' : 'complete')
      break
    case 'Failed':
      if (message.stream === undefined) inputFailures.push(message.failure)
      else recordEnding(routes, message.stream, 'broken')
      break
    case 'Log':
      // The source has already logged its own errors.
      if (message.level === 'warn' || message.level === 'info') run.log(message.level, message.message)
  }
}

const isFull = ({ run, queue }: Writing): boolean => {
  const { count, bytes } = queue.pendingSize()
  return count >= run.batch.count * (run.inFlight + readAheadLimit.batches) || bytes >= readAheadLimit.bytes
}

const waitForRoom = (writing: Writing): Promise<void> =>
  writing.progress.waitFor(() => {
    if (writing.halt.signal.aborted || !isFull(writing)) return true
    // All room is taken by items waiting for fuller batches, which cannot come.
    if (![...writing.batchers.values()].some((batcher) => batcher.isSending())) flushBatchers(writing)
    return false
  })

const flushBatchers = ({ batchers }: Writing): void => {
  for (const batcher of batchers.values()) batcher.flush()
}

const waitForDelivery = ({ progress, batchers }: Writing): Promise<void> =>
  progress.waitFor(() => [...batchers.values()].every((batcher) => batcher.isEmpty()))

const sendAll = async (writing: Writing): Promise<void> => {
  flushBatchers(writing)
  await waitForDelivery(writing)
}

/** Handles the end of a complete input: determines what failed and, if nothing did, sends the sinks' final items. */
const finishSinks = async (writing: Writing): Promise<void> => {
  const { run, routes, queue, failures, inputFailures, isInputEmpty } = writing
  failures.push(...describeRejections(routes, run.policy, queue.countsOf))
  inputFailures.push(...describeBrokenEndings(routes, run.saysEndings && !isInputEmpty))
  if (failures.length > 0 || inputFailures.length > 0) return
  await addFinalItems(writing)
  await sendAll(writing)
}

/** Adds the items that the sinks want to send after the whole input. */
const addFinalItems = async ({ run, routes, queue, batchers, failures }: Writing): Promise<void> => {
  for (const [objectName, sink] of run.sinks) {
    await sink.beforeFinish?.()
    const final = sink.finish(extentOf(routes, objectName, queue.countsOf))
    if (E.isLeft(final)) {
      failures.push(final.left)
      continue
    }
    logNotes(run, final.right.notes)
    for (const { key, item } of final.right.items) {
      const bytes = JSON.stringify(item).length
      batchers.get(objectName)?.add({ key, item, objectName, record: undefined, bytes, queuedAt: run.now() })
    }
  }
}

const logNotes = ({ log }: WriteRun, notes: ReadonlyArray<SinkNote>): void => {
  for (const { level, message } of notes) log(level === 'info' ? 'info' : 'warn', message)
}
