import * as E from 'fp-ts/Either'
import { Stopped } from '../cdk/cli'
import { systemFailure } from '../cdk/failure'
import { parseJson } from '../cdk/json'
import { continueLoad, countRows, cursorText, type Span, writeState } from './books'
import { type Database, quoted } from './database'
import { evolve, undeclared } from './evolve'
import { insertRows } from './insert'
import type { Load } from './load'
import {
  buriedReviews,
  bury,
  keepNewest,
  newDeletions,
  newestVersions,
  notRefreshed,
  removeOlder,
  removeOutdated,
} from './merge'
import { deletions, parent, tombstoneColumn, type Versioned, versioned } from './relations'
import type { Table } from './table'

type Written = { readonly load: Load; readonly after: number }

/** Hands a load's rows to DuckDB, within the transaction. */
export const insertPending = async (db: Database, load: Load): Promise<void> => {
  if (load.pending.count() === 0) return
  load.after ??= Number(await db.scalar(`SELECT coalesce(max(rowid), -1) FROM ${quoted(load.stream)}`))
  const taken = load.pending.take()
  const { records } = load
  try {
    const more = await undeclared(db, load.table, taken.lines)
    if (more.length > 0) load.table = await evolve(db, load.table, more)
    await insertRows(db, load.table, load.destination.generation, taken)
  } catch (error) {
    throw brokenRecord({ stream: load.stream, records }, taken.lines.toString()) ?? error
  }
}

/** Which record it is that is not JSON, counted from the start of the load; undefined if that is not what went wrong. */
const brokenRecord = ({ stream, records }: Pick<Load, 'stream' | 'records'>, lines: string): Stopped | undefined => {
  const all = lines.split('\n')
  for (const [i, line] of all.entries()) {
    const parsed = parseJson(line)
    if (E.isLeft(parsed))
      return new Stopped(
        systemFailure(`Record ${records - all.length + i + 1} of the stream ${stream} ${parsed.left}.`),
      )
  }
  return undefined
}

/** What follows from the rows the transaction has brought, and the states that cover them; the last thing before it is committed. */
export const settle = async (
  db: Database,
  loads: ReadonlyArray<Load>,
  tables: ReadonlyArray<Table>,
  now: number,
): Promise<void> => {
  const about = tables.map(versioned).filter((each) => each !== undefined)
  const written = loads.flatMap((load) => (load.after === undefined ? [] : [{ load, after: load.after }]))
  const spans = new Map<string, Span>()
  for (const { load, after } of written) spans.set(load.stream, await spanOf(db, load, after))
  for (const each of written) await merge(db, each, about)
  await keepOneVersion(db, written, about)
  for (const load of loads) {
    if (load.activated) await activate(db, load, about, now)
    if (load.status === 'complete' && load.destination.minimum > 0) await endRefresh(db, load, about, now)
    if (load.state !== undefined) await writeState(db, load.stream, load.state, now)
    await continueLoad(db, load, spans.get(load.stream) ?? nothing, now)
  }
  await countRows(db, [...new Set([...loads.map(({ stream }) => stream), ...about.map(({ table }) => table.name)])])
}

const nothing: Span = { from: undefined, to: undefined, type: 'VARCHAR' }

const spanOf = async (db: Database, { cursor, stream }: Load, after: number): Promise<Span> => {
  if (cursor === undefined) return nothing
  const [least, greatest] = ['min', 'max'].map((of) => cursorText(cursor, `${of}(${quoted(cursor.name)})`))
  const [row] = await db.query(
    `SELECT ${least} AS least, ${greatest} AS greatest FROM ${quoted(stream)} WHERE rowid > ${after}`,
  )
  return { from: row?.least?.toString(), to: row?.greatest?.toString(), type: cursor.type }
}

/** Deletions go first through what they delete, and only then into one row for each key: an event we hold already is told by its row. */
const merge = async (db: Database, { load, after }: Written, about: ReadonlyArray<Versioned>): Promise<void> => {
  const { table, destination } = load
  const self = versioned(table)
  if (table.name === deletions && self !== undefined) {
    await db.run(newDeletions(self, after))
    for (const each of about) if (each.table.name !== deletions) await db.run(bury(each))
  }
  if (destination.key.length === 0) return
  await db.run(keepNewest(table, after, destination.key, destination.cursor))
  const tombstone = tombstoneColumn(table)
  if (table.name !== parent || self === undefined || tombstone === undefined) return
  await db.run(buriedReviews(self, tombstone, after))
  for (const each of about) if (each.table.name !== deletions) await db.run(bury(each))
}

const keepOneVersion = async (
  db: Database,
  written: ReadonlyArray<Written>,
  about: ReadonlyArray<Versioned>,
): Promise<void> => {
  const children = about.filter(({ table }) => table.name !== parent && table.name !== deletions)
  const batches = written.flatMap(({ load, after }) => {
    const self = versioned(load.table)
    return self === undefined || load.stream === deletions ? [] : [{ ...self, after }]
  })
  if (children.length === 0 || batches.length === 0) return
  const parents = about.filter(({ table }) => table.name === parent)
  await db.run(newestVersions([...parents, ...children], batches))
  for (const child of children) await db.run(removeOutdated(child))
}

const activate = async (db: Database, load: Load, about: ReadonlyArray<Versioned>, now: number): Promise<void> => {
  const { generation } = load.destination
  await endRefresh(db, { ...load, destination: { ...load.destination, minimum: generation } }, about, now)
  await db.run('UPDATE _streams SET generation = $generation::BIGINT WHERE stream = $stream', {
    generation,
    stream: load.stream,
  })
}

const endRefresh = async (
  db: Database,
  { table, destination }: Load,
  about: ReadonlyArray<Versioned>,
  now: number,
): Promise<void> => {
  const self = versioned(table)
  if (table.name === parent && self !== undefined) {
    await db.run(notRefreshed(self, destination.minimum))
    for (const each of about) if (each.table.name !== parent && each.table.name !== deletions) await db.run(bury(each))
  }
  await db.run(removeOlder(table, destination.minimum, now))
  await db.run('UPDATE _streams SET refreshing = false WHERE stream = $stream', { stream: table.name })
}
