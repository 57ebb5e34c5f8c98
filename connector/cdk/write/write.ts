import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { configFailure, type Failure, systemFailure, transientFailure, unexpectedFailure } from '../failure'
import { createConditionVariable } from '../feed'
import type { MessageFeed } from '../input'
import type { CheckpointMessage, InputRecord, Message, Row } from '../message'
import type { InputExtent, InputStream, OpenSink, PreparedItem, SinkNote } from '../sink'
import { toDeclaredStream } from '../stream'
import { createAckQueue, type PendingRecord, type Rejection } from './acknowledge'
import { type BatchersOptions, createBatchers } from './batch'
import { withoutMarkedColumns, withoutMarkedNames } from './byte-order-mark'
import { type DeadLetters, type RecordCounts, type RejectPolicy, streamRejectionFailure } from './dead-letters'

export type WriteRun = Pick<BatchersOptions, 'sinks' | 'batch' | 'inFlight' | 'now' | 'setTimer'> & {
  /** The messages to write; ends once `halt` is aborted. */
  readonly input: (halt: AbortSignal) => MessageFeed
  /** The streams of the caller's catalog; others are opened as the input declares them. */
  readonly streams: ReadonlyArray<InputStream>
  /** The objects of streams that the input declares; by default a stream goes to the object of its own name. */
  readonly objectNames?: Readonly<Record<string, string>>
  /**
   * Whether the caller says how each stream ended. A stream without an ending is then not complete; else the end of the
   * input ends it well.
   */
  readonly saysEndings: boolean
  readonly policy: RejectPolicy
  readonly deadLetters: DeadLetters
  /** Prints a state whose records are all acknowledged, with their counts. */
  readonly emit: (checkpoint: CheckpointMessage) => Promise<void>
  readonly log: (level: 'info' | 'warn', message: string) => void
  /** Once aborted, nothing more is read or sent; batches in flight are waited for. */
  readonly stop: AbortSignal
}

/** How a run ended; without failures of either kind and not stopped, every record was written or is a dead letter. */
export type WriteResult = {
  readonly failures: ReadonlyArray<Failure>
  /** Why the input was not complete. The caller knows of the source's own error already, which these must not hide. */
  readonly inputFailures: ReadonlyArray<Failure>
  readonly countsByStream: ReadonlyMap<string, RecordCounts>
}

/** How much may be read ahead of what is acknowledged: batches beyond those in flight, and bytes. */
const readAheadLimit = { batches: 2, bytes: 64_000_000 }

/**
 * Sends the records of the input to their sinks, and emits each state, in order, once every record before it is
 * accepted or a dead letter. Reads on only while there is room, so that a slow service slows its caller down. Rejects
 * if `emit` does.
 */
