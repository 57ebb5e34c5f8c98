import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import type { Chance } from './random'
import type { Owner, Realm } from './realm'

/** What the disk, or the machine, does to the DuckDB file of a process. */
export type DiskFault = 'power failure' | 'lost sectors' | 'full disk' | 'no memory' | 'large log'

/** The file and its log, as they are on the disk; undefined: there is none. */
export type DiskImage = { readonly file: Buffer | undefined; readonly log: Buffer | undefined }

/**
 * DuckDB in the simulation: it is the real one, but each call is an event, so that a process can be killed between any two. A process that has
 * ended leaves the file as it was at that instant.
 */
export type SimulatedDuckDb = {
  /**
   * `power failure`: the machine stops in the call that changes the file after so many others; `kill` ends the process. `lost sectors`: the same,
   * and any sector may be missing of what was on its way. `full disk`: no file
   * gets longer than the longest has become, and so many bytes. `no memory`: so many statements are refused memory. `large log`: so many
   * times the log seems to have grown enough to be brought into the file.
   */
  readonly arm: (fault: DiskFault, amount: number, kill: (what: string) => void) => void
  /** To be called when a process has ended: closes what it has left open; returns whether it has left anything open. */
  readonly leave: (owner: Owner) => boolean
  readonly read: () => DiskImage
  /** Begins another world, without a file at this path. */
  readonly reset: (path: string, chance: Chance) => void
}

type Call = (...args: unknown[]) => unknown
type Bindings = Record<string, Call>

/** The calls that run statements, and so may write. The others of DuckDB's calls only prepare them, or read their results. */
const scheduledCalls = ['open', 'query', 'execute_prepared', 'execute_prepared_streaming'] as const

const sector = 4096
/** What stands before the blocks of a file: a page that never changes, and two headers in turn. */
const headerBytes = 3 * sector
const memoryError = 'Out of Memory Error: could not allocate block of size 256.0 KiB (61.0 MiB/61.0 MiB used)'
const largeLogBytes = 1e9

/** Reads a file; one that has not changed since it was read last is not read again. */
const createFileReader = (): ((path: string) => Buffer | undefined) => {
  const known = new Map<string, { readonly version: string; readonly bytes: Buffer }>()
  return (path) => {
    const found = fs.statSync(path, { throwIfNoEntry: false, bigint: true })
    if (found === undefined) return undefined
    const version = `${found.ino} ${found.size} ${found.mtimeNs}`
    const held = known.get(path)
    const bytes = held?.version === version ? held.bytes : fs.readFileSync(path)
    known.set(path, { version, bytes })
    return bytes
  }
}
const areEqual = (a: Buffer | undefined, b: Buffer | undefined): boolean =>
  a === undefined || b === undefined || a === b ? a === b : a.equals(b)

/** The bytes after, in a file that has not been made shorter yet. */
const keepLength = (before: Buffer, after: Buffer): Buffer => Buffer.concat([after, before.subarray(after.length)])

/** Some units as they were and some as they are: writes that were on their way, in no order. The headers come last, so they are as they were. */
const mixUnits = (before: Buffer, after: Buffer, unit: number, chance: Chance): Buffer => {
  const mixed = keepLength(before, after)
  before.copy(mixed, 0, 0, headerBytes)
  const rate = chance.pick([0, 0.5, 1])
  for (let from = headerBytes; from < mixed.length; from += unit)
    if (!chance.happens(rate)) {
      mixed.fill(0, from, from + unit)
      if (from < before.length) before.copy(mixed, from, from, Math.min(from + unit, before.length))
    }
  return mixed
}

/** What a power failure does to what was not synced. */
type Loss = {
  /** The first `synced` bytes of the log were. */
  readonly tearLog: (log: Buffer, synced: number, chance: Chance) => Buffer
  /** Of so many bytes of the file, all are written or none. */
  readonly unit: number
}

/** The end of the log is missing, and whole blocks. */
const loseEnd: Loss = {
  tearLog: (log, synced, chance) => log.subarray(0, chance.between(synced, log.length)),
  unit: 262_144,
}

/** Any sectors are missing. DuckDB does not bear that: its log has checksums, and a checkpoint writes some blocks again that are in use. */
const loseSectors: Loss = {
  tearLog: (log, synced, chance) => {
    const from = chance.between(synced, Math.max(synced, log.length - 1))
    return Buffer.from(log).fill(0, from, Math.min(log.length, (Math.floor(from / 512) + 1) * 512))
  },
  unit: 512,
}

