import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { toFailure, toInstant } from '../api'
import type { AuditedLoad, ContentDigest, ServiceDimensions, ServiceVersions } from '../audit'
import {
  configFailure,
  defined,
  type Failure,
  type Feed,
  flatMapFeed,
  mapDefined,
  type Row,
  type SourceState,
  unfoldFeed,
} from '../cdk'
import { readMentionTime } from '../export'
import { digestFilters, filterFrom, isInRange, read } from '../reading'
import type { NextRead, ServiceReview, ServiceReviews } from '../snapshot'
import {
  decodeExportState,
  deletionExportOperation,
  type ExportDefinition,
  exportFilters,
  isStartMovedBack,
  openExportState,
  type Rewind,
  reviewExportOperation,
  rewindStates,
  type SourceEnv,
  streams,
  streamsReadWith,
  toReadEnv,
} from '../streams'

/** Reads the ids and times of the service's reviews, which `feedback verify` compares with those in a snapshot. */
export const createReviewService = (source: SourceEnv): ServiceReviews => ({
  startDate: source.startDate,
  planNextRead: (stream, state) => planNextRead(source, stream, state),
  reviews: pipe(
    scanExport(reviewExportOperation, source, []),
    flatMapFeed(({ rows, completion }) => [{ rows, ...defined({ cutoff: completion?.cutoff }) }]),
  ),
  changedSince: (time) => readChanges(reviewExportOperation, source, time),
  deletedSince: (time) => readChanges(deletionExportOperation, source, time),
})

/**
 * Reads everything of an export since the start date, in a scan that misses nothing. `streamNames`: the streams for
 * which pages are cut.
 */
const scanExport = <Item>(operation: ExportDefinition<Item>, source: SourceEnv, streamNames: ReadonlyArray<string>) =>
  read(toReadEnv(operation, source, operation.fetch(source, streamNames)))({
    origin: { startDate: source.startDate, cursor: O.none, lookback: source.lookback },
    scope: digestFilters(operation.filters(source)),
    resumeToken: O.none,
  })

/** The streams that `feedback audit` compares: the exports, and parts of a review that carry its version. */
export const auditedStreams: ReadonlyArray<string> = streams
  .filter(({ primaryKey }) => primaryKey[0] === 'reviewId')
  .map(({ name }) => name)
  .concat('reviews', 'deleted_reviews')
  .sort()

/**
 * Reads which versions a stream has of each review, and how many rows; for the reviews `withMention`, also when they
 * were written. `digest`: what to learn about the content of the rows. Throws for a stream that is not in
 * `auditedStreams`.
 */
export const createVersionService = (
  source: SourceEnv,
  name: string,
  {
    withMention = new Set(),
    digest,
  }: {
    readonly withMention?: ReadonlySet<string>
    readonly digest?: ((id: string, rows: ReadonlyArray<Row>) => ContentDigest) | undefined
  } = {},
): ServiceVersions => {
  const stream = streams.find((other) => other.name === name && auditedStreams.includes(name))
  if (stream === undefined) throw new Error(`${name} cannot be audited`)
  const { changedSince, deletedSince } = createReviewService(source)
  const readVersions = <Item>(operation: ExportDefinition<Item>): ServiceVersions['versions'] => {
    const toItem = operation.toItem(source)
    const project = stream.projector()
    return pipe(
      scanExport(operation, source, [name]),
      flatMapFeed(({ rows, completion }) => [
        {
          rows: rows.map((row) => {
            const projected = project(toItem(row))
            const mentionTime = operation.hasMentionTime && withMention.has(row.id) ? readMentionTime(row) : undefined
            return {
              id: row.id,
              modifiedTime: row.modifiedTime,
              rows: projected.length,
              ...defined({ mentionTime, digest: digest?.(row.id, projected) }),
            }
          }),
          ...defined({ cutoff: completion?.cutoff }),
        },
      ]),
    )
  }
  const base = { stream: name, startDate: source.startDate }
  return stream.reader.name === deletionExportOperation.name
    ? // A restored review disappears from the list of deletions.
      {
        ...base,
        versions: readVersions(deletionExportOperation),
        changedSince: deletedSince,
        deletedSince: changedSince,
      }
    : { ...base, versions: readVersions(reviewExportOperation), changedSince, deletedSince }
}

/** The streams of things that reviews name; `feedback audit` compares them with what the newest reviews name. */
export const auditedDimensions: ReadonlyArray<string> = ['locations', 'providers', 'sources', 'categories', 'questions']

/** Reads what each review of a load names. Throws for a stream that is not in `auditedDimensions`. */
export const createDimensionService = (
  source: SourceEnv,
  name: string,
  { cutoff = Number.POSITIVE_INFINITY, next }: AuditedLoad,
): ServiceDimensions => {
  const stream = streams.find((other) => other.name === name && auditedDimensions.includes(name))
  if (stream === undefined) throw new Error(`${name} is not named by reviews`)
  const toItem = reviewExportOperation.toItem(source)
  const sent = new Set(next?.sent.map(({ id, modifiedTime }) => `${id} ${modifiedTime}`))
  const isLoaded = ({ id, modifiedTime }: ServiceReview): boolean =>
    modifiedTime <= cutoff &&
    (next === undefined ||
      modifiedTime < next.from ||
      isInRange({ modifiedTime }, next.sentRange) ||
      sent.has(`${id} ${modifiedTime}`))
  return {
    stream: name,
    rows: pipe(
      scanExport(reviewExportOperation, source, [name]),
      flatMapFeed(({ rows, completion }) => [
        {
          // Each review needs its own projection, since a projection remembers what it has returned.
          rows: rows.filter(isLoaded).flatMap((row) => stream.projector()(toItem(row))),
          ...defined({ cutoff: mapDefined(completion, (end) => Math.min(end.cutoff, cutoff)) }),
        },
      ]),
    ),
  }
}

