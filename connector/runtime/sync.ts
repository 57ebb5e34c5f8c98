import * as E from 'fp-ts/Either'
import { flow } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import {
  type CommandIo,
  consumeMessages,
  defined,
  describeFailure,
  type Failure,
  type Message,
  type ReadOutcome,
  runOrThrow,
  type SourceState,
  type Stream,
  type StreamInfo,
  type SyncMode,
} from '../cdk'
import type { LakeShare, PlaceOptions } from '../lake'
import type { LoadSummary, OtherService, ReceivedRangeReader, Snapshot, SnapshotWriter } from '../snapshot'
import { mergeStates, readScanStart, readStateCursor, type SourceEnv } from '../streams'
import type { TimeRange } from './range-estimate'
import { type ConfiguredSource, loadLakeRoom, loadSnapshotRoom } from './source'
import { createProgressReporter } from './sync-progress'

type SyncOptions = PlaceOptions & {
  /** The DuckDB file or the lake; created if missing. */
  readonly path: string
  readonly streams: ReadonlyArray<Stream<SourceEnv>>
  readonly syncMode: SyncMode
  /** Keep every version of a row from now on. */
  readonly history?: boolean
  /** The time zone of the file's days and months from now on; undefined: unchanged, initially UTC. */
  readonly reportingTimeZone?: string | undefined
  readonly otherService?: OtherService
}

/** What a sync did with one stream, as `--json` prints it. */
export type StreamOutcome = {
  readonly stream: string
  /** `skipped`: there was nothing to read. */
  readonly status: 'complete' | 'incomplete' | 'skipped'
  readonly records: number
  readonly seconds: number
  /** Streams with the same scan were read together, in the same seconds. */
  readonly scan: string
  readonly sync_mode: SyncMode
  /** The attribute by which the stream is read; null: every run reads it in full. */
  readonly cursor_field: string | null
  /** From where the next run reads. */
  readonly cursor: string | null
  readonly failure: { readonly type: string; readonly message: string } | null
}

type SyncResult = {
  readonly outcome: ReadOutcome
  readonly streams: ReadonlyArray<StreamOutcome>
  readonly failures: ReadonlyArray<Failure>
  /** Why streams were skipped, each reason once. */
  readonly skipReasons: ReadonlyArray<string>
}

/**
 * Reads new rows into a DuckDB file, continuing from the states that the file holds. Reports progress, warnings and
 * failures on stderr.
 */
export const syncSnapshot = async (
  io: CommandIo,
  configured: ConfiguredSource,
  { path, streams, syncMode, history = false, reportingTimeZone, otherService = 'refuse', ...opening }: SyncOptions,
): Promise<SyncResult> => {
  const room = await loadSnapshotRoom()
  const isLake = room.isLakePath(path)
  const share = isLake ? O.toUndefined(configured.env.partition) : undefined
  await runOrThrow(room.checkTimeZone(reportingTimeZone))
  const place = isLake ? await openLakePlace(path, opening, share, io.printWarning) : await openFilePlace(path, opening)
  const { snapshot } = place
  try {
    await snapshot.db.withMemory('claiming the file', () =>
      room.claimSnapshot(snapshot, configured.service, otherService),
    )
    if (reportingTimeZone !== undefined) await room.setReportingTimeZone(snapshot, reportingTimeZone)
    const state = await snapshot.db.withMemory('reading the states', () => place.openStates(syncMode))
    const writer = await place.createWriter(history)
    const catalog = streams.map(({ name }) => ({ name, syncMode, attributes: O.none }))
    const log = createSyncLog()
    const reporter = createProgressReporter(
      io,
      configured.env,
      streams,
      Date.now,
      await readEarlierRanges(room.readReceivedRange(snapshot), state, streams),
    )
    const outcome = await consumeMessages(
      io,
      configured,
      { catalog, state, holdsRows: writer.holdsRows, derives: true },
      [writer.write, async (message) => log.add(message), reporter.report],
    ).finally(reporter.finish)
    const summaries = await writer.finish()
    const savedState = await place.readStates()
    if (outcome === 'complete') await place.end()
    return {
      outcome,
      failures: [...log.failures.values()],
      skipReasons: log.skipReasons(),
      streams: streams.map((stream) =>
        toStreamOutcome(
          stream,
          summaries.find((summary) => summary.stream === stream.name),
          log,
          savedState[stream.name],
        ),
      ),
    }
  } catch (error) {
    // The writer explains its own errors, but not those of what is written before and after it.
    throw room.explainWriteError(snapshot.db.path, error)
  } finally {
    await room.closeSnapshot(snapshot)
  }
}

/** Where a sync writes. */
type Place = {
  readonly snapshot: Snapshot
  /** The states from which this run continues. */
  readonly openStates: (syncMode: SyncMode) => Promise<SourceState>
  readonly createWriter: (history: boolean) => Promise<SnapshotWriter>
  readonly readStates: () => Promise<SourceState>
  /** Call it once everything was read. */
  readonly end: () => Promise<void>
}

