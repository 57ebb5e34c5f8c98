import { quoteIdentifier, quoteLiteral } from '../store/database'
import { type Check, findingSql, type SnapshotStreams, unionSql } from './check'

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
      SELECT ${findingSql(name, `n || ' rows, ' || rows || ' after the last load'`)}
      FROM (SELECT (SELECT count(*) FROM ${quoteIdentifier(name)}) AS n, rows FROM _streams WHERE stream = ${quoteLiteral(name)}) WHERE n <> rows`,
        ),
    ),
  },
]
