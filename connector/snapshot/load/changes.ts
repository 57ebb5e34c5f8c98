import * as E from 'fp-ts/Either'
import { CommandError, parseJson, systemFailure } from '../../cdk'
import type { Database } from '../store/database'
import { addFurtherIds, removeForgottenSql } from '../store/forgotten'
import { updateRowCountsSql } from '../store/metadata'
import { reviewsTableName, type Table } from '../store/tables'
import { mapToColumns } from './evolve'
import { type CursorRange, toCursorRange } from './load-rows'
import { createSpool, type SharedSpool, type Spool } from './spool'
import type { Load } from './stream-load'

/** What one stream has received since the last commit. */
export type Change = {
  readonly load: Load
  readonly spool: Spool
  readonly target: Load['target']
  readonly activatesGeneration: boolean
  readonly status: Load['status']
  readonly records: number
  readonly sourceRecords: number | undefined
  readonly state: string | undefined
}

/** What a commit writes: what each stream has received, and the reviews from which several streams make their rows. */
export type Received = { readonly changes: ReadonlyArray<Change>; readonly shared: ReadonlyArray<SharedSpool> }

/** Takes what a load has received and gives it an empty spool. `path`: the snapshot file. */
export const takeChange = (load: Load, path: string): Change => {
  const { target, activatesGeneration, status, records, sourceRecords, state } = load
  const change = { load, spool: load.spool, target, activatesGeneration, status, records, sourceRecords, state }
  Object.assign(load, { spool: createSpool(path, load.spool.forgotten), state: undefined, hasChanges: false })
  return change
}

/** The loads of the streams for which reviews were received. */
export const loadsOf = ({ streams }: SharedSpool, changes: ReadonlyArray<Change>): ReadonlyArray<Load> =>
  changes.flatMap(({ load }) => (streams.includes(load.stream) ? [load] : []))

/** The tables; those of these streams have the columns that their loads know. */
export const withLoads = (tables: ReadonlyArray<Table>, changes: ReadonlyArray<Change>): ReadonlyArray<Table> =>
  tables.map((table) => changes.find(({ load }) => load.stream === table.name)?.load.table ?? table)

export const countRecords = (spools: ReadonlyArray<Spool>): number =>
  spools.reduce((sum, spool) => sum + spool.count(), 0)

/** The received records of each stream. Reviews shared by several streams count as those of `reviews`. */
const listArrivals = ({
  changes,
  shared,
}: Received): ReadonlyArray<{ readonly stream: string; readonly spool: Spool }> =>
  [
    ...shared.map(({ spool }) => ({ stream: reviewsTableName, spool })),
    ...changes.map(({ load: { stream }, spool }) => ({ stream, spool })),
  ].filter(({ spool }) => spool.count() > 0)

/**
 * Adds the tombstones that follow from records of forgotten persons, such as the id of a review that names their visit,
 * before any of these records is written. Removes rows that came before the record which identifies their person.
 * `remove`: removes them, in a transaction.
 */
export const forgetArrivals = async (
  db: Database,
  received: Received,
  remove: () => Promise<void>,
  now: number,
): Promise<void> => {
  for (const { stream, spool } of listArrivals(received)) {
    const added = await db.withMemory(`looking for what was forgotten among the records of ${stream}`, () =>
      addFurtherIds(db, stream, spool.toSql('forgotten'), now),
    )
    if (added > 0) await db.withMemory('removing what was forgotten', () => db.transaction(remove))
  }
}

/** The same for a file, whose tables are counted. */
export const removeForgotten = (db: Database, tables: ReadonlyArray<Table>): Promise<void> =>
  db.run([...tables.flatMap(removeForgottenSql), ...updateRowCountsSql(tables)].join(';\n'))

/**
 * Explains a failed commit. Records are JSON in all but a few files, so they are searched only after DuckDB has refused
 * them.
 */
export const explainCommitFailure = ({ changes }: Received, error: unknown): unknown => {
  if (error instanceof CommandError) return error
  for (const { load, spool, records } of changes) {
    let number = records - spool.count()
    for (const { json } of spool.records()) {
      number += 1
      const parsed = parseJson(json)
      if (E.isLeft(parsed))
        return new CommandError(systemFailure(`Record ${number} of the stream ${load.stream} ${parsed.left}.`))
    }
  }
  return error
}

/** Describes a commit. */
export const describeCommit = ({ changes, shared }: Received): string => {
  const added = changes.filter(({ spool }) => spool.count() > 0)
  const rows = countRecords([...added, ...shared].map(({ spool }) => spool))
  const names = [...shared.flatMap(({ streams }) => streams), ...added.map(({ load }) => load.stream)]
  const streams = names.length > 0 ? names : changes.map(({ load }) => load.stream)
  const subject = `${streams[0]}${streams.length > 1 ? ` and ${streams.length - 1} more` : ''}`
  if (rows > 0) return `committing ${rows.toLocaleString('en')} records of ${subject}`
  return `committing the end of ${subject}`
}

/** The lowest and highest cursor of a change whose records are in `batch`, typed as in `table`. */
export const findCursorRange = ({ load, target }: Change, table: Table, batch: string): CursorRange | undefined => {
  const name = mapToColumns(table, target).cursor
  return load.cursor === undefined || name === undefined ? undefined : toCursorRange({ ...load.cursor, name }, batch)
}