const openFilePlace = async (path: string, options: PlaceOptions): Promise<Place> => {
  const room = await loadSnapshotRoom()
  const snapshot = await runOrThrow(room.openSnapshot(path, 'write', options))
  return {
    snapshot,
    openStates: async (syncMode) => room.chooseStates(snapshot, await room.readSnapshotState(snapshot), syncMode),
    createWriter: (history) => room.createSnapshotWriter(snapshot, { now: Date.now, history }),
    readStates: () => room.readSnapshotState(snapshot),
    end: async () => undefined,
  }
}

/** A lake. Other processes may append their shares of a backfill to it at the same time. */
const openLakePlace = async (
  path: string,
  { lake, ...options }: PlaceOptions,
  share: LakeShare | undefined,
  printWarning: (text: string) => void,
): Promise<Place> => {
  const [room, lakeRoom] = [await loadSnapshotRoom(), await loadLakeRoom()]
  const snapshot = await runOrThrow(
    lakeRoom.openLake(path, 'write', { ...options, lake: { ...lake, ...defined({ share }) } }),
  )
  const merge = flow(
    mergeStates,
    E.match(
      ({ message }): SourceState | undefined => {
        printWarning(message)
        return undefined
      },
      (merged) => merged,
    ),
  )
  return {
    snapshot,
    openStates: async (syncMode) => {
      lakeRoom.checkShare(share, syncMode)
      return lakeRoom.openLakeStates(snapshot, share, syncMode, merge, Date.now())
    },
    // A lake keeps every version until it is compacted.
    createWriter: async () => {
      const loader = await lakeRoom.createLakeLoader(snapshot, share, Date.now())
      return room.createSnapshotWriter(snapshot, { now: Date.now, loader })
    },
    readStates: () => lakeRoom.readLakeStates(snapshot, share),
    end: async () => {
      if (share !== undefined) await lakeRoom.endShare(snapshot, share, merge, Date.now())
    },
  }
}

/** The time ranges that earlier runs have read of the scans that this run continues, by stream. */
const readEarlierRanges = async (
  readReceivedRange: ReceivedRangeReader,
  state: SourceState,
  streams: ReadonlyArray<Stream<SourceEnv>>,
): Promise<Readonly<Record<string, TimeRange>>> => {
  const ranges: Record<string, TimeRange> = {}
  for (const { name } of streams) {
    const begun = readScanStart(state[name])
    const range = begun === undefined ? undefined : await readReceivedRange(name, begun)
    const [from, to] = [Date.parse(range?.from ?? ''), Date.parse(range?.to ?? '')]
    if (from <= to) ranges[name] = { from, to }
  }
  return ranges
}

/** Collects what the messages of a run say about its streams. */
const createSyncLog = () => {
  const started = new Map<string, StreamInfo>()
  const failures = new Map<string, Failure>()
  const skipped = new Map<string, string>()
  return {
    started,
    failures,
    skipped,
    add: (message: Message): void => {
      if (message._tag === 'Started') started.set(message.stream.name, message.stream)
      if (message._tag === 'Failed') failures.set(message.stream ?? '', message.failure)
      if (message._tag === 'Log' && message.skipped !== undefined) skipped.set(message.skipped, message.message)
    },
    /** The streams that were skipped for the same reason, with that reason. */
    skipReasons: (): ReadonlyArray<string> => {
      const streamsByReason = new Map<string, ReadonlyArray<string>>()
      for (const [stream, message] of skipped) {
        const reason = message.replace(`${stream}: `, '')
        streamsByReason.set(reason, [...(streamsByReason.get(reason) ?? []), stream])
      }
      return [...streamsByReason].map(([reason, names]) => `Skipped ${names.join(', ')}: ${reason}`)
    },
  }
}

type SyncLog = ReturnType<typeof createSyncLog>

const toStreamOutcome = (
  { name, reader, cursor }: Stream<SourceEnv>,
  summary: LoadSummary | undefined,
  { started, failures, skipped }: SyncLog,
  state: unknown,
): StreamOutcome => {
  const failure = failures.get(name) ?? failures.get('')
  const status = summary?.status === 'complete' ? (skipped.has(name) ? 'skipped' : 'complete') : 'incomplete'
  return {
    stream: name,
    status,
    records: summary?.records ?? 0,
    seconds: summary?.seconds ?? 0,
    scan: reader.name,
    sync_mode: started.get(name)?.syncMode ?? 'full_refresh',
    cursor_field: O.toNullable(cursor),
    cursor: O.isNone(cursor) ? null : readStateCursor(state),
    failure: failure === undefined ? null : describeFailure(failure),
  }
}
