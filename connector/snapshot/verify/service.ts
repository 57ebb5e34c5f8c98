import { pipe } from 'fp-ts/function'
import { batchFeed, CommandError, configFailure, consumeFeed, type Failure, type Feed, flatMapFeed } from '../../cdk'
import { appendBatchRows, type Database, instantSql, type Snapshot } from '../store/database'
import { loadDuckdb } from '../store/duckdb'
import { forgottenTableName } from '../store/forgotten'
import { deletionsTableName, hasTombstonesSql, listStreamTables, reviewsTableName, type Table } from '../store/tables'
import type { CheckResult } from './check'
import { runChecks } from './verify'

/** A review of the service, with what is needed to compare it with the snapshot's. */
export type ServiceReview = {
  /** The id in digits. */
  readonly id: string
  /** Milliseconds since 1970. */
  readonly modifiedTime: number
}

/** Rows that a state knows as sent only by their number: all with a time in this range, inclusive. */
type CountedRange = { readonly from: number; readonly until: number; readonly count: number }

/** What the next run reads from an export: everything since `from`, except the rows that it knows as sent. */
export type NextRead = {
  readonly from: number
  readonly sent: ReadonlyArray<ServiceReview>
  readonly sentRange?: CountedRange
}

/** What `verify` reads from the service; the caller implements it. Times in milliseconds since 1970. */
export type ServiceReviews = {
  /** Older reviews are not read. */
  readonly startDate: number
  /**
   * What the next run reads from a saved state; undefined: no state. It reads nothing from a state that cannot be
   * decoded.
   */
  readonly planNextRead: (stream: string, state: unknown) => NextRead | undefined
  /** Every review up to a cutoff, which the last item gives, from a scan that misses none. */
  readonly reviews: Feed<Failure, { readonly rows: ReadonlyArray<ServiceReview>; readonly cutoff?: number }>
  /** Reviews changed after a time, up to when they are read. */
  readonly changedSince: (time: number) => Feed<Failure, ReadonlyArray<ServiceReview>>
  /** Reviews deleted after a time, up to when they are read. */
  readonly deletedSince: (time: number) => Feed<Failure, ReadonlyArray<ServiceReview>>
}

/** How many differences a result lists. */
const maxDifferences = 10_000

type CompareOptions = {
  /** Called with a description of each step. */
  readonly onStep: (text: string) => void
  /** Other work on the file. The comparison waits for it, since both at once would need more memory. */
  readonly first: Promise<unknown>
}

/**
 * Compares the service's reviews with the snapshot's by id and modified time. Leaves temporary tables, among them
 * `_compared`. Rejects with `CommandError` if the service cannot be read completely.
 */
export const compareReviews = async (
  { db }: Snapshot,
  service: ServiceReviews,
  { onStep, first }: CompareOptions,
): Promise<ReadonlyArray<CheckResult>> => {
  const reviews = (await listStreamTables(db)).find(({ name }) => name === reviewsTableName)
  if (reviews === undefined)
    throw new CommandError(
      configFailure(`${db.path} has no ${reviewsTableName} to compare with the service. Sync them first.`),
    )
  await db.run(
    serviceTables.map((name) => `CREATE OR REPLACE TEMP TABLE ${name} (id BIGINT, time TIMESTAMPTZ)`).join('; '),
  )
  let cutoff = service.startDate
  let count = 0
  await insertFeed(db, '_service', service.reviews, (item) => {
    cutoff = item.cutoff ?? cutoff
    count += item.rows.length
    onStep(`Reading the service: ${count.toLocaleString('en')} reviews`)
    return item.rows
  })
  onStep('Reading what changed meanwhile')
  const nextReviews = service.planNextRead(reviewsTableName, await readState(db, reviewsTableName))
  const nextDeletions = await planDeletions(db, reviews, service)
  await insertServiceReviews(db, '_sent', nextReviews?.sent ?? [])
  await insertServiceReviews(db, '_sent_deletions', nextDeletions?.sent ?? [])
  await insertFeed(db, '_changed', service.changedSince(cutoff), (rows) => rows)
  const deletedFrom = Math.min(cutoff, nextDeletions?.from ?? cutoff)
  await insertFeed(db, '_deleted', service.deletedSince(deletedFrom), (rows) => rows)
  // A review restored between reading the two lists is in neither.
  await insertFeed(db, '_changed', service.changedSince(cutoff), (rows) => rows)
  await first
  onStep('Comparing the service with the file')
  await addSentRange(db, '_sent', '_service', nextReviews?.sentRange)
  await addSentRange(db, '_sent_deletions', '_deleted', nextDeletions?.sentRange)
  await db.run(movingSql(deletedFrom))
  const names = new Set((await db.query('SELECT table_name FROM duckdb_tables()')).map((row) => String(row.table_name)))
  await db.run(`${knownDeletionsSql(names)}; ${forgottenReviewsSql(names)}`)
  await db.withMemory('the comparison with the service', () =>
    db.run(comparisonSql(service.startDate, nextReviews?.from)),
  )
  await findUnreachable(db, service, nextReviews?.from)
  const undoneFrom = await db.scalar(`SELECT epoch_ms(min(theirs)) FROM _compared WHERE verdict = 'undone'`)
  if (undoneFrom !== null && undoneFrom !== undefined) {
    await insertFeed(db, '_listed', service.deletedSince(Number(undoneFrom) - 1), (rows) => rows)
    await db.run(forgetListedSql)
  }
  return runChecks(db, ['comparison'], { limit: maxDifferences })
}

