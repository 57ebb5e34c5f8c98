import { type Database, quoteIdentifier, quoteLiteral } from '../store/database'
import { settledName } from '../store/metadata'
import { reviewsTableName } from '../store/tables'
import { type Check, failureTextSql } from './check'
import {
  type CheckedFile,
  findCursorObstacle,
  hasTypedColumn,
  type SnapshotStream,
  type StateProblem,
} from './checked-file'

/** Empty states, with which the next run would start as if there were none. */
const emptyStates = `('{}', '[]', 'null', '""')`

/** The state belongs to a stream whose cursor is a review's time; `_state` and `_streams` joined. */
const hasReviewCursorSql = `cursor IN ('modifiedTime', 'reviewModifiedTime')`

/** The start_date from which a state was read; null if it remembers none. */
const startDateSql = `TRY_CAST(state->>'$.startDate' AS TIMESTAMPTZ)`

const savedTimeSql = `TRY_CAST(state->>'$.modifiedTimeFrom' AS TIMESTAMPTZ)`

/** The cursor of a stream's saved state; null if it has none that can be read. */
export const savedCursorSql = (stream: string): string =>
  `(SELECT ${savedTimeSql} FROM _state WHERE stream = ${quoteLiteral(stream)})`

/**
 * How much earlier than the time at which its last rows were read a saved state may be: a scan's cutoff allows for
 * differences between clocks.
 */
const clockTolerance = '5 minutes 5 seconds'

/** The checks of the saved states: all rows up to a state's time are here, and the next run starts from it. */
export const stateChecks: ReadonlyArray<Check> = [
  {
    name: 'states exist',
    explain:
      'Every stream that is read incrementally by its cursor has a ' +
      'state. Without one, the next run reads it from the beginning.',
    queries: () => [
      `
      SELECT stream || CASE WHEN stream IN (SELECT stream FROM _state) THEN ': its state is empty' ELSE ': no state' END
        AS what
      FROM _loads JOIN _streams USING (stream)
      WHERE cursor IS NOT NULL AND status = 'complete' AND sync_mode = 'incremental'
        AND stream NOT IN (
          SELECT stream FROM _state WHERE state IS NOT NULL AND state::VARCHAR NOT IN ${emptyStates})
      GROUP BY stream`,
    ],
    subjects: () => [
      `(
        FROM _loads JOIN _streams USING (stream)
        WHERE cursor IS NOT NULL AND status = 'complete' AND sync_mode = 'incremental')`,
    ],
  },
  {
    name: 'states can be read',
    explain:
      'The next run can go on from every state. If one cannot be read, its stream ' +
      'fails: import an earlier state, or read the stream again with --full-refresh.',
    queries: ({ stateProblems }) => [
      `
      SELECT stream || ': ' || CASE
          WHEN json_type(state) <> 'OBJECT' THEN 'its state is no object' ELSE 'modifiedTimeFrom is no time' END AS what
      FROM _state LEFT JOIN _streams USING (stream)
      WHERE state::VARCHAR NOT IN ${emptyStates} AND (json_type(state) <> 'OBJECT' OR (
        ${hasReviewCursorSql} AND json_exists(state, '$.modifiedTimeFrom') AND ${savedTimeSql} IS NULL))`,
      ...stateProblems.map(
        ({ stream, problem }) => `
      SELECT ${failureTextSql(stream, quoteLiteral(problem))}`,
      ),
    ],
    subjects: () => ['_state'],
  },
  {
    name: 'one start date',
    explain:
      'Streams that were read from a later start_date than others: what lies between ' +
      'is missing in them. feedback sync with the earlier start_date reads it.',
    note: true,
    queries: () => [
      `
      SELECT stream || ': read since ' || (state->>'$.startDate') AS what FROM _state
      WHERE ${startDateSql} > (SELECT min(${startDateSql}) FROM _state)`,
    ],
    subjects: () => [`(FROM _state WHERE ${startDateSql} IS NOT NULL)`],
  },
  {
    name: 'states are not ahead',
    explain:
      'No state is later than the newest record received, nor than the time at which it was ' +
      'saved. If one is, the next run skips the changes in between: import an earlier state.',
    queries: (file) => listTimedStreams(file).flatMap(statesAheadSql),
    subjects: () => [`(FROM _state JOIN _streams USING (stream) WHERE ${hasReviewCursorSql})`],
    obstacle: findCursorObstacle,
  },
  {
    name: 'states are not behind',
    explain:
      "No row of a complete stream is later than the stream's state, except for changes " +
      'made while it was read. If one is, rows and state were not saved together.',
    queries: (file) => listTimedStreams(file).map(stateBehindSql),
    subjects: () => [`(FROM _state WHERE state->>'$.modifiedTimeFrom' IS NOT NULL)`],
    obstacle: findCursorObstacle,
  },
]

