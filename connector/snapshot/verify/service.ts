import { BIGINT, LIST, listValue } from '@duckdb/node-api'
import * as E from 'fp-ts/Either'
import * as TE from 'fp-ts/TaskEither'
import {
  CommandError,
  configFailure,
  drainFeed,
  encodeAirbyte,
  type Failure,
  type Feed,
  formatStateFile,
  joinText,
  type Message,
  type StreamInfo,
} from '../../cdk'
import type { Database, Snapshot } from '../store/database'
import { deletionsTableName, listStreamTables, reviewsTableName } from '../store/tables'
import { type Check, type CheckResult, runCheck } from './check'

/** A review of the service, with what is needed to compare it with the snapshot's. */
export type ServiceReview = {
  /** The id in digits. */
  readonly id: string
  /** Milliseconds since 1970. */
  readonly modifiedTime: number
}

/** What `verify` reads from the service; the caller implements it. Times in milliseconds since 1970. */
export type ServiceReviews = {
  /** Older reviews are not read. */
  readonly startDate: number
  /** How far before its cursor each run starts to read, in milliseconds; the next run may still bring reviews as new as that. */
  readonly lookback: number
  /** Every review up to a cutoff, which the last item gives, from a scan that misses none. */
  readonly reviews: Feed<Failure, { readonly rows: ReadonlyArray<ServiceReview>; readonly cutoff?: number }>
  /** Reviews changed or deleted after these times, read in one pass: differences in these are not failures. */
  readonly changesSince: (time: {
    readonly changed: number
    readonly deleted: number
  }) => Feed<Failure, ReadonlyArray<ServiceReview>>
}

/** How many differences a result lists. */
const maxDifferences = 10_000

/**
 * Compares the service's reviews with the snapshot's by id and modified time. Leaves the temporary tables `_service` and
 * `_moving` and the view `_compared`. Rejects with `CommandError` if the service cannot be read completely.
 */
export const compareReviews = async (
  { db }: Snapshot,
  service: ServiceReviews,
): Promise<ReadonlyArray<CheckResult>> => {
  if (!(await listStreamTables(db)).some(({ name }) => name === reviewsTableName))
    throw new CommandError(
      configFailure(`${db.path} has no ${reviewsTableName} to compare with the service. Sync them first.`),
    )
  await db.run(
    'CREATE OR REPLACE TEMP TABLE _service (id BIGINT, time TIMESTAMPTZ); CREATE OR REPLACE TEMP TABLE _moving (id BIGINT, time TIMESTAMPTZ)',
  )
  let cutoff = service.startDate
  await consumeFeed(service.reviews, async (item) => {
    await insertServiceReviews(db, '_service', item.rows)
    cutoff = item.cutoff ?? cutoff
  })
  const cursor = await readReviewCursor(db, reviewsTableName, service.startDate)
  const deletedCursor = await readReviewCursor(db, deletionsTableName, service.startDate)
  await consumeFeed(service.changesSince({ changed: cutoff, deleted: deletedCursor }), (rows) =>
    insertServiceReviews(db, '_moving', rows),
  )
  await db.run(comparisonSql(service.startDate, cursor - service.lookback))
  const results: Array<CheckResult> = []
  for (const check of serviceChecks) results.push(await runCheck(db, check, maxDifferences))
  return results
}

const consumeFeed = async <A>(feed: Feed<Failure, A>, process: (item: A) => Promise<void>): Promise<void> => {
  const result = await drainFeed((item: A) => TE.rightTask<Failure, void>(() => process(item)))(feed)()
  if (E.isLeft(result)) throw new CommandError(result.left)
}

const insertServiceReviews = (
  db: Database,
  table: '_service' | '_moving',
  rows: ReadonlyArray<ServiceReview>,
): Promise<void> =>
  rows.length === 0
    ? Promise.resolve()
    : db.run(
        `INSERT INTO ${table} SELECT unnest($ids), make_timestamptz(unnest($times) * 1000)`,
        {
          ids: listValue(rows.map(({ id }) => BigInt(id))),
          times: listValue(rows.map(({ modifiedTime }) => BigInt(modifiedTime))),
        },
        { ids: LIST(BIGINT), times: LIST(BIGINT) },
      )

const readReviewCursor = async (db: Database, stream: string, startDate: number): Promise<number> =>
  Number(
    (await db.scalar(
      `SELECT epoch_ms(TRY_CAST(state->>'$.modifiedTimeFrom' AS TIMESTAMPTZ)) FROM _state WHERE stream = $stream`,
      { stream },
    )) ?? startDate,
  )

