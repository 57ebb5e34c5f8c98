import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { describeAttribute, Instant, Int64, optionalAttributes, toInstant, toMillis } from '../api'
import {
  defineStream,
  encodeRow,
  type Failure,
  type Feed,
  feedOf,
  parseExactJson,
  type Reader,
  type ReaderEvent,
  type Row,
  type Stream,
  type StreamRequest,
} from '../cdk'
import type { CutRecord } from '../export'
import { selectAttributes } from './attributes'
import type { RunSummary, ScanEnd, SourceEnv } from './source-env'
import {
  addVersion,
  createKeyDigest,
  createSentVersions,
  digestVersions,
  removeVersions,
  type StreamDigest,
} from './version-digest'

/** A record of `sync_audit`: what a run has sent of a stream. */
const SyncAudit = t.intersection(
  [
    t.type({
      stream: describeAttribute('Name of the stream')(t.string),
      startedAt: describeAttribute('When the run began to read the stream, by the clock of the extraction times')(
        Instant,
      ),
      endedAt: describeAttribute('When the last record was sent, by the same clock')(Instant),
      certified: describeAttribute('true if the scan has shown that nothing up to the cutoff is missing')(t.boolean),
      resumed: describeAttribute('true if the run continued a scan of an earlier run, whose records are not counted')(
        t.boolean,
      ),
      records: describeAttribute('Records that the run sent, including repeated ones')(Int64),
    }),
    optionalAttributes({
      cutoff: describeAttribute('Time up to which the stream is complete; null without one')(Instant),
      rows: describeAttribute('Rows that they make in a table: the newest version of each key')(Int64),
      digest: describeAttribute('Sum of the hashes of these rows, in decimal digits; null if there were too many')(
        t.string,
      ),
      digestColumns: describeAttribute('Columns that make up a hash, in this order')(t.string),
    }),
  ],
  'SyncAudit',
)

type SyncAudit = t.TypeOf<typeof SyncAudit>

export const createRunSummary = (): RunSummary => ({ scanEnds: new Map(), deletedTimes: new Map(), records: [] })

/** Reports that a scan of these streams has ended. A stream scanned twice counts as resumed if either scan was. */
export const reportScanEnd = (
  { runSummary }: Pick<SourceEnv, 'runSummary'>,
  streams: ReadonlyArray<string>,
  end: ScanEnd,
): void => {
  for (const stream of streams)
    runSummary?.scanEnds.set(stream, {
      ...end,
      isResumed: end.isResumed || runSummary.scanEnds.get(stream)?.isResumed === true,
    })
}

type StreamKeys = Pick<Stream<SourceEnv>, 'name' | 'primaryKey' | 'cursor'>

/**
 * The columns that make up the hash of a row. Rows made from a review count by that review, so that one hash serves
 * them all.
 */
const hashedColumns = ({ primaryKey, cursor }: StreamKeys): ReadonlyArray<string> => {
  const version = O.isSome(cursor) ? [cursor.value] : []
  return primaryKey[0] === 'reviewId' ? ['reviewId', ...version] : [...primaryKey, ...version]
}

/** Each row of the stream belongs to one version of a review, which its item gives. */
const isOfReview = ({ primaryKey, cursor }: StreamKeys): boolean =>
  primaryKey[0] === 'reviewId' || (primaryKey[0] === 'id' && O.isSome(cursor) && cursor.value === 'modifiedTime')

/** What one stream has sent in a run. */
type Tally = {
  readonly stream: StreamKeys
  records: number
  /** Adds rows that no projection has counted. */
  readonly addRows: (rows: ReadonlyArray<Row>) => void
  readonly digest: () => StreamDigest | undefined
}

/** Counts rows by their key and version. */
const createRowTally = (stream: StreamKeys): Tally => {
  const digest = createKeyDigest()
  const { primaryKey, cursor } = stream
  let hasKeys = true
  return {
    stream,
    records: 0,
    addRows: (rows) => {
      for (const { json } of rows) {
        const record = parseExactJson(Buffer.from(json).toString('utf8')) as Readonly<Record<string, unknown>>
        const key = primaryKey.map((name) => record[name] ?? undefined)
        const version = O.isSome(cursor) ? toMillis(String(record[cursor.value])) : 0
        hasKeys &&= !key.includes(undefined) && !Number.isNaN(version)
        if (hasKeys) digest.add(key.map(String).join(':'), version)
      }
    },
    digest: () => (hasKeys ? digest.digest(O.isSome(cursor)) : undefined),
  }
}

/**
 * The requests, with projections that count the versions of reviews from which they make rows, and a tally for each.
 */
