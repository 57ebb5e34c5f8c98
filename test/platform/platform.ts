import { once } from 'node:events'
import { parseExact, printExact } from '../support/destination'
import { type Connector, type Container, startContainer } from './container'
import { toDestinationCatalog, toSourceCatalog } from './model/catalog'
import type { Connection, Descriptor, Json } from './model/connection'
import { completeLines, missingStates, takeBlocks, toDestinationRecord, toDestinationState } from './model/envelope'
import { type Job, type Kept, nothingKept, type Prepared, prepareAttempt } from './model/jobs'
import {
  type AttemptEnd,
  type AttemptFailure,
  type AttemptStatus,
  attemptStatus,
  jobReason,
  listFailures,
  mayRetry,
  type Origin,
} from './model/outcome'
import { screenMessage } from './model/screen'
import {
  acknowledge,
  completeStreams,
  countedBy,
  countRecord,
  noteComplete,
  stageState,
  startTrack,
  type Track,
} from './model/track'

/** The platform's rules. A test that replaces one shows what depends on it. */
export const airbyteRules = {
  prepareAttempt,
  toSourceCatalog,
  toDestinationCatalog,
  screenMessage,
  toDestinationRecord,
  toDestinationState,
  missingStates,
  completeLines,
  takeBlocks,
  acknowledge,
  listFailures,
  mayRetry,
}
export type Rules = typeof airbyteRules

/** What happens to an attempt once the destination has given back its first state. */
export type Interruption = 'cancelled' | 'destination killed' | 'orchestrator gone' | 'SIGTERM'

export type AttemptResult = Pick<Track, 'emitted' | 'acknowledged' | 'rejected' | 'mismatches' | 'warnings'> & {
  readonly status: AttemptStatus
  readonly failures: ReadonlyArray<AttemptFailure>
  readonly sourceStatus: number | undefined
  readonly destinationStatus: number
  /** The streams that people see as complete. */
  readonly complete: ReadonlyArray<string>
  /** `LEVEL message`, of both sides. */
  readonly log: ReadonlyArray<string>
  /** Each TRACE of a source, by its stream and status. */
  readonly statuses: ReadonlyArray<string>
  /** Lines on stdout that are not messages, and the output on stderr. */
  readonly junk: Readonly<Record<'source' | 'destination', ReadonlyArray<string>>>
  /** Attributes that left the source although the catalogue's schema does not have them; the platform removed them. */
  readonly unselected: ReadonlyArray<string>
}

export type JobResult = {
  readonly status: AttemptStatus
  readonly reason: string | undefined
  readonly attempts: ReadonlyArray<AttemptResult>
}

/** What a source of a test may know when it is started. */
export type AttemptStart = { readonly attempt: number; readonly states: Kept['states'] }

export type JobOptions = {
  readonly interruption?: Interruption
  /** How many messages the platform still holds, and loses, when a source fails. At most 2 x 1,000. */
  readonly lost?: number
  readonly maxAttempts?: number
}

type AttemptInput = {
  readonly connection: Connection
  readonly prepared: Prepared
  readonly source: Connector | undefined
  readonly destination: Connector
  readonly job: { readonly id: number; readonly attempt: number }
  readonly options: JobOptions
  readonly rules: Rules
}

/** undefined: the line is not a message, for example because it was cut off. */
export const parseLine = (line: string): Json | undefined => {
  try {
    const value = parseExact(line)
    return typeof value === 'object' && value !== null ? (value as Json) : undefined
  } catch {
    return undefined
  }
}

/** Text on its way to the destination, in blocks; false once its end is gone. */
const createWriter = ({ stdin }: Container, { takeBlocks: take }: Rules) => {
  let waiting = ''
  const write = async (text: string): Promise<void> => {
    if (stdin === undefined || stdin.destroyed || text === '') return
    if (!stdin.write(text)) await Promise.race([once(stdin, 'drain'), once(stdin, 'close')]).catch(() => undefined)
  }
  return {
    add: (line: string): Promise<void> => {
      const { blocks, rest } = take(`${waiting}${line}\n`)
      waiting = rest
      return write(blocks)
    },
    end: async (): Promise<void> => {
      await write(waiting)
      stdin?.end()
    },
  }
}

