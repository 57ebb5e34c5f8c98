import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { CommandError, configFailure } from '../cdk'
import { type Database, dataFilePattern, quoteLiteral, versionsTableName } from '../snapshot/store'

// Where a lake keeps the files of its rows: a folder, or object storage.

type Env = Readonly<Record<string, string | undefined>>

export const isRemote = (dataPath: string): boolean => /^(s3|s3a|s3n|gs|gcs|r2|https?):\/\//.test(dataPath)

/** The paths of the entries of a folder; none if it cannot be read. */
export const listFolders = (path: string): ReadonlyArray<string> => {
  try {
    return readdirSync(path).map((name) => join(path, name))
  } catch {
    return []
  }
}

/** Removes a folder. Leaves folders of other users alone. */
export const removeFolder = (path: string): void => {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch {}
}

/** Creates the folder for the rows of a new lake, closed to others. */
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

/** The path is that of a file with rows of a stream, inside the folder of its table. */
const isStreamFile = (path: string): boolean => {
  const [table = '_', name = ''] = path.split('/').slice(-2)
  return table.startsWith(versionsTableName('')) && dataFilePattern.test(name)
}

/** Refuses a new lake's folder if another lake has rows there: each would treat the other's files as orphans. */
export const requireOwnFolder = async (db: Database, dataPath: string): Promise<void> => {
  const found = await db.query(`SELECT file FROM glob(${quoteLiteral(`${dataPath}main/*/ducklake-*.parquet`)})`)
  if (found.some(({ file }) => isStreamFile(String(file))))
    throw new CommandError(
      configFailure(
        `${db.path}: ${dataPath} has files of another lake, and each lake needs a folder of its own. ` +
          'Give another --data, or remove the files there if their lake no longer exists.',
      ),
    )
}

/**
 * Limits the groups of rows that a writer holds in memory: by default 122,880 rows, which may be a whole commit. A size
 * set by the user stays.
 */
export const limitRowGroups = async (db: Database): Promise<void> => {
  const set = `SELECT count(*) FROM ducklake_options('lake') WHERE option_name LIKE 'parquet_row_group_size%'`
  if (Number(await db.scalar(set)) === 0) await db.run(`CALL lake.set_option('parquet_row_group_size', '4096')`)
}

/** The access to object storage, from the variables that Amazon's programs read. */
export const storageSecretSql = (env: Env): string | undefined => {
  const endpoint = env.AWS_ENDPOINT_URL_S3 || env.AWS_ENDPOINT_URL
  if (endpoint && !/^https?:$/.test(URL.canParse(endpoint) ? new URL(endpoint).protocol : ''))
    throw new CommandError(
      configFailure('AWS_ENDPOINT_URL is not an address. Give one such as https://storage.example.com.'),
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
  const settings = [...given, `USE_SSL ${url?.protocol !== 'http:'}`].join(', ')
  return `CREATE OR REPLACE SECRET lake_storage (TYPE s3, ${settings})`
}

/** A variable's value, or the content of the file named by `NAME_FILE`, as for a mounted secret. */
const readSecret = (env: Env, name: string): string | undefined => {
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
