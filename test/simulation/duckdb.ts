import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { dirname, resolve } from 'node:path'
import {
  areEqual,
  cutLog,
  type DiskChange,
  type DiskImage,
  describeImage,
  failPower,
  type Loss,
  loseEnd,
  loseSectors,
  loseSyncedWrites,
} from './disk'
import type { Chance } from './random'
import type { Owner, Realm } from './realm'

/** What the disk, or the machine, does to the DuckDB file of a process. */
export type DiskFault = 'power failure' | 'lost sectors' | 'lost syncs' | 'full disk' | 'no memory' | 'large log'

/**
 * DuckDB in the simulation: the real one, but each call is an event, so that a process can be killed between any two. A
 * process that has ended leaves the file as it was at that instant.
 */
export type SimulatedDuckDb = {
  /**
   * `power failure`: the machine stops in a call that changes the file, after `amount` others; `kill` ends the process.
   * `lost sectors`: the same, and any sector may be missing of the data under way. `lost syncs`: the same, on a disk
   * whose fsyncs lie. `full disk`: no file gets longer than the longest has become and `amount` bytes more, or less.
   * `no memory`: `amount` statements are refused memory. `large log`: the log seems to have grown enough to be brought
   * into the file, `amount` times.
   */
  readonly arm: (fault: DiskFault, amount: number, kill: (what: string) => void) => void
  /** To be called when a process has ended: closes what it has left open. */
  readonly leave: (owner: Owner) => Promise<void>
  readonly read: () => DiskImage
  /** What the disk has lost of what was synced since this was asked last. */
  readonly takeLoss: () => SyncLoss
  /** What someone does to a damaged file: moves its log away, or starts over. */
  readonly repair: (remedy: Remedy) => void
  /** Starts another world, without a file at this path. `lies`: the disk's fsyncs return before anything is written. */
  readonly reset: (path: string, chance: Chance, lies: boolean) => void
}

/**
 * What a disk has lost of what was synced: the last writes, so that it is as it was at one instant; or parts that
 * belong to others.
 */
export type SyncLoss = 'nothing' | 'the last writes' | 'parts'

/** What the product advises for a damaged file. */
export type Remedy = 'move the log away' | 'read everything again'

type Call = (...args: unknown[]) => unknown
type Bindings = Record<string, Call>

/**
 * The calls that run statements, and so may write. The others of DuckDB's calls only prepare them, or read their
 * results.
 */
const scheduledCalls = ['open', 'query', 'execute_prepared', 'execute_prepared_streaming'] as const

/** The calls that make what holds its connection, and so the file, open. */
const preparingCalls = ['prepare', 'prepare_extracted_statement'] as const

const memoryError = 'Out of Memory Error: could not allocate block of size 256.0 KiB (61.0 MiB/61.0 MiB used)'
const largeLogBytes = 1e9
/** What `feedback forget` and `feedback compact` write next to the file. */
const copySuffixes = ['.forget', '.forget.wal', '.compact', '.compact.wal']
/** How many changes a disk with lying fsyncs may lose. */
const mostLies = 24

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

/** The first word of a statement says enough; the rest names files. */
const nameStatement = (name: string, sql: unknown): string =>
  typeof sql === 'string' && name === 'query' ? `query ${/[A-Za-z]+/.exec(sql)?.[0] ?? ''}` : name

/**
 * Makes events of the calls of DuckDB. `module`: @duckdb/node-bindings as Node has loaded it, before anything has taken
 * its exports.
 */