/**
 * What a power failure in the midst of a call leaves. DuckDB writes in this order (strace shows it), and nothing overtakes an fsync: a commit writes
 * full groups of rows into free blocks of the file, fsync, and then appends all the rest to the log, fsync. A checkpoint appends a mark to the log,
 * fsync, writes free blocks, fsync, then one of the two headers, fsync, cuts free blocks off the file, and removes the log. `marked`: the log that was removed.
 */
const failPower = (
  before: DiskImage,
  after: DiskImage,
  marked: Buffer | undefined,
  { tearLog, unit }: Loss,
  chance: Chance,
): DiskImage => {
  const { file, log = Buffer.alloc(0) } = before
  const written = after.file ?? Buffer.alloc(0)
  if (file === undefined) {
    // The file is made: its headers are written together.
    const pages = Buffer.from(written.subarray(0, chance.pick([0, 1, 2, 3]) * sector))
    for (let from = 0; from < pages.length; from += sector)
      if (chance.happens(0.3)) pages.fill(0, from, Math.min(from + sector, pages.length))
    return { file: pages, log: undefined }
  }
  if (after.log !== undefined || marked === undefined)
    return areEqual(file, after.file) || chance.happens(0.5)
      ? { file: written, log: after.log === undefined ? before.log : tearLog(after.log, log.length, chance) }
      : { file: mixUnits(file, written, unit, chance), log: before.log }
  const longer = keepLength(file, written)
  return chance.pick([
    () => ({ file, log: tearLog(marked, log.length, chance) }),
    () => ({ file: mixUnits(file, written, unit, chance), log: marked }),
    () => ({ file: Buffer.concat([file.subarray(0, headerBytes), longer.subarray(headerBytes)]), log: marked }),
    () => ({ file: chance.pick([longer, written]), log: chance.pick([marked, undefined]) }),
    () => ({ file: written, log: undefined }),
  ])()
}

const describeImage = ({ file, log }: DiskImage): string => `${file?.length ?? 'no file'} + ${log?.length ?? 'no log'}`

/** The first word of a statement says enough; the rest names files. */
const nameStatement = (name: string, sql: unknown): string =>
  typeof sql === 'string' && name === 'query' ? `query ${/[A-Za-z]+/.exec(sql)?.[0] ?? ''}` : name

