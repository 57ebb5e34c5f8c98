import {
  addColumns,
  type Change,
  describeCommit,
  findNewColumns,
  forgetArrivals,
  type Load,
  loadsOf,
  mapToColumns,
  type Received,
  stageShared,
  type TypedRows,
  typeRows,
} from '../snapshot/load'
import {
  cleanStatesSql,
  cursorSql,
  type Database,
  findReviewReference,
  forgottenRowsSql,
  instantSql,
  isChildTable,
  listStreamTables,
  loadColumnName,
  quoteIdentifier,
  quoteLiteral,
  reviewsTableName,
  type Table,
  toPersonRows,
} from '../snapshot/store'
import { replaceViewsSql, versionsOf } from './relations'
import { listLakeStreams, refreshedEntrySql, toVersions } from './streams'

/** What a process has appended so far for one of its loads. */
type LoadProgress = {
  readonly syncMode: string
  /** The lowest and highest cursor; undefined before the first row. */
  readonly range: { readonly least: string; readonly greatest: string } | undefined
}

/** A process that appends. */
export type Appending = {
  readonly db: Database
  readonly run: bigint
  /** The name of its share of a backfill; undefined for a run of everything. */
  readonly share: string | undefined
  readonly forgets: boolean
  readonly nextEntry: () => number
  readonly progress: Map<Load, LoadProgress>
}

/** A change with its rows, typed for its table: its own records, and rows derived from reviews. */
type AppendedRows = {
  readonly change: Change
  readonly rows: TypedRows | undefined
  /** The rows were derived from reviews and are counted as they are created. */
  readonly isMade: boolean
}

const textSql = (text: string | undefined): string => (text === undefined ? 'NULL' : quoteLiteral(text))

/** Commits what was received as one version of the lake. If it rejects, nothing has changed. */
export const appendReceived = async (appending: Appending, received: Received, now: number): Promise<void> => {
  const { db } = appending
  const { changes } = received
  if (appending.forgets) await forgetArrivals(db, received, () => removeForgotten(db), now)
  await addUndeclaredColumns(db, received)
  // Reviews that are typed again after a failure keep their number.
  const numbers = received.shared.map(() => appending.nextEntry())
  await db.withMemory(describeCommit(received), async () => {
    try {
      const shared = await stageAllShared(db, received, numbers)
      const rows: AppendedRows[] = []
      for (const [i, change] of changes.entries()) rows.push(await toAppended(db, change, i, shared.get(change.load)))
      await appendRows(appending, rows, now)
    } finally {
      const names = changes.flatMap(({ load }, i) => [
        stagedName(i),
        ...received.shared.map((_, k) => madeName(load, k)),
      ])
      await db.run(names.map((name) => `DROP TABLE IF EXISTS temp.${name}`).join('; '))
    }
  })
}

const stagedName = (i: number): string => `_rows_${i}`
const madeName = ({ id }: Load, i: number): string => `_made_${id}_${i}`

const toAppended = async (
  db: Database,
  change: Change,
  i: number,
  made: TypedRows | undefined,
): Promise<AppendedRows> => ({
  change,
  rows: made ?? (await stageRows(db, change, i)),
  isMade: made !== undefined && change.load.derivation?._tag !== 'record',
})

/** Stages the rows derived from reviews. A stream has either these or its own records. */
const stageAllShared = async (
  db: Database,
  { changes, shared }: Received,
  numbers: ReadonlyArray<number>,
): Promise<ReadonlyMap<Load, TypedRows>> => {
  const all = new Map<Load, TypedRows>()
  for (const [i, each] of shared.entries()) {
    const staged = await stageShared(db, each, loadsOf(each, changes), {
      commit: numbers[i] ?? 0,
      toName: (load) => madeName(load, i),
    })
    for (const [load, rows] of staged) {
      const before = all.get(load)
      const sql = before === undefined ? rows.sql : `${before.sql} UNION ALL BY NAME ${rows.sql}`
      all.set(load, { ...rows, sql })
    }
  }
  return all
}

/** Types the records of a change into a temporary table, so that they are typed only once however the commit goes. */
const stageRows = async (db: Database, { load, spool, target }: Change, i: number): Promise<TypedRows | undefined> => {
  if (spool.count() === 0) return undefined
  const rows = typeRows(load.table, target.generation, spool.toSql())
  await db.run(`CREATE OR REPLACE TEMP TABLE ${stagedName(i)} AS ${rows.sql}`)
  return { ...rows, sql: `SELECT * FROM temp.${stagedName(i)}` }
}

