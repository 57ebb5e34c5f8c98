import { createHash, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { CommandError, configFailure, type Failure, transientFailure } from '../cdk'
import {
  type Database,
  dataFilePattern,
  isOutOfMemory,
  type LakeShare,
  quoteLiteral,
  versionsTableName,
} from '../snapshot/store'

export type LakeOptions = {
  /** Where a new lake keeps its Parquet files: a folder or s3://BUCKET/FOLDER. The catalogue remembers it. */
  readonly dataPath?: string | undefined
  /** A folder with DuckDB's extensions, or into which pip has put their packages. */
  readonly extensions?: string | undefined
  /** Reads the lake as it was after this commit. */
  readonly version?: number | undefined
  readonly share?: LakeShare | undefined
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
}

export const postgresPrefix = 'ducklake:postgres:'

/** The place without its password, for messages. */
export const describeLake = (path: string): string =>
  path
    .replaceAll(/((?:pas\w*|pwd)\s*=\s*)('(?:[^'\\]|\\.)*'|(?:\\.|[^\s\\])+)/gi, '$1***')
    .replaceAll(/(\/\/[^:/]*):.*@/gs, '$1:***@')

/** What a lake needs, each with the package of PyPI that brings it. */
const extensionPackages = {
  ducklake: 'duckdb-extension-ducklake',
  postgres_scanner: 'duckdb-extension-postgres-scanner',
  httpfs: 'duckdb-extension-httpfs',
} as const
type ExtensionName = keyof typeof extensionPackages

const listFolders = (path: string): ReadonlyArray<string> => {
  try {
    return readdirSync(path).map((name) => join(path, name))
  } catch {
    return []
  }
}

/** The folders in which Python keeps packages, of the active environment first. */
const listPackageFolders = (env: NonNullable<LakeOptions['env']>): ReadonlyArray<string> =>
  [...(env.VIRTUAL_ENV ? [env.VIRTUAL_ENV] : []), join(homedir(), '.local'), '/usr/local', '/usr']
    .flatMap((root) => listFolders(join(root, 'lib')))
    .filter((path) => /\/python3[^/]*$/.test(path))
    .flatMap((path) => [join(path, 'site-packages'), join(path, 'dist-packages')])

/** Where an extension may be, in the order in which it is looked for. Nothing is downloaded. */
const listExtensionFiles = (
  name: ExtensionName,
  { version, platform }: { readonly version: string; readonly platform: string },
  { extensions, env = {} }: LakeOptions,
): ReadonlyArray<string> => {
  const file = `${name}.duckdb_extension`
  const own = extensions ?? env.FEEDBACK_DUCKDB_EXTENSIONS
  const packaged = join(`duckdb_extension_${name}`, 'extensions', version, file)
  return [
    ...(own ? [file, join(version, platform, file), packaged].map((path) => join(own, path)) : []),
    join(homedir(), '.duckdb', 'extensions', version, platform, file),
    ...listPackageFolders(env).map((folder) => join(folder, packaged)),
  ]
}

export const loadExtension = async (db: Database, name: ExtensionName, options: LakeOptions): Promise<void> => {
  const version = String(await db.scalar('SELECT library_version FROM pragma_version()'))
  const platform = String(await db.scalar('SELECT platform FROM pragma_platform()'))
  const found = listExtensionFiles(name, { version, platform }, options).find((path) => existsSync(path))
  const install = `Install it: pip install --target FOLDER ${extensionPackages[name]}==${version.slice(1)}, and give --extensions FOLDER; or run INSTALL ${name} in DuckDB ${version}, which puts it into ~/.duckdb.`
  if (found === undefined)
    throw new CommandError(
      configFailure(
        `A lake needs DuckDB's extension ${name} of ${version} for ${platform}, which is not on this machine. ${install}`,
      ),
    )
  await db.run(`LOAD ${quoteLiteral(resolve(found))}`).catch((error: unknown) => {
    throw new CommandError(
      configFailure(
        `DuckDB ${version} for ${platform} cannot load ${found}: it is of another version, or damaged. ${install}`,
        String(error),
      ),
    )
  })
}

/** A writer holds a group of rows in memory: by default 122,880, which may be all of a commit. A size that somebody has set for the lake stays. */
export const limitRowGroups = async (base: Database): Promise<void> => {
  const set = `SELECT count(*) FROM ducklake_options('lake') WHERE option_name LIKE 'parquet_row_group_size%'`
  if (Number(await base.scalar(set)) === 0) await base.run(`CALL lake.set_option('parquet_row_group_size', '4096')`)
}

export const isRemote = (dataPath: string): boolean => /^(s3|s3a|s3n|gs|gcs|r2|https?):\/\//.test(dataPath)

/** The tables of the lake's catalogue, which DuckLake attaches beside it. */
export const lakeCatalogue = '__ducklake_metadata_lake'

/** Makes the folder for the rows of a new lake, closed to others. */
export const makeDataFolder = (name: string, dataPath: string): void => {
  try {
    mkdirSync(dataPath, { recursive: true, mode: 0o700 })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new CommandError(
      configFailure(`${name}: the folder of --data ${dataPath} cannot be made (${code}). Give the path of a folder.`),
    )
  }
}

/** Whether a path is that of a file with rows of a stream, which lies in the folder of its table. */
const isStreamFile = (path: string): boolean => {
  const [table = '_', name = ''] = path.split('/').slice(-2)
  return table.startsWith(versionsTableName('')) && dataFilePattern.test(name)
}

/** Refuses the folder of a new lake where another lake has its rows: either would take the other's files for such that were left. */
export const requireOwnFolder = async (db: Database, dataPath: string): Promise<void> => {
  const found = await db.query(`SELECT file FROM glob(${quoteLiteral(`${dataPath}main/*/ducklake-*.parquet`)})`)
  if (found.some(({ file }) => isStreamFile(String(file))))
    throw new CommandError(
      configFailure(
        `${db.path}: ${dataPath} has files of another lake, and each lake needs a folder of its own. Give another --data, or remove what a lake that is no more has left there.`,
      ),
    )
}

/** The access to object storage, from the variables that Amazon's own programs read. */
export const storageSecretSql = (env: NonNullable<LakeOptions['env']>): string | undefined => {
  const endpoint = env.AWS_ENDPOINT_URL_S3 || env.AWS_ENDPOINT_URL
  if (endpoint && !/^https?:$/.test(URL.canParse(endpoint) ? new URL(endpoint).protocol : ''))
    throw new CommandError(
      configFailure('AWS_ENDPOINT_URL is no address. Give one such as https://storage.example.com.'),
    )
  const url = endpoint ? new URL(endpoint) : undefined
  const values = {
    KEY_ID: readSecret(env, 'AWS_ACCESS_KEY_ID'),
    SECRET: readSecret(env, 'AWS_SECRET_ACCESS_KEY'),
    SESSION_TOKEN: readSecret(env, 'AWS_SESSION_TOKEN'),
    REGION: env.AWS_REGION || env.AWS_DEFAULT_REGION || (url && 'us-east-1'),
    ENDPOINT: url && url.host + url.pathname.replace(/\/$/, ''),
    URL_STYLE: url && 'path',
  }
  const given = Object.entries(values).flatMap(([name, value]) => (value ? [`${name} ${quoteLiteral(value)}`] : []))
  if (given.length === 0) return undefined
  return `CREATE OR REPLACE SECRET lake_storage (TYPE s3, ${[...given, `USE_SSL ${url?.protocol !== 'http:'}`].join(', ')})`
}

/** A variable, or the text of the file that its name with `_FILE` names, as a mounted secret has it. */
const readSecret = (env: NonNullable<LakeOptions['env']>, name: string): string | undefined => {
  const path = env[`${name}_FILE`]
  if (!path) return env[name]
  const refuse = (problem: string) => new CommandError(configFailure(problem))
  if (env[name]) throw refuse(`${name}_FILE and ${name} are both set. Unset one of them.`)
  let text: string
  try {
    text = readFileSync(path, 'utf8').trim()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw refuse(`The ${name}_FILE file ${path} ${code === 'ENOENT' ? 'does not exist' : `cannot be read (${code})`}.`)
  }
  if (text === '') throw refuse(`The ${name}_FILE file ${path} is empty.`)
  return text
}

/** What a place and its options say of the lake, and how it is attached. */
export type LakePlace = {
  readonly path: string
  readonly name: string
  readonly isPostgres: boolean
  readonly access: 'write' | 'change' | 'read'
  readonly options: LakeOptions
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

/** A reader takes no lock: what it has left is removed after so long. */
const readerSpillMillis = 24 * 3_600_000

/**
 * The folder for what does not fit into memory: another one each time, since anyone may make one of a known name. A killed process leaves its own;
 * a writer removes those that writers of this machine have left which have ended, as its locks say, and old ones of readers.
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

/** A folder of another user stays. */
export const removeFolder = (path: string): void => {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch {}
}

/** What the errors of a lake's catalogue and storage mean, by what DuckDB says; the first that fits counts. */
const lakeErrors: ReadonlyArray<readonly [RegExp, typeof configFailure, string]> = [
  [
    /extension is not compatible|Unsupported DuckLake|version .* is not (?:supported|compatible)|only supports? (?:DuckLake )?version|catalog version mismatch|was created with a newer/i,
    configFailure,
    "the lake's catalogue is of another version of DuckLake. Upgrade feedback-connector and DuckDB's extension ducklake, or read it with the version that wrote it.",
  ],
  [
    /No snapshot found at version/i,
    configFailure,
    "the lake has no such version, or no longer. FROM ducklake_snapshots('lake') in feedback query lists them.",
  ],
  [
    /explicitly disabled|does not exist and|database does not exist/i,
    configFailure,
    'there is no lake. Check the address given with --lake; feedback sync creates one.',
  ],
  [
    /not a valid DuckDB database/i,
    configFailure,
    'the file is not the catalogue of a lake. It was not changed; give another --lake.',
  ],
  [
    /does not match existing data path/i,
    configFailure,
    'the lake keeps its files in another place than --data. Leave --data out, or give another --lake.',
  ],
  [
    /data_path is not set|DATA_PATH parameter/i,
    configFailure,
    'a new lake in PostgreSQL needs --data, the folder or the address of object storage for its rows.',
  ],
  [
    /HTTP (?:code )?403|Forbidden|AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch/i,
    configFailure,
    'the storage refuses access to the data path. Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the rights on the bucket.',
  ],
  [
    /NoSuchBucket|HTTP (?:code )?404/i,
    configFailure,
    'the storage has no such bucket or file. Check the data path and AWS_ENDPOINT_URL; a file of the lake may have been removed.',
  ],
  [
    /HTTP Error|error for HTTP|connect to URL|SlowDown/i,
    transientFailure,
    'the storage of the lake cannot be reached. Nothing is lost: what was committed is kept. Run it again later.',
  ],
  [
    /invalid connection option/i,
    configFailure,
    'PostgreSQL does not know a key of the address. Check how its keys are spelled, such as host, port, dbname, user and password.',
  ],
  [
    /authentication failed|no password supplied|no pg_hba|role "[^"]*" does not exist|database "[^"]*" does not exist|permission denied for|missing "=" after/i,
    configFailure,
    'PostgreSQL refuses the catalogue. Check the address given with --lake, PGUSER, PGPASSWORD and what the user may do.',
  ],
  [
    /INTERNAL Error|been invalidated/i,
    transientFailure,
    'DuckDB had an error of its own. Nothing is lost: run it again.',
  ],
  [
    /unable to connect to Postgres|connection to server|could not connect to server|terminating connection|connection unexpectedly|closed the connection|no connection to the server|connection has been closed|the database system is|SSL SYSCALL|Connection refused|too many (?:clients|connections)|Current transaction is aborted|Failed to execute query "(?:BEGIN|COMMIT|ROLLBACK)/i,
    transientFailure,
    "the catalogue's PostgreSQL cannot be reached. Nothing is lost: what was committed is kept. Run it again once PostgreSQL is back.",
  ],
]

/** The reason why a lake cannot be used; undefined for any error that has nothing to do with its catalogue and storage. */
export const lakeErrorFailure = (name: string, error: unknown): Failure | undefined => {
  const detail = error instanceof Error ? error.message : String(error)
  if (isOutOfMemory(error)) return undefined
  const found = lakeErrors.find(([pattern]) => pattern.test(detail))
  return found?.[1](`${name}: ${found[2]}`, describeLake(detail.split('\n')[0] ?? ''))
}