/**
 * What the next run reads of the deletions: as a stream, as tombstones among the reviews, or nothing if the file has
 * neither.
 */
const planDeletions = async (db: Database, reviews: Table, service: ServiceReviews): Promise<NextRead | undefined> => {
  const isRead =
    (await db.scalar('SELECT count(*) FROM _streams WHERE stream = $stream', { stream: deletionsTableName })) !== 0
  if (isRead) return service.planNextRead(deletionsTableName, await readState(db, deletionsTableName))
  if (hasTombstonesSql(reviews, 'review') === undefined) return undefined
  const state = await readState(db, reviewsTableName)
  const { deletions, modifiedTimeFrom } = (state ?? {}) as Readonly<Record<string, unknown>>
  return service.planNextRead(deletionsTableName, deletions ?? (state === undefined ? undefined : { modifiedTimeFrom }))
}

const readState = async (db: Database, stream: string): Promise<unknown> => {
  const text = await db.scalar('SELECT state::VARCHAR FROM _state WHERE stream = $stream', { stream })
  return text === undefined || text === null ? undefined : JSON.parse(String(text))
}

const serviceTables = ['_service', '_changed', '_deleted', '_sent', '_sent_deletions', '_listed', '_next'] as const
type ServiceTable = (typeof serviceTables)[number]

/** Writes the reviews of a feed into a table, in batches. `process`: called with each item. */
const insertFeed = <A>(
  db: Database,
  table: ServiceTable,
  feed: Feed<Failure, A>,
  process: (item: A) => ReadonlyArray<ServiceReview>,
): Promise<void> =>
  consumeFeed(
    pipe(
      feed,
      flatMapFeed((item) => [process(item)]),
      batchFeed(appendBatchRows),
    ),
    (rows) => insertServiceReviews(db, table, rows),
  )

const insertServiceReviews = async (
  db: Database,
  table: ServiceTable,
  rows: ReadonlyArray<ServiceReview>,
): Promise<void> => {
  if (rows.length === 0) return
  const { BIGINT, DuckDBTimestampTZValue, TIMESTAMPTZ } = loadDuckdb()
  await db.appendColumns(
    table,
    [BIGINT, TIMESTAMPTZ],
    [
      rows.map(({ id }) => BigInt(id)),
      rows.map(({ modifiedTime }) => new DuckDBTimestampTZValue(BigInt(Math.trunc(modifiedTime)) * 1000n)),
    ],
  )
}

/** If the service has as many rows in the range as were sent, the next run sends none of them again; otherwise all. */
const addSentRange = async (
  db: Database,
  sent: ServiceTable,
  served: ServiceTable,
  range: CountedRange | undefined,
): Promise<void> => {
  if (range === undefined) return
  const rows = `FROM ${served} WHERE time BETWEEN ${instantSql(range.from)} AND ${instantSql(range.until)}`
  const count = await db.scalar(`SELECT count(DISTINCT id) ${rows}`)
  if (Number(count) === range.count) await db.run(`INSERT INTO ${sent} SELECT DISTINCT id, time ${rows}`)
}

/**
 * Into `_moving`: the reviews changed or deleted after the service was read, or whose deletion the next run brings. A
 * change or deletion that a state knows as sent is not read again.
 */
const movingSql = (deletedFrom: number): string => `
  CREATE OR REPLACE TEMP TABLE _moving AS
  SELECT id, NULL::TIMESTAMPTZ AS deleted FROM _changed ANTI JOIN _sent USING (id, time)
  UNION ALL
  SELECT id, time FROM _deleted ANTI JOIN _sent_deletions USING (id, time)
  WHERE time >= ${instantSql(deletedFrom)}`

/**
 * Into `_known_deletions`: the deletions that the file applies to reviews. A file of an old version has none from
 * tombstones.
 */
const knownDeletionsSql = (names: ReadonlySet<string>): string => {
  const sources = [
    'SELECT NULL::BIGINT AS id, NULL::TIMESTAMPTZ AS time WHERE false',
    ...(names.has(deletionsTableName) ? [`SELECT id, "modifiedTime" FROM ${deletionsTableName}`] : []),
    ...(names.has('_deletions') ? ['SELECT id, time FROM _deletions'] : []),
  ]
  return `CREATE OR REPLACE TEMP TABLE _known_deletions AS ${sources.join(' UNION ALL ')}`
}

