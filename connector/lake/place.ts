import { createHash, randomUUID } from 'node:crypto'
import { statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { CommandError, configFailure } from '../cdk'
import { quoteLiteral, type SnapshotAccess } from '../snapshot/store'
import { isRemote, listFolders, removeFolder } from './storage'

/** One of several processes that share a backfill, counted from 0. */
export type LakeShare = { readonly index: number; readonly count: number }

export type LakeOptions = {
  /** Where a new lake keeps its Parquet files: a folder or s3://BUCKET/FOLDER. The catalogue stores it. */
  readonly dataPath?: string | undefined
  /** A folder with DuckDB's extensions, or one into which pip installed their packages. */
  readonly extensions?: string | undefined
  /** Reads the lake as it was after this commit. */
  readonly version?: number | undefined
  /** The share of a backfill that this process reads. */
  readonly share?: LakeShare | undefined
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
}

/** The path of a lake, and how to open it. */
export type LakePlace = {
  readonly path: string
  /** The path without its password, for messages. */
  readonly name: string
  /** Its catalogue is in PostgreSQL, not in a DuckDB file. */
  readonly isPostgres: boolean
  readonly access: SnapshotAccess
  readonly options: LakeOptions
}

export const postgresPrefix = 'ducklake:postgres:'

/** The tables of the lake's catalogue, which DuckLake attaches next to it. */
export const lakeCatalogue = '__ducklake_metadata_lake'

/** A path without its password. */
export const describeLake = (path: string): string =>
  path
    .replaceAll(/((?:pas\w*|pwd)\s*=\s*)('(?:[^'\\]|\\.)*'|(?:\\.|[^\s\\])+)/gi, '$1***')
    .replaceAll(/(\/\/[^:/]*):.*@/gs, '$1:***@')

export const toLakePlace = (path: string, access: SnapshotAccess, options: LakeOptions): LakePlace => {
  const name = describeLake(path)
  if (/^ducklake:(sqlite|mysql):/.test(path))
    throw new CommandError(
      configFailure(
        `${name}: a lake's catalogue is in PostgreSQL (ducklake:postgres:…) or in a DuckDB file (ducklake:FILE).`,
      ),
    )
  return { path, name, isPostgres: path.startsWith(postgresPrefix), access, options }
}

export const attachSql = ({ path, access, options: { dataPath } }: LakePlace, version?: number): string => {
  const settings = [
    ...(dataPath === undefined ? [] : [`DATA_PATH ${quoteLiteral(isRemote(dataPath) ? dataPath : resolve(dataPath))}`]),
    ...(access === 'write' ? [] : ['CREATE_IF_NOT_EXISTS false']),
    ...(access === 'read' ? ['READ_ONLY'] : []),
    ...(version === undefined ? [] : [`SNAPSHOT_VERSION ${version}`]),
  ]
  return `ATTACH ${quoteLiteral(path)} AS lake${settings.length === 0 ? '' : ` (${settings.join(', ')})`}; USE lake`
}

/** How long a reader's leftovers are kept: readers take no lock. */
const readerSpillMillis = 24 * 3_600_000

/**
 * The folder for what does not fit into memory, a new one each time, since anyone could create one with a known name. A
 * killed process leaves its folder behind. A writer removes those of this machine's ended writers, which its locks
 * show, and old ones of readers.
 */
export const prepareSpillFolder = (dataPath: string, { access, options: { share } }: LakePlace): string => {
  const lake = `feedback-lake-${createHash('sha256').update(dataPath).digest('hex').slice(0, 16)}`
  const kind = access === 'read' ? 'read' : share === undefined ? 'run' : `share-${share.index}`
  const isLeft = (path: string): boolean => {
    const name = basename(path)
    if (share !== undefined) return name.startsWith(`${lake}-${kind}-`)
    if (!name.startsWith(`${lake}-read-`)) return name.startsWith(`${lake}-`)
    const changed = statSync(path, { throwIfNoEntry: false })?.mtimeMs
    return changed !== undefined && Date.now() - changed > readerSpillMillis
  }
  if (access !== 'read') for (const path of listFolders(tmpdir())) if (isLeft(path)) removeFolder(path)
  return join(tmpdir(), `${lake}-${kind}-${randomUUID()}.tmp`)
}
