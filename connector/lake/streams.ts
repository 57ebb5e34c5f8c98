import type { JsonSchema, StreamInfo } from '../cdk'
import {
  addColumns,
  chooseLoadTarget,
  createLoad,
  type Load,
  type LoadOptions,
  type LoadTarget,
  mapToColumns,
  refuseOtherTypes,
  requireKey,
  requireStream,
} from '../snapshot/load'
import {
  columnsFromSchema,
  type Database,
  instantSql,
  listStreamTables,
  quoteLiteral,
  type Table,
  versionsTableName,
} from '../snapshot/store'
import { everyGeneration } from './metadata'
import { createVersionsSql, type LakeStream, replaceViewsSql } from './relations'

/** A stream as the lake declares it. */
type DeclaredStream = LakeStream & {
  /** As text, as last declared. */
  readonly schema: string
  readonly generation: number
  readonly refreshing: boolean
  readonly hasState: boolean
  readonly shownTo: string
  /** The oldest generation with a complete load; undefined if there is none. */
  readonly completeGeneration: number | undefined
}

const listDeclaredStreams = async (db: Database): Promise<ReadonlyArray<DeclaredStream>> => {
  const tables = await listStreamTables(db)
  const rows = await db.query(`
    SELECT stream, schema, primary_key, cursor, generation, refreshing, shown_to::VARCHAR AS shown_to,
      stream IN (SELECT stream FROM _state) AS has_state,
      complete
    FROM _streams
    LEFT JOIN (
      SELECT stream, min(generation) AS complete FROM _loads WHERE status = 'complete' GROUP BY stream) USING (stream)`)
  return rows.flatMap((row) => {
    const table = tables.find(({ name }) => name === row.stream)
    return table === undefined
      ? []
      : [
          {
            table,
            key: Array.isArray(row.primary_key) ? row.primary_key.map(String) : [],
            cursor: row.cursor === null ? undefined : String(row.cursor),
            schema: String(row.schema),
            generation: Number(row.generation),
            refreshing: row.refreshing === true,
            hasState: row.has_state === true,
            shownTo: String(row.shown_to),
            completeGeneration: row.complete === null ? undefined : Number(row.complete),
          },
        ]
  })
}

/** The streams of a lake, for creating their views or reading their versions. */
export const listLakeStreams = (db: Database): Promise<ReadonlyArray<LakeStream>> => listDeclaredStreams(db)

/** The opener of streams. `nextEntry`: counts the entries that this process appends. */
export type Opening = {
  readonly db: Database
  readonly loadOptions: Readonly<Record<string, LoadOptions>>
  readonly forgets: boolean
  readonly nextEntry: () => number
  readonly nextLoad: () => bigint
  readonly now: number
}

/**
 * Ensures that the streams' versions have a table and views, and appends changes of their declarations. Appends nothing
 * if nothing changed. Call it within a transaction.
 */
export const openLakeStreams = async (
  opening: Opening,
  infos: ReadonlyArray<StreamInfo>,
): Promise<ReadonlyArray<Load>> => {
  const { db, forgets, nextLoad, now } = opening
  const known = await listDeclaredStreams(db)
  const streams = new Map<string, LakeStream>(known.map((stream) => [stream.table.name, stream]))
  const loads: Load[] = []
  for (const info of infos) {
    const previous = known.find(({ table }) => table.name === info.name)
    requireStream(db, info, [...streams.keys()], opening.loadOptions[info.name] ?? {}, previous?.generation ?? 0)
    const target = chooseTarget(opening, info, previous)
    const table = await prepareVersions(opening, info, target, previous)
    await declareStream(opening, info, { table, target, previous }, streams)
    loads.push(createLoad(db, nextLoad(), info, { table, target, forgets }, now))
  }
  return loads
}

const chooseTarget = ({ loadOptions }: Opening, info: StreamInfo, previous: DeclaredStream | undefined): LoadTarget => {
  const options = loadOptions[info.name] ?? {}
  return chooseLoadTarget(info, options, previous && { ...previous, stream: info.name })
}

