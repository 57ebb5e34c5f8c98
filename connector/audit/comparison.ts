import type * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import {
  batchFeed,
  CommandError,
  configFailure,
  consumeFeed,
  type Failure,
  type Feed,
  flatMapFeed,
  runOrThrow,
} from '../cdk'
import type { NextRead } from '../snapshot'
import { appendBatchRows, type Database, loadDuckdb, openDatabase } from '../snapshot/store'
import type { ReviewDifference } from './answer'
import { type AuditedTable, dialects } from './audited-table'
import type { ContentDigest } from './content'
import { checkSqlSize, quoteList } from './packed-rows'
import { type AuditScope, bucketOfSql, bucketsSql, type ExpectedBucket, type ExpectedReview } from './statement'

/** A review at the service, its version, and how many rows the stream has for it. */
export type ServiceVersion = {
  readonly id: string
  readonly modifiedTime: number
  readonly rows: number
  /** Milliseconds since 1970, if requested. */
  readonly mentionTime?: number
  /** The content of its rows, if requested. */
  readonly digest?: ContentDigest
}

/** What an audit reads of a stream, implemented by the caller. Times are in milliseconds since 1970. */
export type ServiceVersions = {
  readonly stream: string
  /** Older versions are not read. */
  readonly startDate: number
  /** Everything up to a cutoff, from a scan that misses nothing. The last item gives the cutoff. */
  readonly versions: Feed<Failure, { readonly rows: ReadonlyArray<ServiceVersion>; readonly cutoff?: number }>
  /** What changed between a time and the moment of reading, and what was deleted. */
  readonly changedSince: (time: number) => Feed<Failure, ReadonlyArray<{ readonly id: string }>>
  readonly deletedSince: (time: number) => Feed<Failure, ReadonlyArray<{ readonly id: string }>>
}

/** The load after which a table is compared with the service. Times are in milliseconds since 1970. */
export type AuditedLoad = {
  /** Compare as of this time; undefined: as of the end of the scan. */
  readonly cutoff: number | undefined
  /** What the next load reads again. A version in it that this load did not send became visible late. */
  readonly next?: NextRead | undefined
  /** Where the next load starts reading deletions, which the table may lack; undefined: at the cutoff. */
  readonly deletedFrom?: number | undefined
}

/** What the service has, for an audit's statements. */
export type Expected = {
  readonly scope: AuditScope
  /** The numbers of reviews and rows as of the cutoff. */
  readonly reviews: number
  readonly rows: number
  readonly listBuckets: () => Promise<ReadonlyArray<ExpectedBucket>>
  readonly listReviews: (buckets: ReadonlyArray<number>) => Promise<ReadonlyArray<ExpectedReview>>
  /** The given reviews as the service has them, and how many versions it has since the oldest of them. */
  readonly findVersions: (ids: ReadonlyArray<string>) => Promise<{
    readonly versions: ReadonlyArray<{ readonly modifiedTime: number; readonly mentionTime: number | undefined }>
    readonly newer: number
  }>
}

/** The memory that DuckDB may use while an audit reads. The rest goes to disk. */
export const memoryLimit = 80e6

/**
 * The additional memory for each row beyond a million, because DuckDB does not use the disk when it finds the newest
 * version of each review.
 */
const bytesPerRow = 100

/**
 * Reads what the service has of a stream, then calls `body` with it. `zone`: of the table's times, by default UTC.
 * `spillPath`: what does not fit into memory goes beside this file. Rejects with a `CommandError` if the service cannot
 * be read completely.
 */
export const useExpected = async <A>(
  service: ServiceVersions,
  load: AuditedLoad,
  {
    bucketCount,
    spillPath,
    zone,
  }: { readonly bucketCount: number; readonly spillPath: string; readonly zone?: string | undefined },
  body: (expected: Expected) => Promise<A>,
): Promise<A> => {
  const db = await runOrThrow(openDatabase(':memory:', { memory: [memoryLimit], threads: 1, spillPath }))
  try {
    return await body(await readExpected(db, service, load, bucketCount, zone))
  } finally {
    db.close()
  }
}

