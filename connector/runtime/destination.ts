import { resolve } from 'node:path'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import {
  type ApiError,
  type ClientOptions,
  type Clock,
  createApi,
  readLookupList,
  systemClock,
  toFailure,
} from '../api'
import {
  type CommandIo,
  type ConfiguredCatalog,
  configFailure,
  countReasons,
  decodeInput,
  type Failure,
  findStreamById,
  hasOnlyRejections,
  type LogEntry,
  type LogLevel,
  type Message,
  noDeadLetters,
  type OpenSink,
  openDeadLetterFile,
  openResend,
  type Protocol,
  redactFailure,
  rejectionRemedy,
  runOrThrow,
  setHeapGrowth,
  takeUntilAbort,
  toInputStream,
  type WriteResult,
  type WriteRun,
  writeToSinks,
} from '../cdk'
import { type DestinationConfig, rejectAction } from '../config'
import {
  dryRunApi,
  type LocationLedger,
  openLedger,
  readLedger,
  resendPolicy,
  resendUnanswered,
  type SinkTarget,
  sendVisits,
  sinks,
} from '../sinks'
import {
  createClient,
  findAccessFailure,
  type ServiceClient,
  type ServiceClientOptions,
  toLocationLookup,
} from './client'

/** A config made ready to write: the client of its service and what the sinks need. */
type ConfiguredDestination = Pick<ServiceClient, 'onWait' | 'close'> & { readonly target: SinkTarget }

/** The largest answer that is accepted, in MB: an answer holds no more than an outcome for each record of a batch. */
const maxResponseMb = 64

/** How often an unanswered batch is sent; `suspect`: the parts of a batch that the service failed on. */
const sendAttempts = { normal: 6, suspect: 2 }

/**
 * Fails if the address is not allowed or the ledger cannot be read or written. `warn` and `inform` take messages for
 * people.
 */
export const openDestination = (
  config: DestinationConfig,
  warn: (message: string) => void,
  options: ServiceClientOptions,
  inform: (message: string) => void = () => undefined,
): TE.TaskEither<Failure, ConfiguredDestination> =>
  pipe(
    TE.fromEither(checkReconcile(config)),
    TE.flatMapEither(() => createClient({ ...config, max_response_mb: maxResponseMb }, { onNotice: warn, ...options })),
    TE.bindTo('client'),
    TE.bind('ledger', () => openConfiguredLedger(config)),
    TE.map(({ client, ledger }) => {
      const stop = new AbortController()
      return {
        target: createTarget(config, client, (options.clock ?? systemClock)(stop.signal), ledger, { warn, inform }),
        onWait: client.onWait,
        close: () => {
          stop.abort()
          return client.close()
        },
      }
    }),
  )

/** Fails where deactivations need a list that is not configured. */
const checkReconcile = ({ reconcile, lookups }: DestinationConfig): E.Either<Failure, void> =>
  reconcile.deactivate_unlisted && lookups.locations === undefined
    ? E.left(
        configFailure(
          'The config is wrong: reconcile.deactivate_unlisted needs ' +
            'lookups.locations, the list that tells which locations there are.',
        ),
      )
    : E.right(undefined)

/** Reads the list of locations that the config names. A list that may lack locations is no list to plan against. */
const createServiceListReader = (
  { lookups }: DestinationConfig,
  { send }: ServiceClient,
  warn: (message: string) => void,
): SinkTarget['serviceList'] => {
  if (lookups.locations === undefined) return O.none
  const { route, list } = toLocationLookup(lookups.locations)
  const { lookupLocations } = createApi(send, { locations: route })
  return O.some((isSample) =>
    pipe(
      readLookupList({
        ...list,
        setting: 'lookups.locations',
        fetch: lookupLocations,
        identify: ({ id }) => (id === undefined || id === null ? undefined : String(id)),
        isSample,
      }),
      TE.mapLeft((refused) =>
        refused._tag === 'Answer' ? refused.failure : toFailure('look up locations', refused.error),
      ),
      TE.filterOrElse(
        ({ doubt }) => doubt === undefined,
        ({ doubt = '' }) => configFailure(doubt),
      ),
      TE.tapIO(
        ({ notes }) =>
          () =>
            notes.forEach(warn),
      ),
    ),
  )
}

const openConfiguredLedger = ({
  reconcile,
  base_url,
  dry_run,
}: DestinationConfig): TE.TaskEither<Failure, O.Option<LocationLedger>> =>
  reconcile.ledger_path === undefined
    ? TE.right(O.none)
    : pipe((dry_run ? readLedger : openLedger)(reconcile.ledger_path, base_url), TE.map(O.some))