const tallyRequests = (
  requests: ReadonlyArray<StreamRequest<unknown>>,
  streams: ReadonlyMap<string, StreamKeys>,
  summary: Pick<RunSummary, 'deletedTimes'>,
) => {
  const audited = requests.flatMap((request) => {
    const stream = streams.get(request.stream)
    return stream === undefined ? [] : [{ request, stream }]
  })
  const ofReviews = audited.filter(({ stream }) => isOfReview(stream))
  const versions = createSentVersions(ofReviews.length)
  const finish = once(() => {
    const reviews = ofReviews.findIndex(({ stream }) => stream.name === 'reviews')
    if (reviews >= 0) for (const [id, time] of summary.deletedTimes) removeVersions(versions, reviews, id, time)
    return digestVersions(versions)
  })
  const tallies = new Map<string, Tally>()
  const counting = audited.map(({ request, stream }): StreamRequest<unknown> => {
    const index = ofReviews.findIndex((other) => other.stream === stream)
    if (index < 0) {
      tallies.set(stream.name, createRowTally(stream))
      return request
    }
    tallies.set(stream.name, { stream, records: 0, addRows: () => undefined, digest: () => finish()?.[index] })
    return {
      ...request,
      project: (item) => {
        const rows = request.project(item)
        const { id, modifiedTime } = recordOf(item as AuditedItem)
        addVersion(versions, index, id, modifiedTime, rows.length)
        return rows
      },
    }
  })
  return { counting, tallies }
}

const once = <A>(make: () => A): (() => A) => {
  let made: { readonly value: A } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/** An item of a reader of reviews: a version of a review, alone or with its fields. */
type AuditedItem = CutRecord | { readonly record: CutRecord }

const recordOf = (item: AuditedItem): CutRecord => ('record' in item ? item.record : item)

/** Reads like `reader`, and keeps a record for each completed stream. */
const auditReader = (
  reader: Reader<SourceEnv, unknown>,
  streams: ReadonlyMap<string, StreamKeys>,
): Reader<SourceEnv, unknown> => ({
  name: reader.name,
  read: (source) => (requests) => {
    const { runSummary, now } = source
    if (runSummary === undefined) return reader.read(source)(requests)
    // Rows are counted where they are made, so they must be made here.
    const made = requests.map((request) => ({ ...request, derives: false }))
    const { counting, tallies } = tallyRequests(made, streams, runSummary)
    return auditFeed(reader.read(source)(counting), tallies, runSummary, now)
  },
})

async function* auditFeed(
  feed: Feed<Failure, ReaderEvent>,
  tallies: Map<string, Tally>,
  summary: RunSummary,
  now: () => number,
): Feed<Failure, ReaderEvent> {
  let startedAt = now()
  let endedAt = startedAt
  // A record's time lies between two of these readings of the clock, which may also be set back.
  const look = () => {
    const time = now()
    startedAt = Math.min(startedAt, time)
    endedAt = Math.max(endedAt, time)
  }
  for await (const event of feed) {
    look()
    if (E.isRight(event) && event.right._tag === 'Rows') {
      const tally = tallies.get(event.right.stream)
      tally?.addRows(event.right.rows)
      if (tally !== undefined) tally.records += event.right.rows.length
    }
    if (E.isRight(event) && event.right._tag === 'Failed') tallies.delete(event.right.stream)
    yield event
    look()
    if (E.isLeft(event)) return
  }
  look()
  for (const tally of tallies.values()) summary.records.push(toRecord(tally, summary, { startedAt, endedAt }))
}

const toRecord = (
  { stream, records, digest: takeDigest }: Tally,
  { scanEnds }: RunSummary,
  { startedAt, endedAt }: { readonly startedAt: number; readonly endedAt: number },
): SyncAudit => {
  const end = scanEnds.get(stream.name)
  const sent = takeDigest()
  return {
    stream: stream.name,
    startedAt: toInstant(startedAt),
    endedAt: toInstant(endedAt),
    cutoff: end === undefined ? null : toInstant(end.cutoff),
    certified: end?.isCertified ?? false,
    resumed: end?.isResumed ?? false,
    records,
    rows: sent?.rows ?? null,
    digest: sent === undefined ? null : String(sent.digest),
    digestColumns: hashedColumns(stream).join(','),
  }
}

/** What the streams before it have sent in this run. */
export const syncAuditStream = defineStream({
  name: 'sync_audit',
  codec: SyncAudit,
  primaryKey: ['stream', 'startedAt'],
  cursor: 'endedAt',
  reader: {
    name: 'audit the run',
    isLast: true,
    read:
      ({ runSummary, now }: SourceEnv) =>
      ([request]) => {
        if (request === undefined) return feedOf()
        const { stream, attributes } = request
        const readAt = toInstant(now())
        const rows = (runSummary?.records ?? []).map(encodeRow).map(selectAttributes(attributes))
        return feedOf<Failure, ReaderEvent>(
          E.right({ _tag: 'Rows', stream, rows, total: rows.length }),
          E.right({ _tag: 'Checkpoint', stream, state: () => ({ readAt }) }),
        )
      },
  },
  project: (row: Row) => [row],
})

/**
 * Adds readers that count what the streams send, and the stream that reports it as the last one. Streams that share a
 * reader still do.
 */
export const addSyncAudit = (streams: ReadonlyArray<Stream<SourceEnv>>): ReadonlyArray<Stream<SourceEnv>> => {
  const byName = new Map(streams.map((stream) => [stream.name, stream]))
  const readers = new Map(streams.map(({ reader }) => [reader, auditReader(reader, byName)]))
  return [
    ...streams.map((stream) => ({ ...stream, reader: readers.get(stream.reader) ?? stream.reader })),
    syncAuditStream,
  ]
}