/**
 * Adds the columns that records bring to the tables of streams. Commits them separately, because another process may be
 * adding the same ones.
 */
const addUndeclaredColumns = async (db: Database, received: Received): Promise<void> => {
  const { changes } = received
  const found = await findNewColumns(db, received)
  if (found.every((columns) => columns.length === 0)) return
  const tables = await db.transaction(async () => {
    const streams = [...(await listLakeStreams(db))]
    for (const [i, { load }] of changes.entries()) {
      const at = streams.findIndex(({ table }) => table.name === load.stream)
      const stream = streams[at]
      const missing = (found[i] ?? []).filter(
        (column) => !stream?.table.columns.some(({ name }) => name === column.name),
      )
      if (stream === undefined || (found[i] ?? []).length === 0) continue
      const { columns } = await addColumns(db, toVersions(stream.table), missing)
      streams[at] = { ...stream, table: { ...stream.table, columns } }
      if (missing.length > 0) await db.run(replaceViewsSql(streams[at], streams))
    }
    return streams.map(({ table }) => table)
  })
  for (const { load } of changes) load.table = tables.find(({ name }) => name === load.stream) ?? load.table
}

/** Appends typed rows, the states that cover them, and the progress of the loads. */
const appendRows = async (appending: Appending, appended: ReadonlyArray<AppendedRows>, now: number): Promise<void> => {
  const { db, progress } = appending
  const measured = await measureRows(appending, appended)
  await db.transaction(async () => {
    const namesReviews = [...progress.keys()].some(({ table }) => isReviews(table))
    await db.run(
      [
        ...appended.flatMap(({ change: { load }, rows }) => (rows === undefined ? [] : [insertSql(load, rows)])),
        ...appended.flatMap(({ change: { load }, rows }) =>
          rows === undefined || namesReviews ? [] : nameReviewsSql(load.table, rows),
        ),
        ...statesSql(appending, appended, now),
        ...endedRefreshes(appending, appended, now),
        loadsSql(appending, appended, measured, now),
      ].join(';\n'),
    )
  })
  for (const [i, { change, isMade }] of appended.entries()) {
    if (isMade) change.load.made += measured[i]?.count ?? 0
    const before = progress.get(change.load)
    if (before !== undefined) progress.set(change.load, { ...before, range: measured[i]?.range })
  }
}

const insertSql = ({ id, stream }: Load, { sql, names }: TypedRows): string => `
  INSERT INTO ${versionsOf(stream)} (${names}, ${quoteIdentifier(loadColumnName)}) SELECT ${names}, ${id} FROM (${sql})`

const isReviews = (table: Table): boolean => findReviewReference(table) !== undefined && table.name === reviewsTableName

/** If a run reads no reviews, the rows that belong to them show which versions exist. */
const nameReviewsSql = (table: Table, { sql }: TypedRows): ReadonlyArray<string> => {
  const reference = findReviewReference(table)
  if (reference === undefined || !isChildTable(table)) return []
  const [id, time] = [reference.id, reference.time].map(quoteIdentifier)
  return [`INSERT INTO _review_times SELECT DISTINCT ${id}, ${time} FROM (${sql}) WHERE ${id} IS NOT NULL`]
}

type Measured = { readonly count: number; readonly range: LoadProgress['range'] }

/** For each change: the number of rows, and the lowest and highest cursor of its load including them. */
const measureRows = async (
  { db, progress }: Appending,
  appended: ReadonlyArray<AppendedRows>,
): Promise<ReadonlyArray<Measured>> => {
  const selects = appended.flatMap(({ change, rows }, i) => {
    if (rows === undefined) return []
    const name = mapToColumns(change.load.table, change.target).cursor
    const cursor = change.load.table.columns.find((column) => column.name === name)
    if (cursor === undefined)
      return [`SELECT ${i} AS i, count(*) AS n, NULL AS least, NULL AS greatest FROM (${rows.sql})`]
    const range = progress.get(change.load)?.range
    const endSql = (aggregate: 'min' | 'max', wider: 'least' | 'greatest') =>
      cursorSql(
        cursor,
        `${wider}(${aggregate}(t.${quoteIdentifier(cursor.name)}), ${textSql(range?.[wider])}::${cursor.type})`,
      )
    const ends = `${endSql('min', 'least')} AS least, ${endSql('max', 'greatest')} AS greatest`
    return [`SELECT ${i} AS i, count(*) AS n, ${ends} FROM (${rows.sql}) AS t`]
  })
  const found = selects.length === 0 ? [] : await db.query(selects.join(' UNION ALL '))
  return appended.map(({ change }, i) => {
    const row = found.find((each) => each.i === i)
    const before = progress.get(change.load)?.range
    if (row === undefined) return { count: 0, range: before }
    const { least, greatest } = row
    return {
      count: Number(row.n),
      range: least === null || greatest === null ? before : { least: String(least), greatest: String(greatest) },
    }
  })
}

