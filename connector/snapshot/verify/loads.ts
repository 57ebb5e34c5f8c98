import { quoteIdentifier, quoteLiteral } from '../store/database'
import { loadColumnName } from '../store/tables'
import { type Check, failureTextSql } from './check'
import type { SnapshotStream } from './checked-file'

/** The checks of the loads, against each other and against the tables. */
export const loadChecks: ReadonlyArray<Check> = [
  {
    name: 'loads are complete',
    explain:
      "Every stream's last load is complete. If not, run feedback sync again: it continues from the state in the file.",
    queries: () => [
      `
      SELECT stream || ': load ' || load || ' of ' || strftime(started::TIMESTAMP, '%Y-%m-%d %H:%M') || ' is ' || status
        AS what
      FROM _loads
      WHERE status = 'running'
        OR (load IN (SELECT max(load) FROM _loads GROUP BY stream) AND status <> 'complete')`,
    ],
    subjects: () => ['_loads'],
  },
  {
    name: "the source's counts",
    explain:
      'Each load received as many records as the source says it ' +
      'sent. If not, some were lost: read the stream again in full.',
    queries: () => [
      `
      SELECT stream || ': load ' || load || ' has ' || records || ' records, the source counts ' || source_records
        AS what
      FROM _loads
      WHERE status = 'complete' AND source_records <> records`,
    ],
    subjects: () => [`(FROM _loads WHERE status = 'complete' AND source_records IS NOT NULL)`],
  },
  {
    name: 'row counts',
    explain:
      'Each table has as many rows as after the last load; in a lake, as many ' +
      'as each load has appended. If not, rows were added or removed by hand.',
    queries: ({ streams }) => streams.map(wrongCountSql),
    subjects: () => ['_streams'],
  },
]

const wrongCountSql = (stream: SnapshotStream): string =>
  stream.versions === undefined ? wrongTableCountSql(stream) : wrongLoadCountsSql(stream, stream.versions)

const wrongTableCountSql = ({ name }: SnapshotStream): string => `
      SELECT ${failureTextSql(name, `n || ' rows, ' || rows || ' after the last load'`)}
      FROM (
        SELECT (SELECT count(*) FROM ${quoteIdentifier(name)}) AS n, rows
        FROM _streams WHERE stream = ${quoteLiteral(name)})
      WHERE n <> rows`

const wrongLoadCountsSql = ({ name }: SnapshotStream, versions: string): string => {
  const text = `
        coalesce(n, 0) || ' rows of load ' || coalesce(load::VARCHAR, 'none')
          || ' and generation ' || coalesce(generation::VARCHAR, 'none')
          || ', ' || coalesce(rows, 0) || ' were appended'`
  return `
      SELECT ${failureTextSql(name, text)}
      FROM (
        SELECT ${loadColumnName} AS load, _airbyte_generation_id AS generation, count(*) AS n
        FROM ${quoteIdentifier(versions)} GROUP BY ALL) AS found
      FULL JOIN (
        SELECT load, generation, sum(added)::BIGINT AS rows
        FROM _loads_log
        WHERE load IN (SELECT load FROM _loads WHERE stream = ${quoteLiteral(name)}) GROUP BY ALL) AS appended
        USING (load, generation)
      WHERE coalesce(n, 0) <> coalesce(rows, 0)`
}
