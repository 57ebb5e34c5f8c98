import { CommandError, configFailure, type Failure, systemFailure, transientFailure } from '../../cdk'
import { formatMemorySize, isOutOfMemory, spillFolderPattern } from './memory'

/** Adapts a text about a file that holds streams to a lake. */
export const adviseOnPlace = ({ lake }: { readonly lake?: unknown }, text: string): string =>
  lake === undefined ? text : text.replaceAll('file', 'lake').replaceAll('--db', '--lake')

/** The failure of a file that DuckDB cannot open or can only partly read. */
export const damagedFileFailure = (path: string, detail?: string): Failure =>
  configFailure(
    `${path} is cut short or damaged, or its tables were changed by hand. ` +
      'Take it from a backup, or read everything again into a new file.',
    detail,
  )

/**
 * DuckDB found a block that is missing or was not written as it should be. It detects an outdated block only by
 * inconsistent content, and reads most blocks only when they are needed.
 */
const isDamage = (error: unknown): boolean =>
  /Could not read enough bytes|Corrupt database|Failed to deserialize|MetadataReader|INTERNAL Error/.test(
    error instanceof Error ? error.message : String(error),
  )

/**
 * The failure of a file whose log DuckDB cannot read. Truncating or removing a log does no harm: it contains the states
 * together with the rows.
 */
const damagedLogFailure = (path: string, detail: string): Failure =>
  configFailure(
    `${path}.wal is damaged or does not match the file, as may happen after a power ` +
      `failure. Move ${path}.wal away and run again: the file is then as it was before ` +
      'its last commits, including its states, and feedback sync reads the rest again.',
    detail,
  )

export const foreignFileFailure = (path: string, detail?: string): Failure =>
  configFailure(`${path} exists and is not a DuckDB file. It was not changed; give another path with --db.`, detail)

/** The storage version of the files that we write, which every DuckDB since then can read. */
export const storageVersion = 'v1.4.0'

/** The failure of a file in a storage version that this DuckDB cannot read. */
const otherVersionFailure = (path: string, detail: string): Failure => {
  const [, found = '', least = ''] = /version number (\d+),.* between (\d+)/.exec(detail) ?? []
  if (Number(found) < Number(least))
    return configFailure(`${path} was written by a DuckDB before 0.10. Give another path with --db.`, detail)
  return configFailure(
    `${path} has a storage format of a newer DuckDB. ` +
      'Copy it with that version into a new file, and give this one with --db: ' +
      `ATTACH '${path.replaceAll("'", "''")}' AS old (READ_ONLY); ` +
      `ATTACH 'copy.duckdb' AS new (STORAGE_VERSION '${storageVersion}'); COPY FROM DATABASE old TO new;`,
    detail,
  )
}

/** Why DuckDB did not open a file, in words for the user who gave its path. */
export const databaseOpenFailure = (path: string, error: unknown, memoryLimit?: number): Failure => {
  const detail = error instanceof Error ? error.message : String(error)
  if (isOutOfMemory(error)) return databaseMemoryFailure(path, 'opening the file', error, memoryLimit)
  if (isDiskFull(detail)) return databaseWriteFailure(path, error)
  const holder = /held in (.*?) \(PID (\d+)\)/.exec(detail)
  if (holder !== null)
    return transientFailure(
      `${path} is in use by process ${holder[2]} (${holder[1]}). Wait ` +
        'until it ends, or stop it, and try again; --wait 10m waits for it.',
      detail,
    )
  if (/set lock on file/.test(detail))
    return transientFailure(
      `${path} is in use by another process. Wait until it ends and try again; --wait 10m waits for it.`,
      detail,
    )
  // Check this before a missing file: something that a damaged log names may be missing in the file.
  if (/Corrupt WAL file|replaying WAL file|WAL checkpoint iteration|WAL does not match/.test(detail))
    return damagedLogFailure(path, detail)
  if (/does not exist|No such file/.test(detail))
    return configFailure(`${path}: no such file or folder. Check the path given with --db.`, detail)
  if (/Is a directory/.test(detail)) return configFailure(`${path} is a folder. Give the path of a file.`, detail)
  if (/Permission denied|Read-only file system/.test(detail))
    return configFailure(`${path}: permission denied. Check who may read and write it.`, detail)
  if (/not a valid DuckDB database|launch in-memory database/.test(detail)) return foreignFileFailure(path, detail)
  if (isDamage(detail)) return damagedFileFailure(path, detail)
  if (/newer version|version number/.test(detail)) return otherVersionFailure(path, detail)
  return systemFailure(`${path} cannot be opened: ${detail}`, detail)
}

