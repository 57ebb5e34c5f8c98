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

/** A review as the service has it: no more than is needed to tell whether ours is the same. */
export type ServiceReview = {
  /** The digits of the id. */
  readonly id: string
  /** Milliseconds since 1970. */
  readonly modifiedTime: number
}

/** The service as `verify` asks it. Times in milliseconds since 1970. */
export type ServiceReviews = {
  /** What is older is not read. */
  readonly startDate: number
  /** How far each run reads back behind its cursor, in milliseconds: what is as new as that may still come by itself. */
  readonly lookback: number
  /** Every review as of a signpost, which the last item names, by a scan that loses none. */
  readonly reviews: Feed<Failure, { readonly rows: ReadonlyArray<ServiceReview>; readonly cutoff?: number }>
  /** What has changed or was deleted after a time, read quickly: to tell what moves from what is wrong. */
  readonly changesSince: (time: {
    readonly changed: number
    readonly deleted: number
  }) => Feed<Failure, ReadonlyArray<ServiceReview>>
}

/** As many as anybody will read. */
const maxShownDifferences = 10_000

/**
 * Puts the service's ids and times beside ours, in the temporary tables `_service` and `_moving` and the view `_compared`,
 * and asks what differs. Rejects with `Stopped` where the service cannot be read whole.
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
  let signpost = service.startDate
  await consumeFeed(service.reviews, async (item) => {
    await insertServiceReviews(db, '_service', item.rows)
    signpost = item.cutoff ?? signpost
  })
  const cursor = await readReviewCursor(db, reviewsTableName, service.startDate)
  const deleted = await readReviewCursor(db, deletionsTableName, service.startDate)
  await consumeFeed(service.changesSince({ changed: signpost, deleted: deleted }), (rows) =>
    insertServiceReviews(db, '_moving', rows),
  )
  await db.run(comparisonSql(service.startDate, cursor - service.lookback))
  const results: Array<CheckResult> = []
  for (const check of serviceChecks) results.push(await runCheck(db, check, maxShownDifferences))
  return results
}

const consumeFeed = async <A>(feed: Feed<Failure, A>, sink: (item: A) => Promise<void>): Promise<void> => {
  const done = await drainFeed((item: A) => TE.rightTask<Failure, void>(() => sink(item)))(feed)()
  if (E.isLeft(done)) throw new CommandError(done.left)
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

/** What comes of itself with the next run is `later`: as new as the lookback behind the cursor, or moving just now. */
const comparisonSql = (startDate: number, settled: number): string => `
  CREATE OR REPLACE TEMP VIEW _compared AS
  SELECT coalesce(s.id, r.id) AS id, r.time AS ours, s.time AS theirs, CASE
      WHEN r.time = s.time THEN 'same'
      WHEN coalesce(s.id, r.id) IN (SELECT id FROM _moving) THEN 'later'
      WHEN s.time > make_timestamptz(${Math.trunc(settled)}::BIGINT * 1000) AND coalesce(r.time < s.time, true) THEN 'later'
      WHEN r.id IS NULL THEN 'missing' WHEN s.id IS NULL THEN 'extra' ELSE 'stale' END AS verdict
  FROM (SELECT id, max(time) AS time FROM _service GROUP BY id) AS s
  FULL JOIN (
    SELECT id, date_trunc('millisecond', max("modifiedTime")) AS time FROM ${reviewsTableName}
    WHERE "modifiedTime" >= make_timestamptz(${Math.trunc(startDate)}::BIGINT * 1000) GROUP BY id) AS r ON r.id = s.id`

const verdictSql = (verdict: string): string => `
      SELECT 'id ' || id || concat(', ours of ' || ours, ', theirs of ' || theirs) AS what FROM _compared WHERE verdict = '${verdict}'`

const repairHint = 'Repair it: feedback verify --config FILE --repair FOLDER.'

/** What is asked of `_compared`. */
export const serviceChecks: ReadonlyArray<Check> = [
  {
    name: "the service's reviews are here",
    explain: `Every review the service has is here, as far as the state has come. ${repairHint}`,
    sql: verdictSql('missing'),
  },
  {
    name: "in the service's version",
    explain: `Each review is of the time the service gives it. ${repairHint}`,
    sql: verdictSql('stale'),
  },
  {
    name: 'and no others',
    explain: `Every review here is one the service has. ${repairHint}`,
    sql: verdictSql('extra'),
  },
  {
    name: 'not read yet',
    explain: 'What the next run brings: too new for the state, or changing just now.',
    note: true,
    sql: verdictSql('later'),
  },
]

export type Repair = {
  /** Airbyte states from which the next run reads again what is missing or stale; none if nothing is. */
  readonly state: string | undefined
  /** Airbyte lines that delete what the service does not have; none if there is nothing. */
  readonly messages: string | undefined
}

/** What heals the differences that `compareWith` has left in `_compared`. `now`: milliseconds since 1970, of the deletions. */
export const planRepair = async ({ db }: Snapshot, deleted: StreamInfo, now: number): Promise<Repair> => {
  const earliest = await db.scalar(`SELECT epoch_ms(min(theirs)) FROM _compared WHERE verdict IN ('missing', 'stale')`)
  const gone = await db.query(
    `SELECT id::VARCHAR AS id FROM _compared WHERE verdict = 'extra' OR (verdict = 'stale' AND ours > theirs) ORDER BY _compared.id`,
  )
  return {
    state: earliest === null || earliest === undefined ? undefined : await rewindStates({ db }, Number(earliest)),
    messages:
      gone.length === 0
        ? undefined
        : encodeDeletions(
            gone.map(({ id }) => String(id)),
            deleted,
            now,
          ),
  }
}

/** The states of every stream that is read by the reviews' times, set back, without what a run would pass over. */
const rewindStates = async ({ db }: Snapshot, from: number): Promise<string> => {
  const streams = await db.query(`
    SELECT stream, json_merge_patch(state, json_object('modifiedTimeFrom', strftime(make_timestamptz(${Math.trunc(from)}::BIGINT * 1000)::TIMESTAMP, '%Y-%m-%dT%H:%M:%S.%gZ'), 'recent', NULL, 'scan', NULL)) AS state
    FROM _state JOIN _streams USING (stream)
    WHERE stream <> '${deletionsTableName}' AND cursor IN ('modifiedTime', 'reviewModifiedTime') ORDER BY stream`)
  return formatStateFile(streams.map(({ stream, state }) => ({ stream: String(stream), state: String(state) })))
}

const encodeDeletions = (ids: ReadonlyArray<string>, stream: StreamInfo, now: number): string => {
  const modifiedTime = new Date(now).toISOString()
  const said: ReadonlyArray<Message> = [
    { _tag: 'Started', stream },
    {
      _tag: 'Records',
      stream: stream.name,
      at: now,
      rows: ids.map((id) => ({ json: Buffer.from(`{"id":${id},"modifiedTime":"${modifiedTime}"}`) })),
    },
    { _tag: 'Finished', stream: stream.name },
  ]
  return said
    .flatMap(encodeAirbyte(() => now))
    .map(joinText)
    .join('')
}
