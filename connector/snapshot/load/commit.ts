import * as E from 'fp-ts/Either'
import { CommandError, parseJson, systemFailure } from '../../cdk'
import { type Database, quoteIdentifier } from '../store/database'
import { type CursorRange, cursorSql, saveStreamState, updateLoad, updateRowCounts } from '../store/metadata'
import {
  deletionsStream,
  findReviewReference,
  findTombstoneColumn,
  type ReviewReference,
  reviewsStream,
  type Table,
} from '../store/tables'
import { evolveTable, findUndeclaredColumns } from './evolve'
import { insertRows } from './insert'
import {
  applyDeletionsSql,
  keepNewestSql,
  newDeletionsSql,
  newestVersionsSql,
  refreshDeletionsSql,
  removeOldGenerationsSql,
  removeOldVersionsSql,
  tombstoneDeletionsSql,
} from './merge'
import type { Load } from './stream-load'

/**
 * As rows come in DuckDB gets little memory, since it would fill what it has with pages of the file. What it cannot do
 * without grows with the tables: measured, 64 MB for each million rows do.
 */
export const limitLoadMemory = async (db: Database): Promise<void> => {
  await db.run('DROP TABLE IF EXISTS temp._lost; DROP TABLE IF EXISTS temp._gone; DROP TABLE IF EXISTS temp._version')
  const rows = Number(await db.scalar('SELECT coalesce(sum(rows), 0) FROM _streams'))
  await db.run(`SET memory_limit = '${56 + Math.ceil(rows / 15_625)}MB'`)
}

/** Joining a batch with large tables wants more, for a moment. */
export const raiseMergeMemory = (db: Database): Promise<void> => db.run(`SET memory_limit = '2GB'`)

type LoadBatch = { readonly load: Load; readonly after: number }

/** Hands a load's rows to DuckDB, within the transaction. */
export const insertBatch = async (db: Database, load: Load): Promise<void> => {
  if (load.batch.count() === 0) return
  load.after ??= Number(await db.scalar(`SELECT coalesce(max(rowid), -1) FROM ${quoteIdentifier(load.stream)}`))
  const taken = load.batch.take()
  const { records } = load
  try {
    const more = await findUndeclaredColumns(db, load.table, taken.lines)
    if (more.length > 0) load.table = await evolveTable(db, load.table, more)
    await insertRows(db, load.table, load.target.generation, taken)
  } catch (error) {
    throw findInvalidRecord({ stream: load.stream, records }, taken.lines.toString()) ?? error
  }
}

/** Which record it is that is not JSON, counted from the start of the load; undefined if that is not what went wrong. */
const findInvalidRecord = (
  { stream, records }: Pick<Load, 'stream' | 'records'>,
  lines: string,
): CommandError | undefined => {
  const all = lines.split('\n')
  for (const [i, line] of all.entries()) {
    const parsed = parseJson(line)
    if (E.isLeft(parsed))
      return new CommandError(
        systemFailure(`Record ${records - all.length + i + 1} of the stream ${stream} ${parsed.left}.`),
      )
  }
  return undefined
}

/** What follows from the rows the transaction has brought, and the states that cover them; the last thing before it is committed. */
export const commitLoads = async (
  db: Database,
  loads: ReadonlyArray<Load>,
  tables: ReadonlyArray<Table>,
  now: number,
): Promise<void> => {
  const about = tables.map(findReviewReference).filter((each) => each !== undefined)
  const written = loads.flatMap((load) => (load.after === undefined ? [] : [{ load, after: load.after }]))
  const spans = new Map<string, CursorRange>()
  for (const { load, after } of written) spans.set(load.stream, await readCursorRange(db, load, after))
  for (const each of written) await mergeLoad(db, each, about)
  await removeOldChildren(db, written, about)
  for (const load of loads) {
    if (load.activated) await activateGeneration(db, load, about, now)
    if (load.status === 'complete' && load.target.minimumGeneration > 0) await finishRefresh(db, load, about, now)
    if (load.state !== undefined) await saveStreamState(db, load.stream, load.state, now)
    await updateLoad(db, load, spans.get(load.stream) ?? emptyRange, now)
  }
  await updateRowCounts(db, [
    ...new Set([...loads.map(({ stream }) => stream), ...about.map(({ table }) => table.name)]),
  ])
}