/** If the disk fills up while DuckDB spills, DuckDB reports a lack of memory, since it may use the free space there. */
const diskFullPattern =
  /No space left|disk quota|File too large|max_temp_directory_size|failed to offload|Could not write all bytes/i

/** DuckDB could not write for lack of room, on the disk or within the maximum file size. */
export const isDiskFull = (error: unknown): boolean =>
  diskFullPattern.test(error instanceof Error ? error.message : String(error))

/** The disk has no room for an output, or the output is larger than a file may be. */
export const outputFullFailure = (path: string): Failure =>
  transientFailure(
    `${path} cannot be written: the disk is full, or the file has ` +
      'reached the largest size allowed. Make room and run again.',
  )

/** Why DuckDB did not write. Its own message may quote a record after `Input:`; that part is left out. */
export const databaseWriteFailure = (path: string, error: unknown): Failure => {
  const detail = (error instanceof Error ? error.message : String(error)).replace(/(Input|Original Line):[\s\S]*/, '')
  if (isDiskFull(detail))
    return transientFailure(
      `${path} cannot grow: the disk is full, or the file has reached the largest ` +
        'size allowed. Make room and run again; what was committed is kept.',
      detail,
    )
  if (isDamage(detail)) return damagedFileFailure(path, detail)
  return systemFailure(`${path} cannot be written: ${detail.split('\n')[0]}`, detail)
}

/**
 * Turns DuckDB's error about a full disk or a damaged file into a failure with a reason. Returns any other error as it
 * is.
 */
export const explainWriteError = (path: string, error: unknown): unknown =>
  !(error instanceof CommandError) && (isDiskFull(error) || isDamage(error))
    ? new CommandError(databaseWriteFailure(path, error))
    : error

/** Why a query that would do more than read is refused; undefined for any other message of DuckDB. */
export const explainRefusal = (message: string): string | undefined => {
  const find = (pattern: RegExp) => pattern.exec(message)?.[1]
  const statement = find(/^Invalid Input Error: Cannot execute statement of type "(.*?)" on database .* read-only mode/)
  if (statement !== undefined)
    return (
      `A query cannot change anything, and this ${statement} would. To change ` +
      `rows, copy the file and open the copy with DuckDB's own program.`
    )
  const path = find(/^Permission Error: Cannot access (?:file|directory) "(.*?)" - file system operations are disabled/)
  if (path !== undefined)
    return `A query cannot read or write other files, such as ${path}. --out FILE writes the rows into one.`
  const setting = find(/^Invalid Input Error: Cannot change configuration option "(.*?)"/)
  return setting === undefined ? undefined : `A query cannot change settings, such as ${setting}.`
}

/**
 * The failure of work that needs more memory than the limit. `work`: what did not fit, such as "the check x"; `limit`
 * in bytes.
 */
export const memoryFailure = (
  path: string,
  work: string,
  limit: number | undefined,
  isReadOnly: boolean,
  detail: string,
): Failure => {
  const isFile = path !== ':memory:'
  const outcome = isReadOnly
    ? 'The file was not changed.'
    : 'Nothing is lost: what was committed is kept, and the same command continues from there.'
  const example = limit === undefined ? '' : `, such as ${formatMemorySize(limit * 2)}`
  return configFailure(
    `${isFile ? `${path}: ` : ''}${work} needs more memory than ` +
      `${limit === undefined ? 'DuckDB has' : `the limit of ${formatMemorySize(limit)}`}. Raise it with ` +
      `--memory-limit${example}.${isFile ? ` ${outcome}` : ''}`,
    detail,
  )
}

/** Why DuckDB ran out of memory: its limit, or a disk without room for spilled data. `work`: what did not fit. */
export const databaseMemoryFailure = (
  path: string,
  work: string,
  error: unknown,
  limit?: number,
  isReadOnly = false,
): Failure => {
  const detail = error instanceof Error ? error.message : String(error)
  if (spillFolderPattern.test(detail))
    return configFailure(
      `${path}: ${work} needs more memory than the ` +
        `limit${limit === undefined ? '' : ` of ${formatMemorySize(limit)}`}, and ` +
        `the folder for what does not fit, ${path}.tmp, cannot be ` +
        'created. Check who may write there, or raise the limit with --memory-limit.',
      detail,
    )
  return isDiskFull(detail) ? databaseWriteFailure(path, error) : memoryFailure(path, work, limit, isReadOnly, detail)
}