const createTarget = (
  config: DestinationConfig,
  client: ServiceClient,
  clock: Clock,
  ledger: O.Option<LocationLedger>,
  log: Pick<SinkTarget, 'warn' | 'inform'>,
): SinkTarget => ({
  // Only `resend` repeats requests: the client does not repeat visits, and would multiply the attempts for locations.
  api: config.dry_run ? dryRunApi : createApi((route) => client.send({ ...route, idempotent: false })),
  resend: (isSuspect) =>
    resendUnanswered(
      resendPolicy(
        {
          maxAttempts: isSuspect ? sendAttempts.suspect : sendAttempts.normal,
          maxWait: config.timeouts.max_wait_seconds * 1000,
        },
        clock.random,
      ),
      (millis) => TE.fromTask(clock.wait(millis)),
    ),
  mapping: config.mapping,
  mapByName: config.map_by_name,
  now: Date.now,
  maxVisitAge: config.max_visit_age_days * 86_400_000,
  ledger,
  serviceList: createServiceListReader(config, client, log.warn) ?? O.none,
  deactivateUnlisted: config.reconcile.deactivate_unlisted,
  wait: clock.wait,
  maxDeactivationsPercent: config.max_deactivations_percent,
  dryRun: config.dry_run,
  rejectedCodes: new Set(),
  ...log,
})

type ObjectName = keyof SinkTarget['mapping']

/** The objects that the config configures; both if it configures none. */
const listUsedObjects = ({ lookups, mapping, reconcile, streams }: DestinationConfig): ReadonlyArray<ObjectName> => {
  const names = (['visit_records', 'locations'] as const).filter(
    (name) =>
      Object.values(mapping[name]).some((column) => column !== undefined) ||
      Object.values(streams).includes(name) ||
      (name === 'locations' && (reconcile.ledger_path !== undefined || lookups.locations !== undefined)),
  )
  return names.length === 0 ? ['visit_records', 'locations'] : names
}

/**
 * Sends an empty array for each object used, since the service has no better way to check. A refusal of the request
 * itself means that permission is not denied.
 */
export const checkDestination =
  (
    config: DestinationConfig,
    { api, serviceList = O.none }: Pick<SinkTarget, 'api' | 'serviceList'>,
  ): TaskEither<Failure, string> =>
  async () => {
    const requests: Readonly<Record<ObjectName, TaskEither<ApiError, unknown>>> = {
      visit_records: sendVisits(api, []),
      locations: api.syncLocations([]),
    }
    const results: Array<string> = []
    for (const name of listUsedObjects(config)) {
      const answer = await requests[name]()
      const failure = E.isLeft(answer) ? findAccessFailure(name, answer.left) : undefined
      if (failure !== undefined) return E.left(failure)
      results.push(`${name}: permission not denied${E.isLeft(answer) ? formatStatus(answer.left) : ''}`)
    }
    if (O.isSome(serviceList)) {
      const list = await serviceList.value(true)()
      results.push(
        E.isRight(list)
          ? `list of locations: answered, ${list.right.records.length} on its first page`
          : `list of locations: not usable, so nothing is verified (${list.left.message})`,
      )
    }
    return E.right(`${results.join('; ')}.`)
  }

const formatStatus = (error: ApiError): string =>
  error._tag === 'Http' ? ` (it answered ${error.status}${error.status === 404 ? ': check base_url' : ''})` : ''

/** The most bytes of records in one batch. */
const maxBatchBytes = 1_000_000

/** The program that is written for: its protocol, the streams it configured, and where entries of the log go. */
export type WriteCaller = {
  readonly protocol: Protocol
  readonly catalog: ConfiguredCatalog
  readonly log?: (entry: LogEntry) => void
  /** A file of dead letters that are sent again, instead of what comes on stdin. */
  readonly resend?: string | undefined
}

const scheduleCallback = (millis: number, callback: () => void): (() => void) => {
  const timer = setTimeout(callback, millis)
  return () => clearTimeout(timer)
}

const openSinks = async ({ target }: ConfiguredDestination): Promise<ReadonlyMap<string, OpenSink<unknown>>> => {
  const openByName = new Map<string, OpenSink<unknown>>()
  for (const sink of sinks) openByName.set(sink.name, await runOrThrow(sink.open(target)))
  return openByName
}

type Log = (level: LogLevel, message: string) => void

/** Where a run has its records from, and where it keeps those that are rejected. */
type WriteInput = Pick<WriteRun, 'input' | 'streams' | 'saysEndings' | 'policy' | 'deadLetters'> & {
  /** The file of `deadLetters`; undefined: they are not kept. */
  readonly letterPath: string | undefined
  /** What becomes of the input after a run; returns why the run has failed after all. */
  readonly end: (result: WriteResult) => Promise<ReadonlyArray<Failure>>
  readonly close: () => Promise<void>
}

const openStdin = ({ stdin }: CommandIo, config: DestinationConfig, { protocol, catalog }: WriteCaller): WriteInput => {
  const decode = decodeInput(protocol, { purpose: 'deliver', now: Date.now, findStream: findStreamById(catalog) })
  const letterPath = config.dry_run ? undefined : config.dead_letter_path
  return {
    input: (halt) => decode(takeUntilAbort(halt, stdin)),
    streams: catalog.map(toInputStream),
    saysEndings: catalog.some(({ generation }) => generation !== undefined),
    policy: { onReject: rejectAction(config), maxPercent: config.max_rejects_percent },
    deadLetters: letterPath === undefined ? noDeadLetters : openDeadLetterFile(letterPath),
    letterPath,
    end: async () => [],
    close: async () => undefined,
  }
}