const emptyRange: CursorRange = { from: undefined, to: undefined, type: 'VARCHAR' }

const readCursorRange = async (db: Database, { cursor, stream }: Load, after: number): Promise<CursorRange> => {
  if (cursor === undefined) return emptyRange
  const [least, greatest] = ['min', 'max'].map((of) => cursorSql(cursor, `${of}(${quoteIdentifier(cursor.name)})`))
  const [row] = await db.query(
    `SELECT ${least} AS least, ${greatest} AS greatest FROM ${quoteIdentifier(stream)} WHERE rowid > ${after}`,
  )
  return { from: row?.least?.toString(), to: row?.greatest?.toString(), type: cursor.type }
}

/** Deletions go first through what they delete, and only then into one row for each key: an event we hold already is told by its row. */
const mergeLoad = async (
  db: Database,
  { load, after }: LoadBatch,
  about: ReadonlyArray<ReviewReference>,
): Promise<void> => {
  const { table, target } = load
  const self = findReviewReference(table)
  if (table.name === deletionsStream && self !== undefined) {
    await db.run(newDeletionsSql(self, after))
    for (const each of about) if (each.table.name !== deletionsStream) await db.run(applyDeletionsSql(each))
  }
  if (target.key.length === 0) return
  await db.run(keepNewestSql(table, after, target.key, target.cursor))
  const tombstone = findTombstoneColumn(table)
  if (table.name !== reviewsStream || self === undefined || tombstone === undefined) return
  await db.run(tombstoneDeletionsSql(self, tombstone, after))
  for (const each of about) if (each.table.name !== deletionsStream) await db.run(applyDeletionsSql(each))
}

const removeOldChildren = async (
  db: Database,
  written: ReadonlyArray<LoadBatch>,
  about: ReadonlyArray<ReviewReference>,
): Promise<void> => {
  const children = about.filter(({ table }) => table.name !== reviewsStream && table.name !== deletionsStream)
  const batches = written.flatMap(({ load, after }) => {
    const self = findReviewReference(load.table)
    return self === undefined || load.stream === deletionsStream ? [] : [{ ...self, after }]
  })
  if (children.length === 0 || batches.length === 0) return
  const parents = about.filter(({ table }) => table.name === reviewsStream)
  await db.run(newestVersionsSql([...parents, ...children], batches))
  for (const child of children) await db.run(removeOldVersionsSql(child))
}

const activateGeneration = async (
  db: Database,
  load: Load,
  about: ReadonlyArray<ReviewReference>,
  now: number,
): Promise<void> => {
  const { generation } = load.target
  await finishRefresh(db, { ...load, target: { ...load.target, minimumGeneration: generation } }, about, now)
  await db.run('UPDATE _streams SET generation = $generation::BIGINT WHERE stream = $stream', {
    generation,
    stream: load.stream,
  })
}

const finishRefresh = async (
  db: Database,
  { table, target }: Load,
  about: ReadonlyArray<ReviewReference>,
  now: number,
): Promise<void> => {
  const self = findReviewReference(table)
  if (table.name === reviewsStream && self !== undefined) {
    await db.run(refreshDeletionsSql(self, target.minimumGeneration))
    for (const each of about)
      if (each.table.name !== reviewsStream && each.table.name !== deletionsStream)
        await db.run(applyDeletionsSql(each))
  }
  await db.run(removeOldGenerationsSql(table, target.minimumGeneration, now))
  await db.run('UPDATE _streams SET refreshing = false WHERE stream = $stream', { stream: table.name })
}
