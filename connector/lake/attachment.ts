import { type Database, quoteLiteral } from '../snapshot/store'
import { loadExtension } from './extensions'
import { type Locks, noLocks, openLocks } from './locks'
import { attachSql, type LakePlace, prepareSpillFolder } from './place'
import { isRemote, limitRowGroups, makeDataFolder, removeFolder, storageSecretSql } from './storage'

/** A lake attached to a database in memory. It is attached again if its connection was lost. */
export type Attachment = {
  /** Attaches the lake; resolves at once if it is attached. */
  readonly attach: () => Promise<void>
  /** Reports that the connection of this attachment was lost. The next `attach` makes a new one. */
  readonly lose: (attached: Promise<void>) => void
  /** Where its rows are, once it has been attached. */
  readonly dataPath: () => string
  readonly close: () => Promise<void>
}

export const createAttachment = async (base: Database, place: LakePlace): Promise<Attachment> => {
  const { dataPath: given } = place.options
  const openStorage = createStorageOpener(base, place)
  if (given !== undefined) {
    await openStorage(given)
    if (!isRemote(given) && place.access === 'write') makeDataFolder(place.name, given)
  }
  let locks: Locks = noLocks
  let dataPath = ''
  let spillFolder: string | undefined
  let attached: Promise<void> | undefined
  const attachAgain = async (): Promise<void> => {
    await locks.release()
    locks = noLocks
    await base.run('USE memory')
    for (const database of ['lake', 'lake_locks']) await base.run(`DETACH DATABASE IF EXISTS ${database}`)
    locks = await openLocks(base, place)
    dataPath = await attachLake(base, place, locks, openStorage)
    if (spillFolder === undefined) {
      spillFolder = prepareSpillFolder(dataPath, place)
      await base.run(`SET temp_directory = ${quoteLiteral(spillFolder)}`)
    }
    if (place.access === 'read' && place.options.version === undefined) await holdVersion(base, place)
  }
  return {
    attach: () => {
      attached ??= attachAgain().catch((error: unknown) => {
        attached = undefined
        throw error
      })
      return attached
    },
    lose: (lost) => {
      if (attached === lost) attached = undefined
    },
    dataPath: () => dataPath,
    close: async () => {
      await locks.release()
      base.close()
      if (spillFolder !== undefined) removeFolder(spillFolder)
    },
  }
}

type StorageOpener = (dataPath: string) => Promise<void>

/** Makes object storage readable once: loads the extension and sets the access from environment variables. */
const createStorageOpener = (base: Database, { options }: LakePlace): StorageOpener => {
  let isOpen = false
  return async (dataPath) => {
    if (isOpen || !isRemote(dataPath)) return
    isOpen = true
    await loadExtension(base, 'httpfs', options)
    // Files never change, so each is read once. An upload holds one part of its file in memory, by default 80 MB: too
    // much if several processes with smaller files share a machine.
    const upload = options.share === undefined ? '' : `; SET s3_uploader_max_filesize = '100GB'`
    await base.run(`SET enable_external_file_cache = true${upload}`)
    const secret = storageSecretSql(options.env ?? {})
    if (secret !== undefined) await base.run(secret)
  }
}

/** A lake in PostgreSQL is completely created, including its last option. Then it is opened alongside its writers. */
const isMade = async (base: Database): Promise<boolean> => {
  const sql = `SELECT count(*)::int AS made FROM ducklake_metadata WHERE key LIKE 'parquet_row_group_size%'`
  const made = await base.scalar(`SELECT made FROM postgres_query('lake_locks', ${quoteLiteral(sql)})`).catch(() => 0)
  return made !== 0
}

/** Attaches the lake, creating it if it is new. Resolves to where its rows are. */
const attachLake = async (
  base: Database,
  place: LakePlace,
  locks: Locks,
  openStorage: StorageOpener,
): Promise<string> => {
  const { access, isPostgres, options } = place
  const attach = async (): Promise<void> => {
    const sql = attachSql(place, options.version)
    await base.run(sql).catch(async (error: unknown) => {
      // Only the catalogue knows where the rows of an existing lake are.
      if (!/requires the extension httpfs/.test(String(error))) throw error
      await openStorage('s3://')
      await base.run(sql)
    })
    if (access === 'write') await limitRowGroups(base)
  }
  // Two processes that create the same lake would each create half of it.
  const mayMake = isPostgres && access === 'write' && !(await isMade(base))
  await (mayMake ? locks : noLocks).whileMaking(attach)
  const dataPath = String(
    await base.scalar(`SELECT value FROM ducklake_options('lake') WHERE option_name = 'data_path'`),
  )
  await openStorage(dataPath)
  return dataPath
}

/** Makes a command read everything from one version, whatever is committed meanwhile. */
const holdVersion = async (base: Database, place: LakePlace): Promise<void> => {
  const version = Number(await base.scalar(`SELECT id FROM ducklake_current_snapshot('lake')`))
  await base.run(`USE memory; DETACH lake; ${attachSql(place, version)}`)
}