/** The table of a stream's versions, with a column for each attribute of the schema. */
const prepareVersions = async (
  { db }: Opening,
  info: StreamInfo,
  target: LoadTarget,
  previous: DeclaredStream | undefined,
): Promise<Table> => {
  const columns = columnsFromSchema(info.schema as JsonSchema, previous?.table.columns)
  if (previous !== undefined) refuseOtherTypes(db, info, previous.table, columns)
  const table =
    previous === undefined
      ? { name: info.name, columns, history: true }
      : { ...previous.table, columns: (await addColumns(db, toVersions(previous.table), columns)).columns }
  if (previous === undefined) await db.run(createVersionsSql(table))
  requireKey(db, info, target, table, previous?.key ?? [])
  return table
}

/** The table of a stream's versions. */
export const toVersions = (table: Table): Table => ({
  ...table,
  name: versionsTableName(table.name),
  history: false,
})

type Declaration = {
  readonly table: Table
  readonly target: LoadTarget
  readonly previous: DeclaredStream | undefined
}

/** Appends a changed declaration of a stream, and recreates its views if they differ. */
const declareStream = async (
  { db, nextEntry, now }: Opening,
  { name, schema }: StreamInfo,
  { table, target, previous }: Declaration,
  streams: Map<string, LakeStream>,
): Promise<void> => {
  const { key, cursor } = mapToColumns(table, target)
  const stream = { table, key, cursor }
  streams.set(name, stream)
  const shape = ({ table: { columns }, ...rest }: LakeStream) => JSON.stringify([columns, rest.key, rest.cursor])
  if (previous === undefined || shape(previous) !== shape(stream))
    await db.run(replaceViewsSql(stream, [...streams.values()]))
  const refreshing = target.minimumGeneration > 0
  const hasComplete = (previous?.completeGeneration ?? target.generation) < target.generation
  const declared = {
    schema: JSON.stringify(schema),
    generation: target.generation,
    refreshing,
    shownTo: refreshing && hasComplete ? String(target.generation - 1) : everyGeneration,
  }
  const isSame =
    previous !== undefined &&
    shape(previous) === shape(stream) &&
    (Object.keys(declared) as ReadonlyArray<keyof typeof declared>).every((each) => declared[each] === previous[each])
  if (!isSame) await db.run(streamEntrySql(nextEntry(), name, { ...stream, ...declared, shownFrom: 0 }))
  if (target.resetsState && previous !== undefined)
    await db.run(`
      INSERT INTO _states_log
      SELECT ${nextEntry()}, stream, NULL, NULL, ${instantSql(now)}
      FROM _state WHERE stream = ${quoteLiteral(name)}`)
}

/** An entry of `_streams_log`. `refreshedAt`: when a refresh ended, in milliseconds since 1970. */
const streamEntrySql = (
  entry: number,
  name: string,
  stream: Omit<LakeStream, 'table'> & {
    readonly schema: string
    readonly generation: number
    readonly refreshing: boolean
    readonly shownFrom: number
    readonly shownTo: string
  },
): string => {
  const { key, cursor, schema, generation, refreshing, shownFrom, shownTo } = stream
  const keySql = `[${key.map(quoteLiteral).join(', ')}]::VARCHAR[]`
  return `
    INSERT INTO _streams_log VALUES (${entry}, ${quoteLiteral(name)}, ${quoteLiteral(schema)}, ${keySql},
      ${cursor === undefined ? 'NULL' : quoteLiteral(cursor)}, ${generation}, ${refreshing},
      ${shownFrom}, ${shownTo}, NULL)`
}

/** The entry that ends a refresh: from now on, rows of older generations are hidden. */
export const refreshedEntrySql = (
  entry: number,
  name: string,
  generation: number,
  shownFrom: number,
  now: number,
): string => `
  INSERT INTO _streams_log
  SELECT ${entry}, stream, schema, primary_key, cursor, ${generation}, false, ${shownFrom}, ${everyGeneration},
    ${instantSql(now)}
  FROM _streams WHERE stream = ${quoteLiteral(name)}`
