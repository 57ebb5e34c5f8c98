import * as E from 'fp-ts/Either'
import { batchFeed, consumeFeed, type Failure, type Feed, runOrThrow } from '../cdk'
import { appendBatchRows, type Database, loadDuckdb, openDatabase } from '../snapshot/store'
import { type AuditedTable, createClock, type ZoneClock } from './audited-table'
import { memoryLimit, shownSql } from './comparison'
import {
  type AuditWindow,
  type ExpectedGroup,
  type FeedbackDifference,
  type FeedbackScope,
  groupsSql,
  type NamedFeedback,
  toEntityName,
} from './entity-statement'
import { checkSqlSize, quoteList } from './packed-rows'

/** A row at the service: its entity, such as `location:1034`, its id, and its time in milliseconds since 1970. */
export type ServiceFeedbackRow = { readonly entity: string; readonly id: string; readonly time: number }

/** What an audit reads of a stream by entity, implemented by the caller. Times are in milliseconds since 1970. */
export type ServiceFeedback = {
  readonly stream: string
  /** Older rows are not read. */
  readonly from: number
  /** Every row of every entity, as the stream reads them. */
  readonly rows: Feed<Failure, ReadonlyArray<ServiceFeedbackRow>>
  /**
   * Available after the last row: each entity with the time up to which it is compared, or the reason why it is left
   * out.
   */
  readonly cutoffs: () => ReadonlyMap<string, E.Either<string, number>>
}

/** What the service has, for an audit's statements. */
export type ExpectedFeedback = {
  readonly scope: FeedbackScope
  /** The number of rows up to the cutoffs. */
  readonly rows: number
  readonly listGroups: () => Promise<ReadonlyArray<ExpectedGroup>>
  readonly listRows: (buckets: ReadonlyArray<string>) => Promise<ReadonlyArray<NamedFeedback>>
  /** The oldest time of these rows at the service, by entity, in milliseconds. */
  readonly findOldest: (rows: ReadonlyArray<FeedbackDifference>) => Promise<ReadonlyMap<string, number>>
}

/**
 * Reads what the service has of a stream by entity, then calls `body` with it. `spillPath`: what does not fit into
 * memory goes beside this file. `zone`: of the table's times, by default UTC. Rejects with a `CommandError` if the
 * service cannot be read.
 */
export const useExpectedFeedback = async <A>(
  service: ServiceFeedback,
  {
    window,
    spillPath,
    zone,
  }: { readonly window: AuditWindow; readonly spillPath: string; readonly zone?: string | undefined },
  body: (expected: ExpectedFeedback) => Promise<A>,
): Promise<A> => {
  const db = await runOrThrow(openDatabase(':memory:', { memory: [memoryLimit], threads: 1, spillPath }))
  try {
    return await body(await readExpectedFeedback(db, service, window, zone))
  } finally {
    db.close()
  }
}

const readExpectedFeedback = async (
  db: Database,
  service: ServiceFeedback,
  window: AuditWindow,
  zone: string | undefined,
): Promise<ExpectedFeedback> => {
  await db.run(`
    CREATE TEMP TABLE served (entity VARCHAR, id VARCHAR, version BIGINT);
    CREATE TEMP TABLE audited (entity VARCHAR, name VARCHAR, cutoff BIGINT)`)
  await readRows(db, service)
  const scope = chooseScope(service, window, createClock(zone))
  await keepEntities(db, scope)
  await db.run(`
    CREATE TEMP VIEW feedback AS
      SELECT name, id, ${shownSql('max(version)', zone)} AS version, 1 AS row_count
      FROM served INNER JOIN audited USING (entity)
      WHERE version BETWEEN ${scope.from} AND cutoff
      GROUP BY name, id`)
  return {
    scope,
    rows: Number(await db.scalar('SELECT count(*) FROM feedback')),
    listGroups: () => listGroups(db, window),
    listRows: (buckets) => listRows(db, window, buckets),
    findOldest: (rows) => findOldest(db, rows),
  }
}

