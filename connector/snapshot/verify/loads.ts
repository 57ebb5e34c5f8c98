import { quoteIdentifier, quoteLiteral } from '../store/database'
import { type Check, failureTextSql, type SnapshotStreams, unionSql } from './check'

/** The checks of the loads, against each other and against the tables. */
export const loadChecks = (streams: SnapshotStreams): ReadonlyArray<Check> => [
  {
    name: 'loads are complete',
    explain:
      "Every stream's last load is complete. If not, run feedback sync again: it continues from the state in the file.",
    sql: `
      SELECT stream || ': load ' || load || ' of ' || strftime(started::TIMESTAMP, '%Y-%m-%d %H:%M') || ' is ' || status AS what
      FROM _loads WHERE status = 'running' OR (load IN (SELECT max(load) FROM _loads GROUP BY stream) AND status <> 'complete')`,
  },
  {
    name: "the source's counts",
    explain:
      'Each load received as many records as the source says it sent. If not, some were lost: read the stream again in full.',
    sql: `
      SELECT stream || ': load ' || load || ' has ' || records || ' records, the source counts ' || source_records AS what
      FROM _loads WHERE status = 'complete' AND source_records <> records`,
  },
  {
    name: 'row counts',
    explain: 'Each table has as many rows as after the last load. If not, rows were added or removed by hand.',
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

/** A saved state may lie this long before the time at which its last rows were read: a scan's cutoff allows for differences between clocks. */
const clockTolerance = '5 minutes 5 seconds'

/** The checks of the saved states: all rows up to a state's time are here, and the next run starts from it. */
export const stateChecks = (streams: SnapshotStreams): ReadonlyArray<Check> => {
  const timedStreams = streams.flatMap(({ name, cursor, columns }) =>
    cursor !== undefined && columns.some((column) => column.name === cursor && column.type === 'TIMESTAMPTZ')
      ? [{ name, cursor }]
      : [],
  )
  return [
    {
      name: 'states exist',
      explain:
        'Every stream that is read incrementally by its cursor has a state. Without one, the next run reads it from the beginning.',
      sql: `
      SELECT stream || ': no state' AS what FROM _loads JOIN _streams USING (stream)
      WHERE cursor IS NOT NULL AND status = 'complete' AND sync_mode = 'incremental' AND stream NOT IN (SELECT stream FROM _state) GROUP BY stream`,
    },
    {
      name: 'states are not ahead',
      explain:
        'No state is later than the newest record received. If one is, the next run skips the changes in between: import an earlier state.',
      sql: unionSql(
        timedStreams
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
        "No row of a complete stream is later than the stream's state, except for changes made while it was read. If one is, rows and state were not saved together.",
      sql: unionSql(
        timedStreams.map(
          ({ name, cursor }) => `
      SELECT ${quoteLiteral(`${name}: state at `)} || state || ', newest row at ' || newest AS what
      FROM (SELECT ${savedCursorSql(name)} AS state, (
        SELECT max(${quoteIdentifier(cursor)}) FROM ${quoteIdentifier(name)}
        WHERE ${quoteIdentifier(cursor)} < _airbyte_extracted_at - INTERVAL '${clockTolerance}') AS newest)
      WHERE state < date_trunc('millisecond', newest) AND ${isCompleteSql(name)}`,
        ),
      ),
    },
  ]
}