export const writeToSinks = async (run: WriteRun): Promise<WriteResult> => {
  const halt = new AbortController()
  const failures: Array<Failure> = []
  const inputFailures: Array<Failure> = []
  const routes = createSinkRoutes(run.sinks)
  const progress = createConditionVariable()
  let outputError: O.Option<unknown> = O.none

  const end = (): void => {
    halt.abort()
    for (const batcher of batchers.values()) batcher.stop()
    progress.notify()
  }
  /**
   * The first failure ends the run. Later ones, such as those of other batches in flight, mostly have the same cause
   * and are left out.
   */
  const fail = (failure: Failure): void => {
    if (!halt.signal.aborted) failures.push(failure)
    end()
  }
  const queue = createAckQueue({
    ...run,
    onError: (problem) => {
      if (problem._tag === 'DeadLetters') return fail(problem.failure)
      outputError = O.some(problem.error)
      end()
    },
  })
  /**
   * Too many rejections end their stream alone, unless no other is left, or one whose records may refer to those that
   * are not sent.
   */
  const failedStreams = new Map<string, Failure>()
  const endIfNoStreamIsLeft = (): void => {
    const left = routes.streamIds().filter((id) => !failedStreams.has(id))
    const isLeft = left.length > 0 && !left.some((id) => routes.mayReferTo(id, [...failedStreams.keys()]))
    if (halt.signal.aborted || isLeft) return
    failures.push(...failedStreams.values())
    end()
  }
  const reject = (record: PendingRecord, rejection: Rejection): void => {
    const failure = queue.reject(record, rejection)
    if (O.isNone(failure)) return
    if (run.policy.onReject === 'fail') fail(failure.value)
    else {
      failedStreams.set(record.stream.id, failure.value)
      endIfNoStreamIsLeft()
    }
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

  const addRecord = ({ stream, prepare }: SinkRoute, row: Row): void => {
    const record = queue.addRecord(stream, row)
    const prepared = prepare(withoutMarkedColumns(row.value ?? {}))
    if (E.isLeft(prepared)) {
      reject(record, { key: null, reason: prepared.left, batch: null })
      queue.acknowledge()
      return
    }
    const { key, item } = prepared.right
    const batcher = batchers.get(stream.objectName)
    batcher?.add({ key, item, objectName: stream.objectName, record, bytes: record.bytes, queuedAt: run.now() })
    batcher?.sendReady()
  }
  const openStream = (stream: InputStream): void => E.match(fail, endIfNoStreamIsLeft)(routes.open(stream))
  /** Processes a message other than Records. */
  const processMessage = (message: Message): void => {
    switch (message._tag) {
      case 'Started':
        if (!run.streams.some(({ id }) => id === message.stream.name))
          openStream(toDeclaredStream(message.stream, run.objectNames))
        break
      case 'Checkpoint':
      case 'SharedCheckpoint':
        queue.addState(message)
        queue.acknowledge()
        break
      case 'Finished':
        routes.recordEnding(message.stream, message.extent === 'everything' ? 'whole' : 'complete')
        break
      case 'Failed':
        if (message.stream === undefined) inputFailures.push(message.failure)
        else routes.recordEnding(message.stream, 'broken')
        break
      case 'Log':
        // The source has logged its own errors.
        if (message.level === 'warn' || message.level === 'info') run.log(message.level, message.message)
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
  /** Row by row, since a page may be longer than the room there is. */
  const addRows = async ({ stream, rows }: Extract<Message, { _tag: 'Records' }>): Promise<void> => {
    const route = routes.find(stream)
    if (route === undefined) return fail(systemFailure(`The stream ${stream} was not opened.`))
    for (const row of rows) {
      if (halt.signal.aborted || failedStreams.has(stream)) return
      addRecord(route, row)
      if (isFull()) await waitForRoom()
    }
  }
  const waitForDelivery = (): Promise<void> =>
    progress.waitFor(() => [...batchers.values()].every((batcher) => batcher.isEmpty()))
  const sendAll = async (): Promise<void> => {
    flushBatchers()
    await waitForDelivery()
  }

  const logNotes = (notes: ReadonlyArray<SinkNote>): void => {
    for (const { level, message } of notes) run.log(level === 'info' ? 'info' : 'warn', message)
  }
  /**
   * Sends the items that the sinks ask for after the whole input. They are no records, so their rejections only fail
   * the run.
   */
  const sendFinalItems = async (): Promise<void> => {
    for (const [objectName, sink] of run.sinks) {
      await sink.beforeFinish?.()
      const final = sink.finish(routes.extentOf(objectName, queue.countsOf))
      if (E.isLeft(final)) failures.push(final.left)
      const { notes, items } = E.isLeft(final) ? { notes: [], items: [] } : final.right
      logNotes(notes)
      for (const { key, item } of items) {
        const bytes = JSON.stringify(item).length
        batchers.get(objectName)?.add({ key, item, objectName, record: undefined, bytes, queuedAt: run.now() })
      }
    }
    await sendAll()
  }

  let isEmpty = true
  if (run.stop.aborted) halt.abort()
  run.stop.addEventListener('abort', end, { once: true })
  run.streams.forEach(openStream)
  try {
    for await (const messages of run.input(halt.signal)) {
      if (E.isLeft(messages)) fail(messages.left)
      for (const message of E.isLeft(messages) ? [] : messages.right) {
        if (halt.signal.aborted) break
        isEmpty = false
        if (message._tag === 'Records') await addRows(message)
        else {
          processMessage(message)
          if (isFull()) await waitForRoom()
        }
      }
      if (halt.signal.aborted) break
    }
  } catch (error) {
    fail(unexpectedFailure(error))
  }
  if (!halt.signal.aborted) await sendAll()
  if (!halt.signal.aborted) {
    failures.push(...routes.rejections(run.policy, queue.countsOf))
    inputFailures.push(...routes.brokenEndings(run.saysEndings && !isEmpty))
    if (failures.length === 0 && inputFailures.length === 0) await sendFinalItems()
  }
  await waitForDelivery()
  queue.acknowledge()
  await queue.flush()
  if (!run.stop.aborted) for (const sink of run.sinks.values()) logNotes((await sink.verify?.()) ?? [])
  run.stop.removeEventListener('abort', end)
  if (O.isSome(outputError)) throw outputError.value
  return { failures, inputFailures, countsByStream: new Map(routes.streamIds().map((id) => [id, queue.countsOf(id)])) }
}

/** A stream of the input and how its records are prepared for its sink. */
type SinkRoute = {
  readonly stream: InputStream
  readonly prepare: (record: InputRecord) => E.Either<string, PreparedItem<unknown>>
}

type StreamEnding = 'whole' | 'complete' | 'broken'

/** The streams of the input, and how each ended. */
type SinkRoutes = {
  readonly open: (stream: InputStream) => E.Either<Failure, SinkRoute>
  readonly find: (id: string) => SinkRoute | undefined
  readonly recordEnding: (stream: string, ending: StreamEnding) => void
  /** Whether records of a stream may refer to those of one of these: its object comes after theirs. */
  readonly mayReferTo: (id: string, others: ReadonlyArray<string>) => boolean
  /** How much of an object its streams brought. */
  readonly extentOf: (object: string, countsOf: (id: string) => RecordCounts) => InputExtent
  /** Why streams fail because of their rejections. */
  readonly rejections: (policy: RejectPolicy, countsOf: (id: string) => RecordCounts) => ReadonlyArray<Failure>
  /** The streams that did not end well. `needsEnding`: a stream without an ending did not. */
  readonly brokenEndings: (needsEnding: boolean) => ReadonlyArray<Failure>
  readonly streamIds: () => ReadonlyArray<string>
}

const createSinkRoutes = (sinks: ReadonlyMap<string, OpenSink<unknown>>): SinkRoutes => {
  const routes = new Map<string, SinkRoute>()
  const endings = new Map<string, StreamEnding>()
  const rank = (id: string): number => [...sinks.keys()].indexOf(routes.get(id)?.stream.objectName ?? '')
  return {
    open: (stream) => {
      const route = openRoute(sinks, stream)
      if (E.isRight(route)) routes.set(stream.id, route.right)
      return route
    },
    find: (id) => routes.get(id),
    recordEnding: (stream, ending) => {
      if (endings.get(stream) !== 'broken') endings.set(stream, ending)
    },
    mayReferTo: (id, others) => others.some((other) => rank(other) < rank(id)),
    extentOf: (object, countsOf) => {
      const feeding = [...routes.values()].flatMap(({ stream }) => (stream.objectName === object ? [stream.id] : []))
      if (feeding.some((id) => countsOf(id).received === 0)) return 'empty'
      if (feeding.some((id) => !endings.has(id))) return 'unsaid'
      return feeding.length > 0 && feeding.every((id) => endings.get(id) === 'whole') ? 'whole' : 'changes'
    },
    rejections: (policy, countsOf) =>
      [...routes.values()].flatMap(({ stream: { id, name } }) => {
        const rejection = streamRejectionFailure(policy, name, countsOf(id))
        return O.isSome(rejection) ? [rejection.value] : []
      }),
    brokenEndings: (needsEnding) =>
      [...new Set([...routes.keys(), ...endings.keys()])].flatMap((id) => {
        const ending = endings.get(id)
        const name = routes.get(id)?.stream.name ?? id
        if (ending === 'broken')
          return [brokenStreamFailure(name, 'the source says that it did not complete the stream')]
        return ending === undefined && needsEnding
          ? [brokenStreamFailure(name, 'the input ended before the stream was complete')]
          : []
      }),
    streamIds: () => [...routes.keys()],
  }
}

const brokenStreamFailure = (stream: string, problem: string): Failure =>
  transientFailure(`${stream}: ${problem}. What its states cover is written; run again to go on from there.`)

const openRoute = (
  sinks: ReadonlyMap<string, OpenSink<unknown>>,
  stream: InputStream,
): E.Either<Failure, SinkRoute> => {
  const sink = sinks.get(stream.objectName)
  return sink === undefined
    ? E.left(
        configFailure(
          `The stream ${stream.name} goes to the object ${stream.objectName}, which does not exist. ` +
            `Name it ${[...sinks.keys()].join(' or ')}, or name its object under streams in the config.`,
        ),
      )
    : E.map((prepare: SinkRoute['prepare']): SinkRoute => ({ stream, prepare }))(
        sink.prepare(withoutMarkedNames(stream)),
      )
}