/** A time in milliseconds since 1970, as the clocks of the zone show it. */
export const shownSql = (time: string, zone: string | undefined): string =>
  zone === undefined ? `(${time})` : `epoch_ms(timezone('${zone}', make_timestamptz((${time}) * 1000)))`

const earlyCutoffFailure = (cutoff: number, startDate: number): Failure =>
  configFailure(
    `The table would be compared as of ${new Date(cutoff).toISOString()}, and the start_date ` +
      `of the config is ${new Date(startDate).toISOString()}: nothing would be compared. Give ` +
      'the config that the table was loaded with, and the state of its last load.',
  )

const readExpected = async (
  db: Database,
  service: ServiceVersions,
  load: AuditedLoad,
  bucketCount: number,
  zone: string | undefined,
): Promise<Expected> => {
  const { stream, startDate: from } = service
  await db.run(servedTablesSql)
  const scanned = await readVersions(db, service)
  const cutoff = Math.min(load.cutoff ?? scanned, scanned)
  if (cutoff < from) throw new CommandError(earlyCutoffFailure(cutoff, from))
  await readChanges(db, service, scanned, Math.min(cutoff, load.deletedFrom ?? cutoff))
  await keepSent(db, load.next)
  const shown = await showBounds(db, from, cutoff, zone)
  const newestSql = (condition: string): string => newestVersionsSql(from, zone, condition)
  await db.run(`
    INSERT INTO changed
      SELECT id FROM served WHERE version > ${cutoff};
    INSERT INTO changed
      SELECT id FROM served
      WHERE version >= ${from} AND ${shownSql('version', zone)} NOT BETWEEN ${shown.from} AND ${shown.cutoff};
    INSERT INTO changed
      SELECT id FROM served ANTI JOIN sent USING (id, version)
      WHERE version > ${findLateFrom(load.next, cutoff)} AND version <= ${cutoff};
    CREATE TEMP VIEW reviews AS ${newestSql('true')}`)
  const changedIds = (await db.query('SELECT DISTINCT id FROM changed ORDER BY id')).map(({ id }) => String(id))
  const [total] = await db.query(
    'SELECT count(*) AS ids, coalesce(sum(row_count), 0)::BIGINT AS row_count FROM reviews',
  )
  return {
    scope: { stream, from, cutoff, shown, changedIds, bucketCount },
    reviews: Number(total?.ids),
    rows: Number(total?.row_count),
    listBuckets: () => listBuckets(db, bucketCount),
    listReviews: (buckets) =>
      listReviews(db, newestSql(`${bucketOfSql('duckdb', bucketCount)} IN (${buckets.join(', ')})`)),
    findVersions: (ids) => findVersions(db, ids),
  }
}

/**
 * served: every version at the service. changed: reviews that are left out. sent: versions that the last load sent and
 * the next one reads again.
 */
const servedTablesSql = `
  SET preserve_insertion_order = false;
  CREATE TEMP TABLE served (
    id VARCHAR, version BIGINT, row_count BIGINT, mention BIGINT, content HUGEINT, fields VARCHAR
  );
  CREATE TEMP TABLE changed (id VARCHAR);
  CREATE TEMP TABLE sent (id VARCHAR, version BIGINT)`

/** Reads the versions of a stream into `served`. Returns the time up to which they are complete. */
const readVersions = async (db: Database, service: ServiceVersions): Promise<number> => {
  const { BIGINT, HUGEINT, VARCHAR } = loadDuckdb()
  let scanned = service.startDate
  await consumeFeed(
    pipe(
      service.versions,
      flatMapFeed(({ rows, cutoff }) => {
        scanned = cutoff ?? scanned
        return [rows]
      }),
      batchFeed(appendBatchRows),
    ),
    (rows) =>
      db.appendColumns(
        'served',
        [VARCHAR, BIGINT, BIGINT, BIGINT, HUGEINT, VARCHAR],
        [
          rows.map(({ id }) => id),
          rows.map(({ modifiedTime }) => BigInt(modifiedTime)),
          rows.map(({ rows: count }) => BigInt(count)),
          rows.map(({ mentionTime }) => (mentionTime === undefined ? null : BigInt(mentionTime))),
          rows.map(({ digest }) => digest?.content ?? 0n),
          rows.map(({ digest }) => digest?.fields ?? ''),
        ],
      ),
  )
  const count = Number(await db.scalar('SELECT count(*) FROM served'))
  await db.run(`SET memory_limit = '${memoryLimit + bytesPerRow * Math.max(0, count - 1e6)}B'`)
  return scanned
}

