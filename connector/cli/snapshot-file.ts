import { CommandError, type CommandIo, mapDefined, runOrThrow, usageError } from '../cdk'
import { openLake, type PlaceOptions } from '../lake'
import {
  closeSnapshot,
  damagedFileFailure,
  databaseWriteFailure,
  isDiskFull,
  isLakePath,
  isOutOfMemory,
  openSnapshot,
  parseMemorySize,
  type Snapshot,
  type SnapshotAccess,
  type SnapshotOptions,
} from '../snapshot'
import { requirePlace, toVersion } from './options'

const waitUnits: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 }

/** The command line's options for opening a file. */
export const toSnapshotOptions = (
  io: CommandIo,
  options: { readonly [K in 'wait' | 'memory-limit' | 'data' | 'extensions' | 'at']?: string | undefined },
): PlaceOptions => ({
  wait: toFileWait(io, options.wait),
  memoryLimit: mapDefined(options['memory-limit'], toMemoryLimit),
  lake: {
    dataPath: options.data,
    extensions: options.extensions,
    version: mapDefined(options.at, (text) => toVersion('--at', text)),
    env: io.env,
  },
})

/** The value of `--memory-limit`, in bytes. */
const toMemoryLimit = (text: string): number => {
  const bytes = parseMemorySize(text)
  if (bytes === undefined)
    throw usageError(`--memory-limit must be a size of at least 16MB, such as 512MB or 1GiB, not ${text}.`)
  return bytes
}

/** The value of `--wait`: how long to wait for a file that another process uses. */
const toFileWait = (io: CommandIo, text: string | undefined): SnapshotOptions['wait'] => {
  if (text === undefined) return undefined
  const [, amount, unit = 's'] = /^(\d{1,6})(s|m|h)?$/.exec(text) ?? []
  const millis = Number(amount) * (waitUnits[unit] ?? Number.NaN)
  if (Number.isNaN(millis)) throw usageError(`--wait must be a time such as 30s, 10m or 2h, not ${text}.`)
  return { millis, stop: io.stop, onAttempt: ({ message }) => io.printProgress(`Waiting up to ${text}: ${message}`) }
}

/** Opens the file or lake while `body` runs. */
export const useSnapshot = async <A>(
  path: string,
  access: SnapshotAccess,
  body: (snapshot: Snapshot) => Promise<A>,
  options?: PlaceOptions,
): Promise<A> => {
  const snapshot = await runOrThrow((isLakePath(path) ? openLake : openSnapshot)(path, access, options))
  try {
    return await body(snapshot)
  } catch (error) {
    throw toReadFailure(snapshot.db, error)
  } finally {
    await closeSnapshot(snapshot)
  }
}

/** The same for the file or lake on the command line of `verb`. */
export const usePlace = async <A>(
  io: CommandIo,
  verb: string,
  options: Parameters<typeof requirePlace>[1] & Parameters<typeof toSnapshotOptions>[1],
  access: SnapshotAccess,
  body: (snapshot: Snapshot) => Promise<A>,
): Promise<A> => useSnapshot(requirePlace(verb, options), access, body, toSnapshotOptions(io, options))

/**
 * Turns a DuckDB error, for example from a damaged file or too little memory, into a failure with a reason. Other
 * errors stay unchanged.
 */
const toReadFailure = ({ path, explainMemory }: Snapshot['db'], error: unknown): unknown => {
  if (!(error instanceof Error) || error instanceof CommandError || !/^[A-Z][A-Za-z ]* Error: /.test(error.message))
    return error
  if (isOutOfMemory(error)) return new CommandError(explainMemory('this', error))
  return new CommandError(
    isDiskFull(error) ? databaseWriteFailure(path, error) : damagedFileFailure(path, error.message.split('\n')[0]),
  )
}