/** Into `_forgotten_reviews`: the reviews erased from the file on request, which never come back. */
const forgottenReviewsSql = (names: ReadonlySet<string>): string =>
  `CREATE OR REPLACE TEMP TABLE _forgotten_reviews AS ${
    names.has(forgottenTableName)
      ? `SELECT TRY_CAST(id AS BIGINT) AS id FROM ${forgottenTableName} WHERE kind = 'review'`
      : 'SELECT NULL::BIGINT AS id WHERE false'
  }`

/**
 * Into `_compared`: every difference between the file and the service, with its verdict, based on the reviews in
 * `_both`. Only ids that differ between the two are grouped: nearly all are equal, and a group for each would take far
 * more memory.
 *
 * Verdicts: `forgotten`: the review was erased on request. `undone`: the file has deleted it by a later event, but the
 * service returns it. `later`: the next run brings it, because it changed while the service was read, or since
 * `nextFrom` and is not known as sent. `nextFrom` undefined: the next run reads none.
 */
const comparisonSql = (startDate: number, nextFrom: number | undefined): string => `
  CREATE OR REPLACE TEMP VIEW _ours AS
  SELECT id, date_trunc('millisecond', "modifiedTime") AS time
  FROM ${reviewsTableName} WHERE "modifiedTime" >= ${instantSql(startDate)};
  CREATE OR REPLACE TEMP VIEW _both AS
  SELECT id FROM _service UNION ALL SELECT id FROM _ours;
  CREATE OR REPLACE TEMP TABLE _candidates AS
  SELECT id FROM _service ANTI JOIN _ours USING (id, time)
  UNION
  SELECT id FROM _ours ANTI JOIN _service USING (id, time);
  CREATE OR REPLACE TEMP TABLE _compared AS
  SELECT coalesce(s.id, r.id) AS id, r.time AS ours, s.time AS theirs,
    CASE
      WHEN r.time = s.time THEN 'same'
      WHEN r.id IS NULL AND EXISTS (SELECT 1 FROM _forgotten_reviews AS f WHERE f.id = s.id) THEN 'forgotten'
      WHEN EXISTS (
        SELECT 1 FROM _moving
        WHERE _moving.id = coalesce(s.id, r.id) AND coalesce(r.time <= deleted, true)) THEN 'later'
      WHEN r.id IS NULL AND EXISTS (
        SELECT 1 FROM _known_deletions AS d WHERE d.id = s.id AND d.time >= s.time) THEN 'undone'
      WHEN ${nextFrom === undefined ? 'false' : `s.time >= ${instantSql(nextFrom)}`} AND coalesce(r.time < s.time, true)
        AND NOT EXISTS (SELECT 1 FROM _sent WHERE _sent.id = s.id AND _sent.time = s.time) THEN 'later'
      WHEN r.id IS NULL THEN 'missing'
      WHEN s.id IS NULL THEN 'extra'
      ELSE 'stale'
    END AS verdict
  FROM (${newestSql('_service')}) AS s FULL JOIN (${newestSql('_ours')}) AS r ON r.id = s.id;
  DELETE FROM _compared WHERE verdict = 'same'`

const newestSql = (reviews: string): string => `
    SELECT id, max(time) AS time
    FROM ${reviews} SEMI JOIN _candidates ON _candidates.id IS NOT DISTINCT FROM ${reviews}.id
    GROUP BY id`

/**
 * Asks as the next run will, if that is to bring reviews: no run brings a review that the service then leaves out, as
 * it does if it reads the filter's time in another zone. Without `from`, or from the start on, the next run asks the
 * way this comparison did.
 */
const findUnreachable = async (db: Database, service: ServiceReviews, from: number | undefined): Promise<void> => {
  if (from === undefined || from < service.startDate) return
  const unreached = `verdict = 'later' AND id NOT IN (SELECT id FROM _moving)`
  if ((await db.scalar(`SELECT count(*) FROM _compared WHERE ${unreached}`)) === 0) return
  await insertFeed(db, '_next', service.changedSince(from + filterMargin), (rows) => rows)
  await db.run(`
    UPDATE _compared SET verdict = CASE WHEN ours IS NULL THEN 'missing' ELSE 'stale' END
    WHERE ${unreached} AND id NOT IN (SELECT id FROM _next)`)
}

/** A run asks from one second before its bound, and so does `changedSince`; milliseconds. */
const filterMargin = 1_000

/** A deletion that the service lists is not undone. */
const forgetListedSql = `
  DELETE FROM _compared WHERE verdict = 'undone' AND EXISTS (
    SELECT 1 FROM _listed AS l WHERE l.id = _compared.id AND l.time >= _compared.theirs)`
