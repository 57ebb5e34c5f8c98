import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, Review, toFailure, toInstant } from '../api'
import { configFailure, type Failure, transientFailure } from '../cdk'
import { boundsOf, type CutRecord, createCutter, createReviewFetcher, type ExportPage, type FetchPage } from '../export'
import { chooseCutoff, leavesOutRows } from '../reading'
import { createDeletionFetcher, deletionExportOperation, reviewExportOperation, type SourceEnv } from '../streams'

/** A failure, or warnings. */
export type CheckVerdict = E.Either<Failure, ReadonlyArray<string>>

/** One of the two exports and its parameters for a check, which asks for a few rows. */
type CheckedExport = {
  readonly name: string
  readonly hasMentionTime: boolean
  readonly fetch: FetchPage
}

/** Fetches pages of the review export, checking only the key and cursor of each review. */
export const createSampleFetcher = ({ api }: SourceEnv): FetchPage =>
  createReviewFetcher(
    api,
    createCutter({ codec: Review, list: 'reviews', primaryKey: 'id', cursor: 'modifiedTime', undeclared: 'drop' }),
  )

/** The review export comes first: its answer also shows that the service and the token work. */
export const listExports = (source: SourceEnv): readonly [CheckedExport, ...ReadonlyArray<CheckedExport>] => [
  { ...reviewExportOperation, fetch: createSampleFetcher(source) },
  { ...deletionExportOperation, fetch: createDeletionFetcher({ api: source.api, onUnknown: 'drop' }) },
]

/** Converts an error to a failure. A wait that is too long for a check may be short enough for a run. */
export const toCheckFailure = (operation: string, error: ApiError): Failure =>
  error._tag === 'Wait'
    ? transientFailure(
        `${operation}: the service limits our rate and asks to wait ` +
          `${Math.ceil(error.wait / 1000)} s, longer than a check may last. Check again then.`,
      )
    : toFailure(operation, error)

const sampleSize = 10

/** Fetches the rows that changed since a time, in milliseconds. */
export const fetchSample = (
  { fetch }: CheckedExport,
  { filters }: SourceEnv,
  from: number,
  offset = 0,
): TaskEither<ApiError, ExportPage> =>
  fetch({ ...filters, modifiedTimeFrom: toInstant(from), offset, limit: sampleSize })

/** Far enough ahead that nothing can have changed later; milliseconds. */
export const oneDay = 86_400_000

/**
 * The specification does not say how the service answers an offset beyond the last row. The same request without an
 * offset has just succeeded.
 */
const isBadRequest = (error: ApiError): boolean => error._tag === 'Http' && error.status === 400

/** A row that the service leaves out although it matches the filter. */
type LeftOutRow = {
  /** When it changed. */
  readonly time: number
  /** The row comes once a lookback is subtracted from the time. */
  readonly isCovered: boolean
}

const hasRow = (page: ExportPage, row: CutRecord): boolean =>
  page.rows.some(({ id, modifiedTime }) => id === row.id && modifiedTime === row.modifiedTime)

/**
 * Asks for changes since one second before the newest row, which must come. A filter only removes rows, so a row of the
 * first page stays on it unless the service has no order or the row has changed.
 */
const findLeftOutRow = (
  exported: CheckedExport,
  source: SourceEnv,
  page: ExportPage,
): TaskEither<ApiError, LeftOutRow | undefined> => {
  const [newest] = [...page.rows].sort((a, b) => b.modifiedTime - a.modifiedTime)
  if (newest === undefined || newest.modifiedTime < source.startDate + 1000) return TE.right(undefined)
  const time = newest.modifiedTime
  return pipe(
    fetchSample(exported, source, time - 1000),
    TE.flatMap((since): TaskEither<ApiError, LeftOutRow | undefined> => {
      if (hasRow(since, newest)) return TE.right(undefined)
      return pipe(
        TE.Do,
        TE.apS('again', fetchSample(exported, source, source.startDate)),
        TE.apS('lookback', fetchSample(exported, source, time - source.lookback)),
        TE.map(({ again, lookback }) => {
          const isSame = page.rows.every(({ id }, i) => id === again.rows[i]?.id)
          const isCertain = hasRow(again, newest) && (isSame || page.rows.length < sampleSize)
          return isCertain ? { time, isCovered: hasRow(lookback, newest) } : undefined
        }),
      )
    }),
  )
}

const describeLeftOut = (name: string, time: number, remedy: string): string =>
  `${name}: asked for changes after ${toInstant(time - 1000)}, the service leaves out a row that changed ` +
  `at ${toInstant(time)}. It may read modifiedTimeFrom in its own time zone, not as UTC. ${remedy}`

