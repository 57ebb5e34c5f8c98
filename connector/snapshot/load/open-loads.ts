import type { StreamInfo } from '../../cdk'
import { type Database, instantSql, quoteLiteral } from '../store/database'
import { countRowsSql, listStreamMetadata, type StreamMetadata } from '../store/metadata'
import { listStreamTables, type Table } from '../store/tables'
import { mapToColumns, prepareTable, requireStream } from './evolve'
import { createLoad, type Load } from './stream-load'
import { chooseLoadTarget, type LoadOptions } from './target'

/** `forgets`: the file has tombstones of forgotten persons. */
export type OpenOptions = {
  readonly loadOptions: Readonly<Record<string, LoadOptions>>
  readonly history: boolean
  readonly forgets: boolean
}

/**
 * Prepares the streams' tables and their rows in the metadata tables. Rejects with `CommandError` if a stream cannot be
 * written.
 */
export const openLoads = (
  db: Database,
  run: number,
  infos: ReadonlyArray<StreamInfo>,
  options: OpenOptions,
  now: number,
): Promise<ReadonlyArray<Load>> =>
  db.transaction(async () => {
    const tables = await listStreamTables(db)
    const known = await listStreamMetadata(db)
    const last = Number(await db.scalar('SELECT coalesce(max(load), 0) FROM _loads'))
    const streams: DeclaredLoad[] = []
    for (const info of infos) {
      const names = [...known.map(({ stream }) => stream), ...streams.map(({ load }) => load.stream)]
      const metadata = known.find(({ stream }) => stream === info.name)
      requireStream(db, info, names, options.loadOptions[info.name] ?? {}, metadata?.generation ?? 0)
      const load = await openLoad(db, last + streams.length + 1, info, { ...options, tables, metadata }, now)
      streams.push({ info, load })
    }
    await declareLoads(db, run, streams, now)
    return streams.map(({ load }) => load)
  })

type DeclaredLoad = { readonly info: StreamInfo; readonly load: Load }

/** Writes the rows of the loads in the metadata tables. */
const declareLoads = async (
  db: Database,
  run: number,
  streams: ReadonlyArray<DeclaredLoad>,
  now: number,
): Promise<void> => {
  const isOneOf = (some: typeof streams) => `stream IN (${some.map(({ info }) => quoteLiteral(info.name)).join(', ')})`
  await db.run(`
    DELETE FROM _streams WHERE ${isOneOf(streams)};
    INSERT INTO _streams (stream, schema, primary_key, cursor, generation, refreshing, rows)
    VALUES ${streams.map(streamRowSql).join(', ')}`)
  const resets = streams.filter(({ load }) => load.target.resetsState)
  if (resets.length > 0) await db.run(`DELETE FROM _state WHERE ${isOneOf(resets)}`)
  const rows = streams.map(({ info: { name, syncMode }, load: { id, target } }) => {
    const texts = [quoteLiteral(name), quoteLiteral(syncMode)]
    return `(${[id, run, ...texts, instantSql(now), 0, countRowsSql(name), target.generation, "'running'"].join(', ')})`
  })
  await db.run(`
    INSERT INTO _loads (load, run, stream, sync_mode, started, records, rows, generation, status)
    VALUES ${rows.join(', ')}`)
}

const streamRowSql = ({ info: { name, schema }, load: { table, target } }: DeclaredLoad): string => {
  const { key, cursor } = mapToColumns(table, target)
  return `(${[
    quoteLiteral(name),
    `${quoteLiteral(JSON.stringify(schema))}::JSON`,
    `[${key.map(quoteLiteral).join(', ')}]::VARCHAR[]`,
    cursor === undefined ? 'NULL' : quoteLiteral(cursor),
    target.generation,
    target.minimumGeneration > 0,
    countRowsSql(name),
  ].join(', ')})`
}

const openLoad = async (
  db: Database,
  id: number,
  info: StreamInfo,
  {
    loadOptions,
    history,
    forgets,
    tables,
    metadata,
  }: OpenOptions & { readonly tables: ReadonlyArray<Table>; readonly metadata: StreamMetadata | undefined },
  now: number,
): Promise<Load> => {
  const options = loadOptions[info.name] ?? {}
  const target = chooseLoadTarget(info, options, metadata)
  const previous = tables.find(({ name }) => name === info.name)
  const table = await prepareTable(db, info, target, { previous, key: metadata?.key ?? [], history })
  return createLoad(db, id, info, { table, target, forgets }, now)
}