/** The verdict `later` is for reviews that the next run brings: changed after `stableBefore`, or while the service was read. */
const comparisonSql = (startDate: number, stableBefore: number): string => `
  CREATE OR REPLACE TEMP VIEW _compared AS
  SELECT coalesce(s.id, r.id) AS id, r.time AS ours, s.time AS theirs, CASE
      WHEN r.time = s.time THEN 'same'
      WHEN coalesce(s.id, r.id) IN (SELECT id FROM _moving) THEN 'later'
      WHEN s.time > make_timestamptz(${Math.trunc(stableBefore)}::BIGINT * 1000) AND coalesce(r.time < s.time, true) THEN 'later'
      WHEN r.id IS NULL THEN 'missing' WHEN s.id IS NULL THEN 'extra' ELSE 'stale' END AS verdict
  FROM (SELECT id, max(time) AS time FROM _service GROUP BY id) AS s
  FULL JOIN (
    SELECT id, date_trunc('millisecond', max("modifiedTime")) AS time FROM ${reviewsTableName}
    WHERE "modifiedTime" >= make_timestamptz(${Math.trunc(startDate)}::BIGINT * 1000) GROUP BY id) AS r ON r.id = s.id`

const verdictSql = (verdict: string): string => `
      SELECT 'id ' || id || concat(', ours of ' || ours, ', theirs of ' || theirs) AS what FROM _compared WHERE verdict = '${verdict}'`

const repairHint = 'Repair it: feedback verify --config FILE --repair FOLDER.'

/** The checks of `_compared`. */
export const serviceChecks: ReadonlyArray<Check> = [
  {
    name: 'no review is missing',
    explain: `Every review of the service is in the file, up to the saved state. ${repairHint}`,
    sql: verdictSql('missing'),
  },
  {
    name: 'no review is stale',
    explain: `Each review has the modified time that the service gives. ${repairHint}`,
    sql: verdictSql('stale'),
  },
  {
    name: 'no review is extra',
    explain: `The service has every review of the file. ${repairHint}`,
    sql: verdictSql('extra'),
  },
  {
    name: 'not read yet',
    explain: 'Reviews that the next run brings: newer than the saved state, or changed while the service was read.',
    note: true,
    sql: verdictSql('later'),
  },
]

export type Repair = {
  /** Airbyte states from which the next run reads missing and stale reviews again; undefined if there are none. */
  readonly state: string | undefined
  /** Airbyte messages, a line each, that delete the reviews which the service does not have; undefined if there are none. */
  readonly messages: string | undefined
}

/** Plans the repair of the differences in `_compared`; call `compareReviews` first. `now`: the time of the deletions, in milliseconds since 1970. */
export const planRepair = async ({ db }: Snapshot, deletedReviews: StreamInfo, now: number): Promise<Repair> => {
  const earliest = await db.scalar(`SELECT epoch_ms(min(theirs)) FROM _compared WHERE verdict IN ('missing', 'stale')`)
  const extra = await db.query(
    `SELECT id::VARCHAR AS id FROM _compared WHERE verdict = 'extra' OR (verdict = 'stale' AND ours > theirs) ORDER BY _compared.id`,
  )
  return {
    state: earliest === null || earliest === undefined ? undefined : await rewindStates({ db }, Number(earliest)),
    messages:
      extra.length === 0
        ? undefined
        : encodeDeletions(
            extra.map(({ id }) => String(id)),
            deletedReviews,
            now,
          ),
  }
}

/** The states of every stream whose cursor is a review's modified time, set back to `from` and without their progress in a scan. */
const rewindStates = async ({ db }: Snapshot, from: number): Promise<string> => {
  const streams = await db.query(`
    SELECT stream, json_merge_patch(state, json_object('modifiedTimeFrom', strftime(make_timestamptz(${Math.trunc(from)}::BIGINT * 1000)::TIMESTAMP, '%Y-%m-%dT%H:%M:%S.%gZ'), 'recent', NULL, 'scan', NULL)) AS state
    FROM _state JOIN _streams USING (stream)
    WHERE stream <> '${deletionsTableName}' AND cursor IN ('modifiedTime', 'reviewModifiedTime') ORDER BY stream`)
  return formatStateFile(streams.map(({ stream, state }) => ({ stream: String(stream), state: String(state) })))
}

const encodeDeletions = (ids: ReadonlyArray<string>, stream: StreamInfo, now: number): string => {
  const modifiedTime = new Date(now).toISOString()
  const messages: ReadonlyArray<Message> = [
    { _tag: 'Started', stream },
    {
      _tag: 'Records',
      stream: stream.name,
      at: now,
      rows: ids.map((id) => ({ json: Buffer.from(`{"id":${id},"modifiedTime":"${modifiedTime}"}`) })),
    },
    { _tag: 'Finished', stream: stream.name },
  ]
  return messages
    .flatMap(encodeAirbyte(() => now))
    .map(joinText)
    .join('')
}