/** Rejections never end such a run. If it fails or is stopped, the file stays as it is, since all may be sent again. */
const openLetters = async (
  path: string,
  { dry_run }: DestinationConfig,
  stop: AbortSignal,
  log: Log,
): Promise<WriteInput> => {
  const objects = sinks.map(({ name }) => name)
  const { streams, unreadable, input, deadLetters, replaceFile, close } = await runOrThrow(openResend(path, objects))
  if (unreadable > 0) log('warn', `${path}: ${unreadable} lines cannot be read as dead letters, and stay in it.`)
  if (streams.length === 0) log('info', `${path} has no dead letter, so there is nothing to send.`)
  return {
    input,
    streams,
    saysEndings: false,
    policy: { onReject: 'continue', maxPercent: 100, mayRejectAll: true },
    deadLetters: dry_run ? noDeadLetters : deadLetters,
    letterPath: dry_run ? undefined : path,
    end: async ({ failures, inputFailures, countsByStream }) => {
      const isWhole = failures.length === 0 && inputFailures.length === 0 && !stop.aborted
      if (!isWhole) log('warn', `${path} is left as it was. Run again: what was sent is not counted twice.`)
      if (!isWhole) return []
      const replaced = dry_run ? E.right(undefined) : await replaceFile()
      const counts = [...countsByStream.values()]
      const isAllRejected = counts.length > 0 && counts.every(hasOnlyRejections)
      return [
        ...(E.isLeft(replaced) ? [replaced.left] : []),
        ...(isAllRejected ? [configFailure(`${path}: all records were rejected again. ${rejectionRemedy}.`)] : []),
      ]
    },
    close,
  }
}

/** Says what became of the records of each stream, and why some were rejected. */
const reportCounts = (
  { countsByStream }: WriteResult,
  summaries: ReadonlyArray<string>,
  { letterPath }: WriteInput,
  { dry_run }: DestinationConfig,
  log: Log,
): void => {
  const verb = dry_run ? 'would be sent' : 'accepted'
  for (const [stream, { received, accepted, rejected }] of countsByStream)
    log(
      'info',
      received === 0
        ? `${stream}: no record came, so nothing is changed at the service.`
        : `${stream}: ${received} received, ${accepted} ${verb}, ${rejected} rejected.`,
    )
  const advice =
    letterPath !== undefined
      ? ` See ${resolve(letterPath)}, and send them again with --resend.`
      : dry_run
        ? ''
        : ' Their records are not kept, since dead_letter_path is not set.'
  for (const summary of summaries) log('warn', `${summary}${advice}`)
}

/**
 * Writes the records of stdin and prints each acknowledged state and, at the end, each failure. A dry run sends nothing
 * and prints no state.
 */
export const runWrite = async (
  io: CommandIo,
  config: DestinationConfig,
  caller: WriteCaller,
  options: ClientOptions = {},
): Promise<WriteResult> => {
  const { protocol, log: writeLogEntry = () => undefined, resend } = caller
  const encoder = protocol.createEncoder({ now: Date.now })
  const emit = async (message: Message): Promise<void> => {
    const { lines, log: entries } = encoder.encode(message)
    entries.forEach(writeLogEntry)
    for (const text of lines) await io.print(text)
  }
  const log: Log = (level, message) => {
    // A broken output shows itself where a state or a failure is printed.
    emit({ _tag: 'Log', level, message: io.redactText(message) }).catch(() => undefined)
  }
  const destination = await runOrThrow(
    openDestination(
      config,
      (message) => log('warn', message),
      { proxyVariables: io.env, ...options },
      (message) => log('info', message),
    ),
  )
  const { dry_run, batch_size, max_batch_age_seconds, rate_limit } = config
  const unsubscribe = destination.onWait((time) =>
    log('info', `The service makes us wait until ${new Date(time).toISOString()}.`),
  )
  let input: WriteInput | undefined
  // More than a read has: the batches in flight are short-lived, and a small heap would be collected over and over.
  setHeapGrowth(200)
  try {
    input = resend === undefined ? openStdin(io, config, caller) : await openLetters(resend, config, io.stop, log)
    const { deadLetters, summaries } = countReasons(input.deadLetters)
    const result = await writeToSinks({
      ...input,
      deadLetters,
      objectNames: config.streams,
      sinks: await openSinks(destination),
      batch: { count: batch_size, bytes: maxBatchBytes, millis: max_batch_age_seconds * 1000 },
      inFlight: rate_limit.max_concurrency,
      emit: dry_run ? async () => undefined : emit,
      log,
      now: Date.now,
      setTimer: scheduleCallback,
      stop: io.stop,
    })
    const endFailures = await input.end(result)
    reportCounts(result, summaries(), input, config, log)
    for (const { message } of result.inputFailures) log('error', message)
    const failures = [...result.failures, ...endFailures].map((failure) => redactFailure(io.redactText, failure))
    for (const failure of failures) await emit({ _tag: 'Failed', failure })
    return { ...result, failures }
  } finally {
    await input?.close()
    unsubscribe()
    await destination.close()
  }
}