export const installDuckDb = (realm: Realm, module: { exports: Bindings }): SimulatedDuckDb => {
  const readFile = createFileReader()
  let path = ''
  let chance: Chance
  /** What processes hold open. */
  const handles = new Map<
    unknown,
    { readonly owner: Owner; readonly close: () => void; readonly isConnection?: true }
  >()
  const powerFailures: { calls: number; readonly loss: Loss | 'synced'; readonly kill: (what: string) => void }[] = []
  let image: DiskImage | undefined
  let lies = false
  /** What the disk may still lose, the oldest first. */
  let unsynced: ReadonlyArray<DiskChange> = []
  let loss: SyncLoss = 'nothing'
  /** The file that was replaced by another, until the folder is synced. */
  let replaced: DiskImage | undefined
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
    for (const suffix of ['', '.wal', '.wal.kept', ...copySuffixes]) fs.rmSync(path + suffix, { force: true })
    fs.rmSync(`${path}.tmp`, { force: true, recursive: true })
  }
  const limitFiles = (bytes: string): void =>
    void execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:unlimited`])

  /** What has become of the copies, without their content. */
  const describeCopies = (): string =>
    copySuffixes
      .map((suffix) => fs.statSync(path + suffix, { throwIfNoEntry: false, bigint: true }))
      .map((found) => (found === undefined ? '' : `${found.ino} ${found.size} ${found.mtimeNs}`))
      .join()
  /**
   * The power fails in a call if its time has come; `change`: what the call has made of the file and its log, if
   * anything.
   */
  const failIn = (what: string, change: DiskChange, isChanged: boolean): boolean => {
    const [failure] = powerFailures
    if (lies && isChanged) unsynced = [...unsynced.slice(1 - mostLies), change]
    if (failure === undefined) return false
    failure.calls -= 1
    if (failure.calls >= 0) return false
    powerFailures.shift()
    if (failure.loss === 'synced' && unsynced.length > 0) {
      const lost = loseSyncedWrites(unsynced, chance)
      image = lost.image
      loss = lost.isWhole ? 'the last writes' : 'parts'
    } else
      image = isChanged ? failPower(change, failure.loss === 'synced' ? loseEnd : failure.loss, chance) : change.after
    if (replaced !== undefined && chance.happens(0.5)) image = replaced
    replaced = undefined
    unsynced = []
    failure.kill(
      `the power fails in ${what}: ${describeImage(change.before)} becomes ` +
        `${describeImage(change.after)}, and is ${describeImage(image)}`,
    )
    return true
  }
  /**
   * Prepares for a power failure in the following call. Returns a function to call afterwards, which returns true if
   * the power failed.
   */
  const watchPower = (what: string): (() => boolean) => {
    if (powerFailures.length === 0 && !lies) return () => false
    const before = read()
    const copies = describeCopies()
    const kept = `${path}.wal.kept`
    fs.rmSync(kept, { force: true })
    if (before.log !== undefined) fs.linkSync(`${path}.wal`, kept)
    return () => {
      const after = read()
      const marked = readFile(kept)
      fs.rmSync(kept, { force: true })
      const isChanged = !areEqual(before.file, after.file) || !areEqual(before.log, after.log)
      return (isChanged || copies !== describeCopies()) && failIn(what, { before, after, marked }, isChanged)
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
  const prepare =
    (name: string): Call =>
    async (...args) => {
      const owner = realm.owner()
      const statement = await real[name]?.(...args)
      if (isProcess(owner)) handles.set(statement, { owner, close: () => real.destroy_prepare_sync?.(statement) })
      return statement
    }
  module.exports = {
    ...real,
    ...Object.fromEntries(scheduledCalls.map((name) => [name, schedule(name)])),
    // With more threads, sizes of files differ from run to run.
    set_config: (config, name, value) => real.set_config?.(config, name, name === 'threads' ? '1' : value),
    connect: async (database: unknown) => {
      const owner = realm.owner()
      const connection = await real.connect?.(database)
      if (isProcess(owner))
        handles.set(connection, { owner, close: () => real.disconnect_sync?.(connection), isConnection: true })
      return connection
    },
    ...Object.fromEntries(preparingCalls.map((name) => [name, prepare(name)])),
    destroy_prepare_sync: (statement) => {
      handles.delete(statement)
      real.destroy_prepare_sync?.(statement)
    },
    close_sync: close('close_sync'),
    disconnect_sync: close('disconnect_sync'),
  }

  const realFs = {
    openSync: fs.openSync,
    closeSync: fs.closeSync,
    statSync: fs.statSync,
    renameSync: fs.renameSync,
    fsyncSync: fs.fsyncSync,
  }
  /** What the files lead to that processes have opened. */
  const openedPaths = new Map<number, string>()
  Object.assign(fs, {
    openSync: (...args: Parameters<typeof fs.openSync>) => {
      const file = realFs.openSync(...args)
      const owner = realm.owner()
      if (isProcess(owner)) handles.set(file, { owner, close: () => realFs.closeSync(file) })
      openedPaths.set(file, String(args[0]))
      return file
    },
    fsyncSync: (file: number) => {
      realFs.fsyncSync(file)
      if (openedPaths.get(file) === dirname(resolve(path))) replaced = undefined
    },
    renameSync: (from: string, to: string) => {
      const isOurs = isProcess(realm.owner()) && resolve(to) === resolve(path)
      const before = isOurs ? read() : undefined
      realFs.renameSync(from, to)
      if (before === undefined) return
      if (!failIn('rename', { before, after: read(), isNew: true }, true)) replaced = before
    },
    closeSync: (file: number) => {
      handles.delete(file)
      openedPaths.delete(file)
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
        case 'lost syncs':
          powerFailures.push({ calls: amount, loss: 'synced', kill })
          return
        case 'full disk': {
          const { file, log } = read()
          isFull = true
          return limitFiles(String(Math.max(0, Math.max(file?.length ?? 0, log?.length ?? 0) + amount)))
        }
        case 'no memory':
          memoryRefusals = amount
          return
        case 'large log':
          largeLogs = amount
      }
    },
    leave: async (owner) => {
      if (isFull) limitFiles('unlimited')
      isFull = false
      const left = [...handles].filter(([, handle]) => handle.owner === owner)
      const found = image ?? read()
      // A result that is still being read holds its connection open, until that begins another statement.
      for (const [handle, { isConnection }] of left)
        if (isConnection) await Promise.resolve(real.query?.(handle, 'SELECT 1')).catch(() => undefined)
      // Statements before their connections, and these before their databases. What is closed only later, when its
      // memory is collected, would remove the log of the next process. To close a database brings its log into it, so
      // the file is put back as it was.
      for (const [handle, { close: release }] of left.reverse()) {
        handles.delete(handle)
        release()
      }
      if (left.length > 0 || image !== undefined) {
        for (const suffix of ['', '.wal', '.wal.kept']) fs.rmSync(path + suffix, { force: true })
        fs.rmSync(`${path}.tmp`, { force: true, recursive: true })
        if (found.file !== undefined) fs.writeFileSync(path, found.file)
        if (found.log !== undefined) fs.writeFileSync(`${path}.wal`, found.log)
      }
      if (image !== undefined)
        for (const copy of copySuffixes.map((suffix) => path + suffix).filter(fs.existsSync)) {
          const isLog = copy.endsWith('.wal')
          const length = isLog
            ? cutLog(fs.readFileSync(copy), 0, chance).length
            : chance.between(0, fs.statSync(copy).size)
          fs.truncateSync(copy, length)
        }
      image = undefined
      powerFailures.length = 0
      memoryRefusals = 0
      largeLogs = 0
    },
    read,
    takeLoss: () => {
      const taken = loss
      loss = 'nothing'
      return taken
    },
    repair: (remedy) => {
      fs.rmSync(`${path}.wal`, { force: true })
      if (remedy === 'read everything again') fs.rmSync(path)
      unsynced = []
    },
    reset: (next, drawn, isLying) => {
      for (const { close: release } of [...handles.values()].reverse()) release()
      handles.clear()
      remove()
      path = next
      chance = drawn
      lies = isLying
      unsynced = []
      replaced = undefined
      openedPaths.clear()
      loss = 'nothing'
    },
  }
}