const readRows = async (db: Database, service: ServiceFeedback): Promise<void> => {
  const { BIGINT, VARCHAR } = loadDuckdb()
  await consumeFeed(batchFeed(appendBatchRows)(service.rows), (rows) =>
    db.appendColumns(
      'served',
      [VARCHAR, VARCHAR, BIGINT],
      [rows.map(({ entity }) => entity), rows.map(({ id }) => id), rows.map(({ time }) => BigInt(time))],
    ),
  )
}

/**
 * Decides what is compared. A bound that the clocks show twice is moved out of these two hours, so that rows do not end
 * up on its wrong side.
 */
const chooseScope = (
  { stream, from, cutoffs }: ServiceFeedback,
  window: AuditWindow,
  clock: ZoneClock,
): FeedbackScope => {
  const moveBack = (cutoff: number): number => cutoff - 2 * clock.goBack(cutoff)
  const sorted = [...cutoffs()].sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    stream,
    from: from + 2 * clock.goBack(from),
    window,
    entities: sorted.flatMap(([entity, cutoff]) =>
      E.isLeft(cutoff) ? [] : [{ entity, name: toEntityName(entity), cutoff: moveBack(cutoff.right) }],
    ),
    clock,
    leftOut: sorted.flatMap(([entity, cutoff]) => (E.isLeft(cutoff) ? [{ entity, reason: cutoff.left }] : [])),
  }
}

const keepEntities = async (db: Database, { entities }: FeedbackScope): Promise<void> => {
  const { BIGINT, VARCHAR } = loadDuckdb()
  await db.appendColumns(
    'audited',
    [VARCHAR, VARCHAR, BIGINT],
    [
      entities.map(({ entity }) => entity),
      entities.map(({ name }) => name),
      entities.map(({ cutoff }) => BigInt(cutoff)),
    ],
  )
}

const listGroups = async (db: Database, window: AuditWindow): Promise<ReadonlyArray<ExpectedGroup>> => {
  const found = await db.query(`
    WITH ${groupsSql('duckdb', window)}
    SELECT bucket, ids, id_digest::VARCHAR AS id_digest, version_digest::VARCHAR AS version_digest
    FROM buckets
    ORDER BY bucket`)
  return found.map(({ bucket, ids, id_digest, version_digest }) => ({
    bucket: String(bucket),
    ids: String(ids),
    idDigest: String(id_digest),
    versionDigest: String(version_digest),
  }))
}

const listRows = async (
  db: Database,
  window: AuditWindow,
  buckets: ReadonlyArray<string>,
): Promise<ReadonlyArray<NamedFeedback>> => {
  const found = await db.query(`
    WITH ${groupsSql('duckdb', window)}
    SELECT name, id, version::VARCHAR AS version
    FROM placed
    WHERE bucket IN (${quoteList(buckets)})
    ORDER BY name, id`)
  return found.map(({ name, id, version }) => ({ name: String(name), id: String(id), version: String(version) }))
}

const findOldest = async (
  db: Database,
  rows: ReadonlyArray<FeedbackDifference>,
): Promise<ReadonlyMap<string, number>> => {
  const found = await db.query(`
    SELECT entity, min(version)::VARCHAR AS oldest
    FROM served INNER JOIN audited USING (entity)
    WHERE name || ':' || id IN (${quoteList(['', ...rows.map(({ entity, id }) => `${entity}:${id}`)])})
    GROUP BY entity`)
  return new Map(found.map(({ entity, oldest }) => [String(entity), Number(oldest)]))
}

/** The statement, or an error if it is too large for the warehouse. */
export const checkFeedbackStatementSize = (
  sql: string,
  table: AuditedTable,
  buckets: ReadonlyArray<string> | undefined,
): E.Either<Failure, string> =>
  checkSqlSize(
    sql,
    table,
    `. ${
      buckets === undefined ? 'Use --window year, or fewer entities in the config' : 'Give fewer buckets with --ids'
    }.`,
  )