/** The states that cover the appended rows. They remember no row of a forgotten person. */
const statesSql = (
  { share, forgets, nextEntry }: Appending,
  appended: ReadonlyArray<AppendedRows>,
  now: number,
): ReadonlyArray<string> => {
  const entry = nextEntry()
  const rows = appended.flatMap(({ change: { load, state } }) => {
    const values = [entry, quoteLiteral(load.stream), textSql(share), `${textSql(state)}::JSON`, instantSql(now)]
    return state === undefined ? [] : [`(${values.join(', ')})`]
  })
  if (rows.length === 0) return []
  const given = `(VALUES ${rows.join(', ')}) AS given (entry, stream, share, state, saved_at)`
  if (!forgets) return [`INSERT INTO _states_log SELECT * FROM ${given}`]
  return [
    `CREATE OR REPLACE TEMP TABLE _saved AS SELECT * FROM ${given}`,
    cleanStatesSql('temp._saved'),
    'INSERT INTO _states_log SELECT * FROM temp._saved',
    'DROP TABLE temp._saved',
  ]
}

/** The streams whose rows of older generations are hidden from this version on. */
const endedRefreshes = (
  { nextEntry }: Appending,
  appended: ReadonlyArray<AppendedRows>,
  now: number,
): ReadonlyArray<string> =>
  appended.flatMap(({ change: { load, target, status, activatesGeneration } }) => {
    if (activatesGeneration)
      return [refreshedEntrySql(nextEntry(), load.stream, target.generation, target.generation, now)]
    return status === 'complete' && target.minimumGeneration > 0
      ? [refreshedEntrySql(nextEntry(), load.stream, target.generation, target.minimumGeneration, now)]
      : []
  })

/** The progress of the loads with this version. */
const loadsSql = (
  { run, share, nextEntry, progress }: Appending,
  appended: ReadonlyArray<AppendedRows>,
  measured: ReadonlyArray<Measured>,
  now: number,
): string => {
  const entry = nextEntry()
  const rows = appended.map(({ change: { load, status, records, sourceRecords, target }, isMade }, i) => {
    const { count = 0, range } = measured[i] ?? {}
    return `(${[
      ...[entry, load.id, run, textSql(share), quoteLiteral(load.stream)],
      ...[quoteLiteral(progress.get(load)?.syncMode ?? 'incremental'), instantSql(load.startedAt)],
      status === 'running' ? 'NULL' : instantSql(now),
      ...[
        records + load.made + (isMade ? count : 0),
        sourceRecords ?? 'NULL',
        count,
        textSql(range?.least),
        textSql(range?.greatest),
      ],
      ...[target.generation, quoteLiteral(status)],
    ].join(', ')})`
  })
  return `INSERT INTO _loads_log VALUES ${rows.join(', ')}`
}

/**
 * SQL that records for each load how many of its rows `t` will be removed from a table of versions. Run it before
 * removing them.
 */
export const countRemovedSql = (versions: string, where: string): string => `
    INSERT INTO _loads_log (entry, load, generation, added)
    SELECT 0, ${loadColumnName}, _airbyte_generation_id, -count(*) FROM ${versions} AS t WHERE ${where} GROUP BY ALL`

/** The only rows that a run ever removes from a lake. */
const removeForgotten = async (db: Database): Promise<void> => {
  for (const table of await listStreamTables(db)) await db.run(removeForgottenSql(table))
}

/** Removes the rows of forgotten persons and records for each load how many are gone. */
const removeForgottenSql = ({ name, columns }: Table): string => {
  const where = forgottenRowsSql(toPersonRows(name, columns))
  if (where === undefined) return 'SELECT 1'
  return `
    ${countRemovedSql(versionsOf(name), where)};
    DELETE FROM ${versionsOf(name)} AS t WHERE ${where}`
}