const deletedReviews = 'deleted_reviews'

/** The load after which a table is compared with the service; times in milliseconds since 1970. */
export const planAudit = (source: SourceEnv, stream: string, states: SourceState): E.Either<Failure, AuditedLoad> =>
  pipe(
    decodeExportState(stream, O.fromNullable(states[stream])),
    E.chain(({ cursor, slack, readSince }) => {
      const saved = states[stream]
      if (O.isSome(readSince) && isStartMovedBack(readSince, source.startDate))
        return E.left(
          configFailure(
            `The state of ${stream} was read from ${toInstant(readSince.value)}, and start_date is ` +
              `earlier (${toInstant(source.startDate)}): its table lacks the rows in between. Let a run ` +
              'with this start_date finish first, or give the config that the table was loaded with.',
          ),
        )
      const cutoff = pipe(
        cursor,
        O.match(
          () => source.startDate,
          (time) => time - slack,
        ),
      )
      if (t.UnknownRecord.is(saved) && saved.scan !== undefined && cutoff <= source.startDate)
        return E.left(
          configFailure(
            `The state of ${stream} is that of an unfinished first run: nothing in its ` +
              'table is certain yet. Let the run finish, then give its state.',
          ),
        )
      const next = planNextRead(source, stream, saved)
      // Deletions have a separate state that may lag behind: that of their stream, or of tombstones.
      const deletions = (t.UnknownRecord.is(saved) ? saved.deletions : undefined) ?? states[deletedReviews]
      const deletedFrom =
        stream === deletedReviews || deletions === undefined ? next : planNextRead(source, deletedReviews, deletions)
      return E.right({ cutoff, next, deletedFrom: deletedFrom?.from })
    }),
  )

/** What the next run reads from a state. Uses the same decoder, filter and list of sent rows as the run itself. */
const planNextRead = (source: SourceEnv, stream: string, state: unknown): NextRead | undefined =>
  pipe(
    decodeExportState(stream, O.fromNullable(state)),
    E.map((decoded) => openExportState(decoded, source.startDate)),
    E.match(
      () => undefined,
      ({ cursor, slack, sentRows, sentRange, resumeToken }) => ({
        from: filterFrom(source.startDate, cursor, source.lookback + slack),
        sent: [...sentRows, ...(O.isSome(resumeToken) ? resumeToken.value.recent : [])].map(([id, modifiedTime]) => ({
          id,
          modifiedTime,
        })),
        ...defined({ sentRange: O.toUndefined(sentRange) }),
      }),
    ),
  )

/**
 * Number of passes over a list of several pages. A row that moves to another page during a pass is found by the next.
 */
const changePasses = 3

/** How much later than its `Date` the rows of an answer may be, since a `Date` has whole seconds. */
const dateError = 1_000

/**
 * What has changed in an export since a time. Stops at what changed after the reading began, since the list of a busy
 * service never ends.
 */
const readChanges = <Item>(
  operation: ExportDefinition<Item>,
  source: SourceEnv,
  since: number,
): Feed<Failure, ReadonlyArray<ServiceReview>> => {
  const fetch = operation.fetch(source, [])
  const filters = { ...operation.filters(source), modifiedTimeFrom: toInstant(since - 1_000) }
  const limit = source.pageSize
  return unfoldFeed(({ pass, offset, began, before, pages }: ChangesRead) =>
    pipe(
      fetch({ ...filters, offset, limit }),
      TE.bimap(
        (error) => toFailure(operation.name, error),
        ({ rows, servedAt = source.now() }) => {
          const latest = began ?? servedAt + dateError
          const isEnd = rows.every(({ id, modifiedTime }) => (offset > 0 && modifiedTime > latest) || before.has(id))
          const served = pages + (rows.length > 0 ? 1 : 0)
          const again = served > 1 && pass < changePasses ? O.some(firstPage(pass + 1)) : O.none
          const next = {
            pass,
            offset: offset + rows.length,
            began: latest,
            before: new Set(rows.map(({ id }) => id)),
            pages: served,
          }
          return [rows, isEnd ? again : O.some(next)] as const
        },
      ),
    ),
  )(firstPage(1))
}

/** The progress of reading changes. */
type ChangesRead = {
  readonly pass: number
  readonly offset: number
  /** The latest possible start of the pass, by the service's clock; undefined before its first page. */
  readonly began: number | undefined
  /** The ids of the previous page. A service that returns it again has no more. */
  readonly before: ReadonlySet<string>
  /** Number of pages with rows. */
  readonly pages: number
}

const firstPage = (pass: number): ChangesRead => ({ pass, offset: 0, began: undefined, before: new Set(), pages: 0 })

/**
 * The states from which the next run sends these versions of a stream again. `newer`: how many versions the service has
 * since the oldest of them. `cutoff`: from where it reads new rows if a state has no cursor; milliseconds.
 */
export const rewindStream = (
  source: SourceEnv,
  stream: string,
  states: SourceState,
  missed: Pick<Rewind, 'versions' | 'newer' | 'cutoff'>,
): E.Either<Failure, SourceState> =>
  missed.versions.length === 0
    ? E.right(states)
    : rewindStates(
        states,
        { stream, together: streamsReadWith(stream), ...missed },
        { ...source, filters: exportFilters(source, stream), now: source.now() },
      )