const runAttempt = async (input: AttemptInput): Promise<{ readonly result: AttemptResult; readonly kept: Kept }> => {
  const { connection, prepared, rules, options, job } = input
  const screened = { definition: connection.definition, streams: prepared.streams }
  let track = startTrack(prepared.kept)
  let isCancelled = false
  let isDestinationGone = false
  const log: string[] = []
  const junk = { source: [] as string[], destination: [] as string[] }
  const statuses: string[] = []
  const unselected = new Set<string>()
  const traces: Array<AttemptEnd['traces'][number]> = []

  const destination = startContainer({
    verb: 'write',
    connector: input.destination,
    files: { 'catalog.json': rules.toDestinationCatalog(connection, prepared.streams) },
    job,
    isProcess1: options.interruption === 'SIGTERM',
  })
  const source =
    input.source &&
    startContainer({
      verb: 'read',
      connector: input.source,
      files: {
        'catalog.json': rules.toSourceCatalog(prepared.streams),
        ...(prepared.inputState === undefined ? {} : { 'inputState.json': prepared.inputState }),
      },
      job,
    })

  const interrupt = (): void => {
    if (options.interruption === 'cancelled') isCancelled = true
    if (options.interruption === 'cancelled' || options.interruption === 'destination killed') destination.kill()
    if (options.interruption === 'cancelled') source?.kill()
    if (options.interruption === 'SIGTERM') destination.evict()
    if (options.interruption !== 'orchestrator gone') return
    track = { ...track, trouble: 'the orchestrator is gone' }
    destination.disconnect()
    source?.disconnect()
  }
  const noteOther = (origin: Origin, { type, log: entry, trace }: Json): void => {
    if (type === 'LOG') log.push(`${(entry as Json).level} ${(entry as Json).message}`)
    if (type === 'TRACE' && (trace as Json).type === 'ERROR') traces.push({ origin, trace: trace as Json })
  }

  const queue: string[] = []
  const writer = createWriter(destination, rules)
  const send = async (line: string): Promise<void> => {
    queue.push(line)
    while (queue.length > (options.lost ?? 0)) await writer.add(queue.shift() ?? '')
  }
  const forward = async (message: Json): Promise<void> => {
    const verdict = rules.screenMessage(screened, message)
    if (verdict.verdict === 'fail') track = { ...track, trouble: verdict.reason }
    if (verdict.verdict !== 'pass') return
    const passed = verdict.message
    const { record, trace } = passed as { readonly record: Json; readonly trace: Json }
    if (passed.type === 'RECORD') {
      for (const name of Object.keys((message.record as Json).data as Json))
        if (!(name in (record.data as Json))) unselected.add(name)
      const sent = rules.toDestinationRecord(connection, passed)
      track = countRecord(
        track,
        { name: String(record.stream), namespace: record.namespace as string },
        sent === undefined,
      )
      if (sent !== undefined) await send(printExact(sent))
    } else if (passed.type === 'STATE') {
      const sent = rules.toDestinationState(connection, passed, { ...countedBy(track, passed), id: track.nextId })
      track = stageState(track, passed, sent)
      await send(printExact(sent))
    } else if (passed.type === 'TRACE' && trace.type === 'STREAM_STATUS') {
      const { stream_descriptor, status, reasons } = trace.stream_status as Json
      const reason = (reasons as ReadonlyArray<Json> | undefined)?.[0]?.type
      statuses.push([(stream_descriptor as Descriptor).name, status, reason].filter(Boolean).join(' '))
      if (status === 'COMPLETE') track = noteComplete(track, stream_descriptor as Descriptor)
    } else noteOther('source', passed)
  }

  const readDestination = async (): Promise<void> => {
    for await (const line of destination.lines) {
      const message = parseLine(line)
      if (message === undefined) junk.destination.push(line)
      else if (message.type !== 'STATE') noteOther('destination', message)
      else {
        const isFirst = track.acknowledged === 0
        track = rules.acknowledge(connection, track, message)
        if (isFirst) interrupt()
      }
    }
    isDestinationGone = true
    source?.terminate()
  }
  const readSource = async (): Promise<number | undefined> => {
    if (source === undefined) {
      for (const message of prepared.cleared ?? []) await forward(message)
      return undefined
    }
    for await (const line of source.lines) {
      if (isDestinationGone || track.trouble !== undefined) break
      const message = parseLine(line)
      if (message === undefined) junk.source.push(line)
      else await forward(message)
    }
    if (track.trouble !== undefined) source.terminate()
    return source.ended
  }

  const destinationRead = readDestination()
  const sourceStatus = await readSource()
  if ((sourceStatus ?? 0) === 0) {
    for (const message of source === undefined ? [] : rules.missingStates(prepared.streams, track.streamsWithState))
      await forward(message)
    for (const line of queue.splice(0)) await writer.add(line)
    for (const line of rules.completeLines(connection, prepared.streams, Date.now())) await writer.add(line)
  }
  await writer.end()
  await destinationRead
  const end: AttemptEnd = {
    isCancelled,
    sourceStatus,
    destinationStatus: await destination.ended,
    traces,
    trouble: track.trouble,
  }
  const { emitted, acknowledged, rejected, mismatches, warnings } = track
  const withErrors = (lines: ReadonlyArray<string>, stderr = '') => (stderr === '' ? lines : [...lines, stderr])
  return {
    kept: track.kept,
    result: {
      ...{ emitted, acknowledged, rejected, mismatches, warnings, log, statuses },
      status: attemptStatus(end),
      failures: rules.listFailures(end),
      sourceStatus,
      destinationStatus: end.destinationStatus,
      complete: completeStreams(track),
      junk: {
        source: withErrors(junk.source, source?.stderr()),
        destination: withErrors(junk.destination, destination.stderr()),
      },
      unselected: [...unselected],
    },
  }
}

export type InstalledConnection = {
  /** Runs a job to its end, attempt after attempt. `source` may be another one for each attempt. */
  readonly run: (
    job: Job,
    source: Connector | ((start: AttemptStart) => Connector),
    options?: JobOptions,
  ) => Promise<JobResult>
  readonly kept: () => Kept
}

/** A connection at the platform, with what it remembers from job to job. */
export const installConnection = (
  connection: Connection,
  destination: Connector,
  rules: Rules = airbyteRules,
): InstalledConnection => {
  let kept = nothingKept
  let jobCount = 0
  return {
    kept: () => kept,
    run: async (job, source, options = {}) => {
      const { maxAttempts = 3 } = options
      jobCount += 1
      const attempts: AttemptResult[] = []
      for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
        const id = { id: jobCount, attempt }
        const prepared = rules.prepareAttempt(connection, job, id, kept)
        const started = typeof source === 'function' ? source({ attempt, states: prepared.kept.states }) : source
        const ended = await runAttempt({
          ...{ connection, prepared, destination, options, rules, job: id },
          source: job.kind === 'clear' ? undefined : started,
        })
        kept = ended.kept
        attempts.push(ended.result)
        if (ended.result.status !== 'FAILED' || !rules.mayRetry(ended.result.failures)) break
      }
      const last = attempts.at(-1)
      return {
        status: last?.status ?? 'FAILED',
        reason: last?.status === 'FAILED' ? jobReason(last.failures) : undefined,
        attempts,
      }
    },
  }
}