/** Warns of rows dated after the service's own time. One such row may be a mistake. */
const warnOfEarlyDate = ({ name }: CheckedExport, { lookback }: SourceEnv, early: ExportPage): ReadonlyArray<string> =>
  early.rows.length < 2
    ? []
    : [
        `${name}: rows are dated more than lookback_minutes (${lookback / 60_000}) ` +
          'after the Date of the answers. A run reads up to that Date, so ' +
          'changes arrive that much later; ask the operator of the service to set its clocks.',
      ]

/** The first rows of an export, and the answers that show if it obeys its parameters. */
type ExportSamples = {
  readonly page: ExportPage
  /** The changes from tomorrow on: none, if the service obeys. */
  readonly later: ExportPage
  readonly leftOut: LeftOutRow | undefined
  /** The rows dated more than a lookback after the service's own time; undefined if not requested. */
  readonly early: ExportPage | undefined
  /** The rows after those of `page`. */
  readonly next: ReadonlyArray<CutRecord>
}

const fetchSamples = (
  exported: CheckedExport,
  source: SourceEnv,
  page: ExportPage,
): TaskEither<ApiError, ExportSamples> =>
  pipe(
    TE.Do,
    TE.apS('page', TE.right<ApiError, ExportPage>(page)),
    TE.apS('later', fetchSample(exported, source, Math.max(source.now(), page.servedAt ?? 0) + oneDay)),
    TE.apS('leftOut', findLeftOutRow(exported, source, page)),
    TE.apS(
      'early',
      page.rows.length === 0 || page.servedAt === undefined || !exported.hasMentionTime
        ? TE.right(undefined)
        : fetchSample(exported, source, page.servedAt + source.lookback),
    ),
    TE.apS(
      'next',
      page.rows.length === 0
        ? TE.right([])
        : pipe(
            fetchSample(exported, source, source.startDate, page.rows.length),
            TE.map(({ rows }) => rows),
            TE.orElse((error) => (isBadRequest(error) ? TE.right([]) : TE.left(error))),
          ),
    ),
  )

/** Names an ignored parameter without which a run would read everything, or the same rows, again and again. */
const findIgnoredParameter = ({ page, later, next }: ExportSamples, { startDate }: SourceEnv): string | undefined => {
  if (later.rows.length > 0)
    return 'ignores modifiedTimeFrom: it answers rows though the time asked for lies in the future'
  if (page.rows.some(({ modifiedTime }) => modifiedTime < startDate - 1000))
    return 'ignores modifiedTimeFrom: it answers rows from before start_date'
  if (next.length > 0 && next.every(({ id }, i) => id === page.rows[i]?.id))
    return 'ignores offset: it answers the same rows at another offset'
  return undefined
}

const judgeSamples = (exported: CheckedExport, source: SourceEnv, samples: ExportSamples): CheckVerdict => {
  const { name, hasMentionTime } = exported
  const { page, leftOut, early } = samples
  const ignored = findIgnoredParameter(samples, source)
  if (ignored !== undefined)
    return E.left(
      configFailure(`${name}: the service ${ignored}. No run could be sure to have read everything; ask its operator.`),
    )
  if (leftOut !== undefined && !leftOut.isCovered)
    return E.left(
      configFailure(
        describeLeftOut(
          name,
          leftOut.time,
          'Runs would lose rows. Set lookback_minutes to more than the offset of the ' +
            'zone from UTC (1440 covers every zone), or ask the operator of the service.',
        ),
      ),
    )
  return E.right([
    ...(leftOut === undefined ? [] : [describeLeftOut(name, leftOut.time, 'lookback_minutes covers it.')]),
    ...(early === undefined ? [] : warnOfEarlyDate(exported, source, early)),
    ...chooseCutoff(page.servedAt, source.now())[1].map(({ message }) => message),
    ...(page.narrowerFilters ?? []).map(
      (key) => `${name}: the service applies a narrower ${key} than the config asks for.`,
    ),
    // A run asks for wider bounds than the default if the operation has parameters for them.
    ...(!hasMentionTime && leavesOutRows({}, boundsOf(page.filter), page.servedAt ?? source.now())
      ? [`${name}: the service leaves out rows by its own default. Ask its operator.`]
      : []),
  ])
}

/** Checks the first rows (`sample`), and that the service obeys modifiedTimeFrom and offset. */
export const checkExport = (
  exported: CheckedExport,
  source: SourceEnv,
  sample = fetchSample(exported, source, source.startDate),
): TaskEither<Failure, ReadonlyArray<string>> =>
  pipe(
    sample,
    TE.flatMap((page) => fetchSamples(exported, source, page)),
    TE.mapLeft((error) => toCheckFailure(exported.name, error)),
    TE.flatMapEither((samples) => judgeSamples(exported, source, samples)),
  )