/** Makes events of the calls of DuckDB. `module`: @duckdb/node-bindings as Node has loaded it, before anything has taken its exports. */
export const installDuckDb = (realm: Realm, module: { exports: Bindings }): SimulatedDuckDb => {
  const readFile = createFileReader()
  let path = ''
  let chance: Chance
  /** What processes hold open. */
  const handles = new Map<unknown, { readonly owner: Owner; readonly close: () => void }>()
  const powerFailures: { calls: number; readonly loss: Loss; readonly kill: (what: string) => void }[] = []
  let image: DiskImage | undefined
  let isFull = false
  let memoryRefusals = 0
  let largeLogs = 0

  const isProcess = (owner: Owner): boolean => owner.name !== 'world'
  const exported = module.exports
  const real: Bindings = Object.fromEntries(
    Object.getOwnPropertyNames(exported).map((name) => [name, exported[name] as Call]),
  )
  const read = (): DiskImage => ({ file: readFile(path), log: readFile(`${path}.wal`) })
  const remove = (): void => {
    for (const suffix of ['', '.wal', '.wal.kept']) fs.rmSync(path + suffix, { force: true })
    fs.rmSync(`${path}.tmp`, { force: true, recursive: true })
  }
  const limitFiles = (bytes: string): void =>
    void execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:unlimited`])

  /** Prepares for a power failure in the call that follows; returns what to do after it: whether the power has failed. */
  const watchPower = (what: string): (() => boolean) => {
    const [failure] = powerFailures
    if (failure === undefined) return () => false
    const before = read()
    const kept = `${path}.wal.kept`
    fs.rmSync(kept, { force: true })
    if (before.log !== undefined) fs.linkSync(`${path}.wal`, kept)
    return () => {
      const after = read()
      const marked = readFile(kept)
      fs.rmSync(kept, { force: true })
      if (areEqual(before.file, after.file) && areEqual(before.log, after.log)) return false
      failure.calls -= 1
      if (failure.calls >= 0) return false
      powerFailures.shift()
      image = failPower(before, after, marked, failure.loss, chance)
      failure.kill(
        `the power fails in ${what}: ${describeImage(before)} becomes ${describeImage(after)}, and is ${describeImage(image)}`,
      )
      return true
    }
  }
  /** A commit types its records into temporary tables, which is what needs memory. */
  const refuseMemory = (name: string, sql: unknown): boolean => {
    if (name !== 'query' || memoryRefusals === 0 || !String(sql).includes('TEMP TABLE')) return false
    memoryRefusals -= 1
    return true
  }

  const schedule =
    (name: string): Call =>
    (...args) => {
      const owner = realm.owner()
      if (!isProcess(owner)) return real[name]?.(...args)
      return new Promise((resolve, reject) => {
        const delay = chance.happens(0.02) ? 3_000 : 3 * chance.next()
        const statement = nameStatement(name, args[1])
        realm.schedule(delay, owner, `duckdb ${statement}`, () => {
          if (refuseMemory(name, args[1])) return reject(new Error(memoryError))
          const hasFailed = watchPower(statement)
          const settle =
            <A>(next: (value: A) => void) =>
            (value: A): void => {
              // A process that is gone hears no answer.
              if (!hasFailed()) next(value)
            }
          Promise.resolve(real[name]?.(...args)).then(
            settle((result) => {
              if (name === 'open') handles.set(result, { owner, close: () => real.close_sync?.(result) })
              resolve(result)
            }),
            settle(reject),
          )
        })
      })
    }
  const close =
    (name: string): Call =>
    (handle) => {
      const hasFailed = isProcess(realm.owner()) ? watchPower(name) : () => false
      handles.delete(handle)
      real[name]?.(handle)
      hasFailed()
    }
  module.exports = {
    ...real,
    ...Object.fromEntries(scheduledCalls.map((name) => [name, schedule(name)])),
    // With more threads, sizes of files differ from run to run.
    set_config: (config, name, value) => real.set_config?.(config, name, name === 'threads' ? '1' : value),
    connect: async (database: unknown) => {
      const owner = realm.owner()
      const connection = await real.connect?.(database)
      if (isProcess(owner)) handles.set(connection, { owner, close: () => real.disconnect_sync?.(connection) })
      return connection
    },
    close_sync: close('close_sync'),
    disconnect_sync: close('disconnect_sync'),
  }

  const realFs = { openSync: fs.openSync, closeSync: fs.closeSync, statSync: fs.statSync }
  Object.assign(fs, {
    openSync: (...args: Parameters<typeof fs.openSync>) => {
      const file = realFs.openSync(...args)
      const owner = realm.owner()
      if (isProcess(owner)) handles.set(file, { owner, close: () => realFs.closeSync(file) })
      return file
    },
    closeSync: (file: number) => {
      handles.delete(file)
      realFs.closeSync(file)
    },
    statSync: (...args: Parameters<typeof fs.statSync>) => {
      const found = realFs.statSync(...args)
      if (found === undefined || args[0] !== `${path}.wal` || largeLogs === 0 || !isProcess(realm.owner())) return found
      largeLogs -= 1
      return Object.assign(Object.create(found), { size: largeLogBytes })
    },
  })

  return {
    arm: (fault, amount, kill) => {
      switch (fault) {
        case 'power failure':
          powerFailures.push({ calls: amount, loss: loseEnd, kill })
          return
        case 'lost sectors':
          powerFailures.push({ calls: amount, loss: loseSectors, kill })
          return
        case 'full disk': {
          const { file, log } = read()
          isFull = true
          return limitFiles(String(Math.max(file?.length ?? 0, log?.length ?? 0) + amount))
        }
        case 'no memory':
          memoryRefusals = amount
          return
        case 'large log':
          largeLogs = amount
      }
    },
    leave: (owner) => {
      if (isFull) limitFiles('unlimited')
      isFull = false
      const left = [...handles].filter(([, handle]) => handle.owner === owner)
      const found = image ?? read()
      // Connections before their databases. To close a database brings its log into it, so the file is put back as it was.
      for (const [handle, { close: release }] of left.reverse()) {
        handles.delete(handle)
        release()
      }
      if (left.length > 0 || image !== undefined) {
        remove()
        if (found.file !== undefined) fs.writeFileSync(path, found.file)
        if (found.log !== undefined) fs.writeFileSync(`${path}.wal`, found.log)
      }
      image = undefined
      powerFailures.length = 0
      memoryRefusals = 0
      largeLogs = 0
      return left.length > 0
    },
    read,
    reset: (next, drawn) => {
      for (const { close: release } of [...handles.values()].reverse()) release()
      handles.clear()
      remove()
      path = next
      chance = drawn
    },
  }
}
