import { configFailure, type Failure, systemFailure, transientFailure } from '../cdk/failure'

/** Why DuckDB did not open a file, told to the one who named it. */
export const databaseOpenFailure = (path: string, error: unknown): Failure => {
  const detail = error instanceof Error ? error.message : String(error)
  const holder = /held in (.*?) \(PID (\d+)\)/.exec(detail)
  if (holder !== null)
    return transientFailure(
      `${path} is in use by process ${holder[2]} (${holder[1]}). Wait until it has ended, or stop it, and try again.`,
      detail,
    )
  if (/set lock on file/.test(detail))
    return transientFailure(`${path} is in use by another process. Wait until it has ended and try again.`, detail)
  if (/does not exist|No such file/.test(detail))
    return configFailure(`${path}: no such file or folder. Check the path given with --db.`, detail)
  if (/Is a directory/.test(detail)) return configFailure(`${path} is a folder. Give the path of a file.`, detail)
  if (/Permission denied|Read-only file system/.test(detail))
    return configFailure(`${path}: permission denied. Check who may read and write it.`, detail)
  if (/not a valid DuckDB database|launch in-memory database/.test(detail))
    return configFailure(
      `${path} exists and is not a DuckDB file. It is left as it is; give another path with --db.`,
      detail,
    )
  if (/newer version|version number/.test(detail))
    return configFailure(`${path} was written by another version of DuckDB. Upgrade feedback-connector.`, detail)
  return systemFailure(`${path} cannot be opened: ${detail}`, detail)
}
