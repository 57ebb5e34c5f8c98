import * as O from 'fp-ts/Option'
import { type CommandIo, type Message, type MessageConsumer, readObjectMembers, type Stream, stringAt } from '../cdk'
import type { SourceEnv } from '../streams'
import { createRangeEstimate, formatTimeLeft, type RangeEstimate, type TimeRange } from './range-estimate'

/** How often the cursor of a record is sampled, in milliseconds. */
const sampleInterval = 100

/** An estimate means nothing before this time; milliseconds. */
const minEstimateTime = 2_000

/** The scan in progress. */
type ScanProgress = {
  readonly title: string
  readonly startedAt: number
  rows: number
  /** The first of its streams that sent rows. Its cursors measure the progress. */
  measuredStream: string | undefined
  estimate: RangeEstimate | undefined
  sampledAt: number
}

const newScanProgress = (title: string, startedAt: number): ScanProgress => ({
  title,
  startedAt,
  rows: 0,
  measuredStream: undefined,
  estimate: undefined,
  sampledAt: Number.NEGATIVE_INFINITY,
})

/** One line about the scan: its rows, their rate, how much of the time range they cover, and the time left. */
const formatScanProgress = (scan: ScanProgress, now: number): string => {
  const elapsed = now - scan.startedAt
  const figures = [`${scan.rows.toLocaleString('en')} rows`]
  if (elapsed >= minEstimateTime) {
    figures.push(`${Math.round((scan.rows * 1000) / elapsed).toLocaleString('en')}/s`)
    const covered = scan.estimate?.covered()
    if (covered !== undefined) figures.push(`${Math.floor(covered.now * 100)}% of time range`)
    if (covered !== undefined && covered.now - covered.before >= 0.02)
      figures.push(`${formatTimeLeft((elapsed * (1 - covered.now)) / (covered.now - covered.before))} left`)
  }
  return `${scan.title}: ${figures.join(', ')}`
}

/** What the user sees of a run. */
type ProgressReport = {
  readonly io: Pick<CommandIo, 'printProgress' | 'printWarning'>
  readonly startDate: number
  readonly streams: ReadonlyArray<Pick<Stream<SourceEnv>, 'name' | 'reader' | 'cursor'>>
  readonly now: () => number
  /** By stream: what earlier runs have read of its scan. */
  readonly earlier: Readonly<Record<string, TimeRange>>
  /** The reader of `scan`; undefined before the first scan. */
  reader: unknown
  scan: ScanProgress
  /** The streams that just failed for the same reason, which is printed once. */
  failed: { readonly names: ReadonlyArray<string>; readonly reason: string }
}

/** Reports progress to the user during a run. Streams fed by the same scan share a line. */
export const createProgressReporter = (
  io: ProgressReport['io'],
  { startDate }: Pick<SourceEnv, 'startDate'>,
  streams: ProgressReport['streams'],
  now: () => number,
  earlier: ProgressReport['earlier'] = {},
): { readonly report: MessageConsumer; readonly finish: () => void } => {
  const report: ProgressReport = {
    ...{ io, startDate, streams, now, earlier },
    reader: undefined,
    scan: newScanProgress('', now()),
    failed: noFailure,
  }
  return {
    report: async (message) => reportMessage(report, message),
    finish: () => {
      printFailure(report)
      io.printProgress('')
    },
  }
}

const reportMessage = (report: ProgressReport, message: Message): void => {
  const { io, now } = report
  if (message._tag !== 'Failed' && message._tag !== 'Checkpoint') printFailure(report)
  switch (message._tag) {
    case 'Started':
      if (startScan(report, message.stream.name)) io.printProgress(formatScanProgress(report.scan, now()))
      return
    case 'SharedRecords':
    case 'Records': {
      report.scan.rows += message.rows.length
      const last = message.rows.at(-1)
      const stream = message._tag === 'Records' ? message.stream : (message.streams[0] ?? '')
      if (last !== undefined) sampleTime(report, stream, last.json)
      io.printProgress(formatScanProgress(report.scan, now()))
      return
    }
    case 'Waiting':
      io.printProgress(
        `${report.scan.title}: ${report.scan.rows.toLocaleString('en')} rows; the service ` +
          `makes us wait until ${new Date(message.until).toISOString()}`,
      )
      return
    case 'Failed':
      if (message.isRepeated !== true) addFailure(report, message.stream ?? 'The run', message.failure.message)
      return
    case 'Log':
      if (message.skipped === undefined && /warn|error/.test(message.level)) io.printWarning(message.message)
      return
    default:
      return
  }
}

/** Starts a scan if the stream belongs to another one than the previous stream. Returns true if it did. */
const startScan = (report: ProgressReport, stream: string): boolean => {
  const reader = report.streams.find(({ name }) => name === stream)?.reader
  if (reader === report.reader) return false
  const [first, ...others] = report.streams.filter((each) => each.reader === reader)
  report.reader = reader
  report.scan = newScanProgress(`${first?.name}${others.length > 0 ? ` and ${others.length} more` : ''}`, report.now())
  return true
}

/** Feeds the cursor of a row to the estimate now and then. */
const sampleTime = ({ scan, startDate, streams, now, earlier }: ProgressReport, stream: string, json: Uint8Array) => {
  scan.measuredStream ??= stream
  scan.estimate ??= createRangeEstimate({ from: startDate, to: scan.startedAt }, earlier[stream])
  if (scan.measuredStream !== stream || now() - scan.sampledAt < sampleInterval) return
  scan.sampledAt = now()
  const line = Buffer.from(json.buffer, json.byteOffset, json.byteLength)
  const cursor = O.toUndefined(streams.find(({ name }) => name === stream)?.cursor ?? O.none)
  const text = stringAt(line, cursor === undefined ? undefined : readObjectMembers(line, '')?.get(cursor))
  const time = Date.parse(text ?? '')
  if (!Number.isNaN(time)) scan.estimate.add(time)
}

const noFailure: ProgressReport['failed'] = { names: [], reason: '' }

const addFailure = (report: ProgressReport, name: string, reason: string): void => {
  if (report.failed.reason !== reason) printFailure(report)
  report.failed = { names: [...report.failed.names, name], reason }
}

const printFailure = (report: ProgressReport): void => {
  const { names, reason } = report.failed
  if (names.length > 0) report.io.printWarning(`${names.join(', ')} failed. ${reason}`)
  report.failed = noFailure
}
