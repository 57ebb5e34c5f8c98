import type { StreamInfo } from '../../cdk'
import { type Database, instantSql, quoteLiteral } from '../store/database'
import { countRowsSql, declareStreams, listStreamMetadata, type StreamMetadata } from '../store/metadata'
import { listStreamTables, type Table } from '../store/tables'
import { mapToColumns, prepareTable, requireStream } from './evolve'
import { createLoad, type Load } from './stream-load'
import { chooseLoadTarget, type LoadOptions } from './target'

/** `forgets`: whether the file has tombstones of what was forgotten. */
export type OpenOptions = {
  readonly loadOptions: Readonly<Record<string, LoadOptions>>
  readonly history: boolean
  readonly forgets: boolean
}

/**
 * Prepares the streams' tables and their rows in the metadata tables. Rejects with `CommandError` if a stream cannot
 * be written.
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
    const streams: { readonly info: StreamInfo; readonly load: Load }[] = []
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

/** Writes the rows of the loads in the metadata tables. */
const declareLoads = async (
  db: Database,
  run: number,
  streams: ReadonlyArray<{ readonly info: StreamInfo; readonly load: Load }>,
  now: number,
): Promise<void> => {
  const declared = streams.map(({ info, load }) => ({
    info,
    target: { ...load.target, ...mapToColumns(load.table, load.target) },
  }))
  await declareStreams(db, declared)
  const rows = streams.map(({ info: { name, syncMode }, load: { id, target } }) => {
    const texts = [quoteLiteral(name), quoteLiteral(syncMode)]
    return `(${[id, run, ...texts, instantSql(now), 0, countRowsSql(name), target.generation, "'running'"].join(', ')})`
  })
  await db.run(`
    INSERT INTO _loads (load, run, stream, sync_mode, started, records, rows, generation, status)
    VALUES ${rows.join(', ')}`)
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