/** Reads into `changed` what changed since the scan and what was deleted since the load. */
const readChanges = async (
  db: Database,
  { changedSince, deletedSince }: ServiceVersions,
  scanned: number,
  deletedFrom: number,
): Promise<void> => {
  const { VARCHAR } = loadDuckdb()
  // A review that is restored between the two lists is in neither, so the first list is read once more.
  for (const changes of [changedSince(scanned), deletedSince(deletedFrom), changedSince(scanned)])
    await consumeFeed(batchFeed(appendBatchRows)(changes), (rows) =>
      db.appendColumns('changed', [VARCHAR], [rows.map(({ id }) => id)]),
    )
}

const keepSent = async (db: Database, next: NextRead | undefined): Promise<void> => {
  if (next === undefined || next.sent.length === 0) return
  const { BIGINT, VARCHAR } = loadDuckdb()
  await db.appendColumns(
    'sent',
    [VARCHAR, BIGINT],
    [next.sent.map(({ id }) => id), next.sent.map(({ modifiedTime }) => BigInt(modifiedTime))],
  )
}

/**
 * The time after which a version counts as late unless the load sent it. If the state knows no rows, or only a range of
 * them, any of these may have been sent.
 */
const findLateFrom = (next: NextRead | undefined, cutoff: number): number =>
  next === undefined || (next.sent.length === 0 && next.sentRange === undefined)
    ? cutoff
    : (next.sentRange?.until ?? next.from - 1)

/**
 * Both bounds as the zone's clocks show them. Rows that move to the other side of a bound when the clocks go back are
 * left out.
 */
const showBounds = async (
  db: Database,
  from: number,
  cutoff: number,
  zone: string | undefined,
): Promise<AuditScope['shown']> => {
  const [shown] = await db.query(`
    SELECT ${shownSql(String(from), zone)}::VARCHAR AS from_time, ${shownSql(String(cutoff), zone)}::VARCHAR AS cutoff`)
  return { from: Number(shown?.from_time), cutoff: Number(shown?.cutoff) }
}

/** The newest version of each review whose `id` meets a condition. */
const newestVersionsSql = (from: number, zone: string | undefined, condition: string): string => `
  SELECT id,
    ${shownSql('max(version)', zone)} AS version,
    max(version) AS modified,
    arg_max(row_count, version) AS row_count,
    arg_max(mention, version) AS mention,
    arg_max(content, version) AS content,
    arg_max(fields, version) AS fields
  FROM served
  ANTI JOIN changed USING (id)
  WHERE version >= ${from} AND ${condition}
  GROUP BY id
  HAVING arg_max(row_count, version) > 0`

const listBuckets = async (db: Database, bucketCount: number): Promise<ReadonlyArray<ExpectedBucket>> => {
  const found = await db.query(`
    WITH ${bucketsSql('duckdb', bucketCount, true)}
    SELECT bucket, ids,
      row_count::VARCHAR AS row_count,
      id_digest::VARCHAR AS id_digest,
      version_digest::VARCHAR AS version_digest,
      row_digest::VARCHAR AS row_digest,
      content_digest::VARCHAR AS content_digest
    FROM buckets`)
  return found.map((row) => ({
    bucket: Number(row.bucket),
    ids: BigInt(String(row.ids)),
    rows: BigInt(String(row.row_count)),
    idDigest: BigInt(String(row.id_digest)),
    versionDigest: BigInt(String(row.version_digest)),
    rowDigest: BigInt(String(row.row_digest)),
    contentDigest: BigInt(String(row.content_digest)),
  }))
}

