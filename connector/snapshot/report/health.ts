import { readContext, type Stream } from '../checks/context'
import { columnsOf } from '../column'
import { type Database, literal, quoted } from '../database'
import type { Snapshot } from '../snapshot'
import { type CheckResult, verify } from '../verify'
import { numberOf, textOrNull, timeOrNull } from './cells'

export type Health = {
  readonly streams: ReadonlyArray<StreamHealth>
  /** The last runs, newest first. */
  readonly runs: ReadonlyArray<Run>
  readonly checks: ReadonlyArray<CheckResult>
  readonly undeclared: ReadonlyArray<Undeclared>
}
export type StreamHealth = {
  readonly stream: string
  readonly rows: number
  /** The greatest cursor that came, as _loads shows it. */
  readonly newest: string | null
  readonly completed: string | null
  readonly status: string | null
}
export type Run = {
  readonly run: number
  readonly started: string | null
  readonly seconds: number | null
  readonly records: number
  readonly streams: number
  /** The names of those that are not complete. */
  readonly incomplete: ReadonlyArray<string>
}
/** An attribute that no schema declares; the times say when its rows were read. */
export type Undeclared = {
  readonly stream: string
  readonly attribute: string
  readonly rows: number
  readonly first: string | null
  readonly last: string | null
}

const shownRuns = 12

export const readHealth = async (snapshot: Snapshot): Promise<Health> => {
  const { db } = snapshot
  const context = await readContext(db)
  const undeclared: Array<Undeclared> = []
  for (const stream of context) undeclared.push(...(await undeclaredIn(db, stream)))
  return {
    streams: await streamsOf(db, context),
    runs: await runsOf(db),
    checks: await verify(snapshot),
    undeclared,
  }
}

const streamsOf = async (db: Database, context: ReadonlyArray<Stream>): Promise<ReadonlyArray<StreamHealth>> => {
  const loads = await db.query(`
    SELECT stream, max(cursor_to) AS newest, max(ended) FILTER (status = 'complete') AS completed, arg_max(status, load) AS status
    FROM _loads GROUP BY stream`)
  const streams: Array<StreamHealth> = []
  for (const { name, columns } of context) {
    const load = loads.find(({ stream }) => stream === name)
    streams.push({
      stream: name,
      rows: columns.length === 0 ? 0 : numberOf(await db.scalar(`SELECT count(*) FROM ${quoted(name)}`)),
      newest: textOrNull(load?.newest),
      completed: timeOrNull(load?.completed),
      status: textOrNull(load?.status),
    })
  }
  return streams
}

const runsOf = async (db: Database): Promise<ReadonlyArray<Run>> =>
  (
    await db.query(`
      SELECT run, min(started) AS started, epoch(max(ended)) - epoch(min(started)) AS seconds, sum(records)::BIGINT AS records,
        count(DISTINCT stream) AS streams, coalesce(list(stream ORDER BY stream) FILTER (status <> 'complete'), []) AS incomplete
      FROM _loads GROUP BY run ORDER BY run DESC LIMIT ${shownRuns}`)
  ).map(({ run, started, seconds, records, streams, incomplete }) => ({
    run: numberOf(run),
    started: timeOrNull(started),
    seconds: typeof seconds === 'number' ? seconds : null,
    records: numberOf(records),
    streams: numberOf(streams),
    incomplete: Array.isArray(incomplete) ? incomplete.map(String) : [],
  }))

const undeclaredIn = async (db: Database, { name, schema, columns }: Stream): Promise<ReadonlyArray<Undeclared>> => {
  const declared = new Set(columnsOf(schema).map((column) => column.name))
  const times = 'min(_airbyte_extracted_at) AS first, max(_airbyte_extracted_at) AS last'
  const parts = columns
    .filter((column) => !declared.has(column.name))
    .map(
      (column) =>
        `SELECT ${literal(column.name)} AS attribute, count(${quoted(column.name)}) AS rows, ${times} FROM ${quoted(name)} WHERE ${quoted(column.name)} IS NOT NULL`,
    )
  if (columns.some((column) => column.name === 'unknown_attributes' && column.type === 'JSON'))
    parts.push(
      `SELECT attribute, count(*) AS rows, ${times} FROM (SELECT unnest(json_keys(unknown_attributes)) AS attribute, _airbyte_extracted_at FROM ${quoted(name)}) GROUP BY attribute`,
    )
  if (parts.length === 0) return []
  return (await db.query(`${parts.join(' UNION ALL ')} ORDER BY attribute`)).map((row) => ({
    stream: name,
    attribute: String(row.attribute),
    rows: numberOf(row.rows),
    first: timeOrNull(row.first),
    last: timeOrNull(row.last),
  }))
}