type TimedStream = Pick<SnapshotStream, 'name'> & { readonly cursor: string }

/** The streams whose cursor is a time. */
const listTimedStreams = ({ streams }: CheckedFile): ReadonlyArray<TimedStream> =>
  streams.flatMap((stream) =>
    stream.cursor !== undefined && hasTypedColumn(stream, stream.cursor, 'TIMESTAMPTZ')
      ? [{ name: stream.name, cursor: stream.cursor }]
      : [],
  )

/**
 * The state of a stream made from reviews may be later than its newest row, since not every review has such rows. It is
 * as late as the newest review of the same run. If reviews were not read then or later, only the time at which it was
 * saved limits it.
 */
const statesAheadSql = ({ name, cursor }: TimedStream): ReadonlyArray<string> => {
  const ahead = (newest: string, text: string, condition = 'true') => `
      SELECT ${quoteLiteral(`${name}: state at `)} || state || ${quoteLiteral(`, ${text} `)} || newest AS what
      FROM (SELECT ${savedCursorSql(name)} AS state, ${newest} AS newest)
      WHERE state > newest AND ${condition}`
  const newestSql = (streams: string) => `(SELECT max(cursor_to::TIMESTAMPTZ) FROM _loads WHERE stream IN (${streams}))`
  if (cursor === 'modifiedTime') return [ahead(newestSql(quoteLiteral(name)), 'newest record at')]
  if (cursor !== 'reviewModifiedTime') return []
  const lastRunSql = (stream: string) =>
    `(SELECT max(run) FROM _loads WHERE status = 'complete' AND stream = ${quoteLiteral(stream)})`
  const readWithReviews = `${lastRunSql(reviewsTableName)} >= ${lastRunSql(name)}`
  return [
    ahead(newestSql(`${quoteLiteral(name)}, '${reviewsTableName}'`), 'newest review at', readWithReviews),
    ahead(
      `(SELECT saved_at + INTERVAL '${clockTolerance}' FROM _state WHERE stream = ${quoteLiteral(name)})`,
      'saved before',
      `${readWithReviews} IS NOT TRUE`,
    ),
  ]
}

/**
 * The state of a shared backfill is as old as that of its oldest share. The next run saves one that covers every row.
 */
const stateBehindSql = ({ name, cursor }: TimedStream): string => `
      SELECT ${quoteLiteral(`${name}: state at `)} || state || ', newest row at ' || newest AS what
      FROM (SELECT ${savedCursorSql(name)} AS state, (
        SELECT max(${quoteIdentifier(cursor)}) FROM ${quoteIdentifier(name)}
        WHERE ${quoteIdentifier(cursor)} < _airbyte_extracted_at - INTERVAL '${clockTolerance}') AS newest)
      WHERE state < date_trunc('millisecond', newest)
        AND (SELECT arg_max(status, load) = 'complete' FROM _loads WHERE stream = ${quoteLiteral(name)})
        AND (SELECT epoch_ms(saved_at) FROM _state WHERE stream = ${quoteLiteral(name)})
          > coalesce((SELECT max(value::BIGINT) FROM _meta WHERE name = '${settledName}'), 0)`

/** Why the next run cannot continue from a state of our own streams. Undefined if it can, and for any other stream. */
export type FindStateProblem = (stream: string, state: unknown) => string | undefined

/** Every saved state from which its stream could not continue. */
export const listStateProblems = async (
  db: Database,
  findStateProblem: FindStateProblem,
): Promise<ReadonlyArray<StateProblem>> =>
  (await db.query(`SELECT stream, state FROM _state WHERE state::VARCHAR NOT IN ${emptyStates}`)).flatMap((row) => {
    const [stream, state] = [String(row.stream), JSON.parse(String(row.state))]
    const problem = findStateProblem(stream, state)
    return problem === undefined ? [] : [{ stream, problem }]
  })