const listReviews = async (db: Database, newestSql: string): Promise<ReadonlyArray<ExpectedReview>> => {
  const { chunks } = await db.stream(`SELECT id, version, row_count, content, fields FROM (${newestSql})`)
  const reviews: ExpectedReview[] = []
  for await (const rows of chunks)
    for (const [id, version, count, content, fields] of rows)
      reviews.push({
        id: String(id),
        version: Number(version),
        rows: Number(count),
        content: BigInt(String(content)),
        fields: String(fields),
      })
  return reviews.sort((a, b) => (a.id < b.id ? -1 : 1))
}

const findVersions = async (db: Database, ids: ReadonlyArray<string>): ReturnType<Expected['findVersions']> => {
  const found = await db.query(`
      SELECT modified::VARCHAR AS version, mention::VARCHAR AS mention
      FROM reviews
      WHERE id IN (${quoteList(['', ...ids])})`)
  const versions = found.map(({ version, mention }) => ({
    modifiedTime: Number(version),
    mentionTime: mention === null ? undefined : Number(mention),
  }))
  const oldest = versions.reduce((least, { modifiedTime }) => Math.min(least, modifiedTime), Number.MAX_SAFE_INTEGER)
  return { versions, newer: Number(await db.scalar(`SELECT count(*) FROM served WHERE version >= ${oldest}`)) }
}

const idsPerStatement = 1000

/**
 * Statements that delete the rows of extra, stale, doubled or changed reviews. The run from the repaired state sends
 * them again as the service has them. If the table keeps every version, older ones stay, because only the newest
 * counts.
 */
export const deleteStatement = (table: AuditedTable, differences: ReadonlyArray<ReviewDifference>): string => {
  const column = dialects[table.dialect].quote(table.idColumn)
  const isText = table.idType === 'text'
  const ids = differences
    .filter(({ difference, isBehind }) => difference !== 'missing' && !(isBehind && table.rows === 'newest'))
    .map(({ id }) => id)
  const known = isText ? ids.flatMap((id) => (id === '' ? [] : [`'${id}'`])) : ids.filter((id) => /^-?\d+$/.test(id))
  const key = isText ? `TRIM(${column})` : column
  const statements: string[] = []
  for (let from = 0; from < known.length; from += idsPerStatement)
    statements.push(
      `DELETE FROM ${table.name} WHERE ${key} IN (${known.slice(from, from + idsPerStatement).join(', ')});\n`,
    )
  if (ids.includes(''))
    statements.push(`DELETE FROM ${table.name} WHERE ${column} IS NULL${isText ? ` OR ${key} = ''` : ''};\n`)
  return statements.length === 0 ? '-- There is nothing to delete.\n' : statements.join('')
}

/** The statement, or an error if it is too large for the warehouse. */
export const checkStatementSize = (
  sql: string,
  table: AuditedTable,
  { cutoff, changedIds }: AuditScope,
  buckets: ReadonlyArray<number> | undefined,
): E.Either<Failure, string> =>
  checkSqlSize(
    sql,
    table,
    `: ${changedIds.length.toLocaleString('en')} reviews have changed since ${new Date(cutoff).toISOString()}. ${
      buckets === undefined
        ? 'Load the table again and give the state of that run, or use fewer --buckets'
        : 'Give fewer buckets with --ids, or load the table again and give the state of that run'
    }.`,
  )

/**
 * What the service has as a dbt seed: one column of words separated by spaces, which dbt cannot mistake for a number or
 * a time. A line holds: scope, start, cutoff and number of buckets; a bucket with its numbers and digests; or a review
 * that has changed since the cutoff.
 */
export const formatSeed = async ({ scope, listBuckets }: Pick<Expected, 'scope' | 'listBuckets'>): Promise<string> =>
  [
    'expected',
    `scope ${scope.from} ${scope.cutoff} ${scope.bucketCount} ${scope.stream}`,
    ...(await listBuckets()).map(({ bucket, ids, rows, idDigest, versionDigest, rowDigest }) =>
      ['bucket', bucket, ids, rows, idDigest, versionDigest, rowDigest].join(' '),
    ),
    ...scope.changedIds.map((id) => `changed ${id}`),
    '',
  ].join('\n')
