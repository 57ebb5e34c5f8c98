import { readSnapshotStreams, type SnapshotStream } from '../checks/context'
import { columnsFromSchema } from '../column'
import { type Database, quoteIdentifier, quoteLiteral } from '../database'
import type { Snapshot } from '../snapshot'
import { type CheckResult, verifySnapshot } from '../verify'
import { cellToNumber, cellToTextOrNull, cellToTimeOrNull } from './cells'

export type DataHealth = {
  readonly streams: ReadonlyArray<StreamHealth>
  /** The last runs, newest first. */
  readonly runs: ReadonlyArray<RunStatistics>
  readonly checks: ReadonlyArray<CheckResult>
  readonly undeclared: ReadonlyArray<UndeclaredAttribute>
}
export type StreamHealth = {
  readonly stream: string
  readonly rows: number
  /** The greatest cursor that came, as _loads shows it. */
  readonly newest: string | null
  readonly completed: string | null
  readonly status: string | null
}
export type RunStatistics = {
  readonly run: number
  readonly started: string | null
  readonly seconds: number | null
  readonly records: number
  readonly streams: number
  /** The names of those that are not complete. */
  readonly incomplete: ReadonlyArray<string>
}
/** An attribute that no schema declares; the times say when its rows were read. */
export type UndeclaredAttribute = {
  readonly stream: string
  readonly attribute: string
  readonly rows: number
  readonly first: string | null
  readonly last: string | null
}

const maxRuns = 12

export const readDataHealth = async (snapshot: Snapshot): Promise<DataHealth> => {
  const { db } = snapshot
  const context = await readSnapshotStreams(db)
  const undeclared: Array<UndeclaredAttribute> = []
  for (const stream of context) undeclared.push(...(await readUndeclaredAttributes(db, stream)))
  return {
    streams: await readStreamHealth(db, context),
    runs: await readRuns(db),
    checks: await verifySnapshot(snapshot),
    undeclared,
  }
}

const readStreamHealth = async (
  db: Database,
  context: ReadonlyArray<SnapshotStream>,
): Promise<ReadonlyArray<StreamHealth>> => {
  const loads = await db.query(`
    SELECT stream, max(cursor_to) AS newest, max(ended) FILTER (status = 'complete') AS completed, arg_max(status, load) AS status
    FROM _loads GROUP BY stream`)
  const streams: Array<StreamHealth> = []
  for (const { name, columns } of context) {
    const load = loads.find(({ stream }) => stream === name)
    streams.push({
      stream: name,
      rows: columns.length === 0 ? 0 : cellToNumber(await db.scalar(`SELECT count(*) FROM ${quoteIdentifier(name)}`)),
      newest: cellToTextOrNull(load?.newest),
      completed: cellToTimeOrNull(load?.completed),
      status: cellToTextOrNull(load?.status),
    })
  }
  return streams
}

const readRuns = async (db: Database): Promise<ReadonlyArray<RunStatistics>> =>
  (
    await db.query(`
      SELECT run, min(started) AS started, epoch(max(ended)) - epoch(min(started)) AS seconds, sum(records)::BIGINT AS records,
        count(DISTINCT stream) AS streams, coalesce(list(stream ORDER BY stream) FILTER (status <> 'complete'), []) AS incomplete
      FROM _loads GROUP BY run ORDER BY run DESC LIMIT ${maxRuns}`)
  ).map(({ run, started, seconds, records, streams, incomplete }) => ({
    run: cellToNumber(run),
    started: cellToTimeOrNull(started),
    seconds: typeof seconds === 'number' ? seconds : null,
    records: cellToNumber(records),
    streams: cellToNumber(streams),
    incomplete: Array.isArray(incomplete) ? incomplete.map(String) : [],
  }))

const readUndeclaredAttributes = async (
  db: Database,
  { name, schema, columns }: SnapshotStream,
): Promise<ReadonlyArray<UndeclaredAttribute>> => {
  const declared = new Set(columnsFromSchema(schema).map((column) => column.name))
  const times = 'min(_airbyte_extracted_at) AS first, max(_airbyte_extracted_at) AS last'
  const parts = columns
    .filter((column) => !declared.has(column.name))
    .map(
      (column) =>
        `SELECT ${quoteLiteral(column.name)} AS attribute, count(${quoteIdentifier(column.name)}) AS rows, ${times} FROM ${quoteIdentifier(name)} WHERE ${quoteIdentifier(column.name)} IS NOT NULL`,
    )
  if (columns.some((column) => column.name === 'unknown_attributes' && column.type === 'JSON'))
    parts.push(
      `SELECT attribute, count(*) AS rows, ${times} FROM (SELECT unnest(json_keys(unknown_attributes)) AS attribute, _airbyte_extracted_at FROM ${quoteIdentifier(name)}) GROUP BY attribute`,
    )
  if (parts.length === 0) return []
  return (await db.query(`${parts.join(' UNION ALL ')} ORDER BY attribute`)).map((row) => ({
    stream: name,
    attribute: String(row.attribute),
    rows: cellToNumber(row.rows),
    first: cellToTimeOrNull(row.first),
    last: cellToTimeOrNull(row.last),
  }))
}
