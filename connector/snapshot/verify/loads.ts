import { quoteIdentifier, quoteLiteral } from '../store/database'
import { type Check, failureTextSql, type SnapshotStreams, unionSql } from './check'

/** What the books say of the loads, against each other and against the tables. */
export const loadChecks = (streams: SnapshotStreams): ReadonlyArray<Check> => [
  {
    name: 'loads ended',
    explain: "Every stream's last load is complete. Run feedback sync again: it goes on from the state in the file.",
    sql: `
      SELECT stream || ': load ' || load || ' of ' || strftime(started::TIMESTAMP, '%Y-%m-%d %H:%M') || ' is ' || status AS what
      FROM _loads WHERE status = 'running' OR (load IN (SELECT max(load) FROM _loads GROUP BY stream) AND status <> 'complete')`,
  },
  {
    name: "the source's counts",
    explain:
      'As many records came as the source says it sent. Some were lost on the way: read the stream again in full.',
    sql: `
      SELECT stream || ': load ' || load || ' has ' || records || ' records, the source counts ' || source_records AS what
      FROM _loads WHERE status = 'complete' AND source_records <> records`,
  },
  {
    name: 'row counts',
    explain: 'Each table has the rows it had after the last load; otherwise rows were added or removed by hand.',
    sql: unionSql(
      streams
        .filter(({ columns }) => columns.length > 0)
        .map(
          ({ name }) => `
      SELECT ${failureTextSql(name, `n || ' rows, ' || rows || ' after the last load'`)}
      FROM (SELECT (SELECT count(*) FROM ${quoteIdentifier(name)}) AS n, rows FROM _streams WHERE stream = ${quoteLiteral(name)}) WHERE n <> rows`,
        ),
    ),
  },
]

const savedCursorSql = (stream: string) =>
  `(SELECT TRY_CAST(state->>'$.modifiedTimeFrom' AS TIMESTAMPTZ) FROM _state WHERE stream = ${quoteLiteral(stream)})`
const isCompleteSql = (stream: string) =>
  `(SELECT arg_max(status, load) = 'complete' FROM _loads WHERE stream = ${quoteLiteral(stream)})`

/** How long before it was read a change may be later than the state of its run: the margin of the clock (scan.md, S). */
const clockMargin = '5 minutes 5 seconds'

/** What a saved state promises: all rows up to its time are here, and the next run starts there. */
export const stateChecks = (streams: SnapshotStreams): ReadonlyArray<Check> => {
  const timed = streams.flatMap(({ name, cursor, columns }) =>
    cursor !== undefined && columns.some((column) => column.name === cursor && column.type === 'TIMESTAMPTZ')
      ? [{ name, cursor }]
      : [],
  )
  return [
    {
      name: 'states are there',
      explain:
        'Every stream read incrementally, by its cursor, has a state; without one the next run reads it from the start.',
      sql: `
      SELECT stream || ': no state' AS what FROM _loads JOIN _streams USING (stream)
      WHERE cursor IS NOT NULL AND status = 'complete' AND sync_mode = 'incremental' AND stream NOT IN (SELECT stream FROM _state) GROUP BY stream`,
    },
    {
      name: 'states are not ahead',
      explain:
        'No state is later than the newest record that came: the next run would pass over what lies between. Import an earlier state.',
      sql: unionSql(
        timed
          .filter(({ cursor }) => cursor === 'modifiedTime')
          .map(
            ({ name }) => `
      SELECT ${quoteLiteral(`${name}: state at `)} || state || ', newest record at ' || newest AS what
      FROM (SELECT ${savedCursorSql(name)} AS state, (SELECT max(cursor_to::TIMESTAMPTZ) FROM _loads WHERE stream = ${quoteLiteral(name)}) AS newest)
      WHERE state > newest`,
          ),
      ),
    },
    {
      name: 'states are not behind',
      explain:
        "No row of a complete stream is later than the stream's state, but for changes made as it was read: rows and state were not saved together.",
      sql: unionSql(
        timed.map(
          ({ name, cursor }) => `
      SELECT ${quoteLiteral(`${name}: state at `)} || state || ', newest row at ' || newest AS what
      FROM (SELECT ${savedCursorSql(name)} AS state, (
        SELECT max(${quoteIdentifier(cursor)}) FROM ${quoteIdentifier(name)}
        WHERE ${quoteIdentifier(cursor)} < _airbyte_extracted_at - INTERVAL '${clockMargin}') AS newest)
      WHERE state < date_trunc('millisecond', newest) AND ${isCompleteSql(name)}`,
        ),
      ),
    },
  ]
}
