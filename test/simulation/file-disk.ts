import promises from 'node:fs/promises'
import type { Chance } from './random'
import type { Owner, Realm } from './realm'

/**
 * What the disk, or the machine, does to the files of a process. torn write: SIGKILL in the midst of a write. power
 * failure: what was not synced is lost, whole or in part. lying sync: the same, and what was synced since it was armed
 * is lost too. full disk: a write is cut short and fails.
 */
export const diskFaults = ['torn write', 'power failure', 'lying sync', 'full disk'] as const
export type FileFault = (typeof diskFaults)[number]

/**
 * A disk for a few files, and for those that replace them. Each call is several events, so that a process can be killed
 * between any two.
 */
export type SimulatedDisk = {
  /** `amount`: of events before the fault, or of bytes that are left. `kill` ends the process. */
  readonly arm: (fault: FileFault, amount: number, kill: (what: string) => void) => void
  /** To be called when a process has ended: a power failure that is still to come comes now, and room is made. */
  readonly leave: () => void
  readonly read: (path: string) => string | undefined
  /** What would be left of a file, at the least, if the power failed now. */
  readonly readSynced: (path: string) => string | undefined
  /** Another text of a file, or no file. */
  readonly write: (path: string, text: string | undefined) => void
  /** The power has failed; something that was synced is lost. */
  readonly hasFailed: () => boolean
  readonly hasLied: () => boolean
  /** It reports a sync that it has not done. */
  readonly isLying: () => boolean
  /** Begins another world, in which the disk has these files; none is there yet. */
  readonly reset: (paths: ReadonlyArray<string>, chance: Chance) => void
}

type Inode = { cached: Buffer; synced: Buffer }
type Names = ReadonlyMap<string, Inode>
type Data = { readonly flush?: boolean }

const sector = 512
const none = Buffer.alloc(0)

const errorOf = (code: string): Error => Object.assign(new Error(`${code}: the simulated disk`), { code })

/**
 * What is left of a file of which this much was synced: nothing of what came later, its beginning, or parts of it with
 * zeros in between.
 */
const loseUnsynced = ({ cached, synced }: Inode, chance: Chance): Buffer => {
  const isLonger = cached.subarray(0, synced.length).equals(synced)
  if (!isLonger) return chance.pick([synced, none, cached.subarray(0, chance.between(0, cached.length))])
  const end = chance.between(synced.length, cached.length)
  const left = Buffer.from(cached.subarray(0, end))
  if (chance.happens(0.5))
    for (let from = synced.length; from < end; from = (Math.floor(from / sector) + 1) * sector)
      if (chance.happens(0.3)) left.fill(0, from, Math.min(end, (Math.floor(from / sector) + 1) * sector))
  return left
}

/**
 * Takes over the calls for these paths, the same with `.new`, and the folder that they are in. Others go to the real
 * disk.
 */
export const installDisk = (realm: Realm): SimulatedDisk => {
  let paths: ReadonlyArray<string> = []
  let chance: Chance
  let names: Names = new Map()
  let syncedNames: Names = new Map()
  /** The names after each change that was not synced. */
  let pendingNames: Names[] = []
  let armed: { readonly fault: FileFault; left: number; readonly kill: (what: string) => void } | undefined
  let hasIgnoredSync = false
  let hasFailed = false
  let hasLied = false

  const isOurs = (name: unknown): name is string => paths.some((path) => name === path || name === `${path}.new`)
  const setNames = (next: Names): void => {
    names = next
    pendingNames.push(next)
  }
  const failPower = (): void => {
    const images = [...new Set([...names.values(), ...syncedNames.values()])]
    hasFailed = true
    hasLied ||= hasIgnoredSync
    for (const inode of images) {
      inode.cached = loseUnsynced(inode, chance)
      inode.synced = inode.cached
    }
    names = chance.pick([syncedNames, ...pendingNames])
    syncedNames = names
    pendingNames = []
  }
  /** Ends the process where this event is the one. */
  const endsHere = (): boolean => {
    if (armed === undefined || armed.fault === 'torn write' || armed.fault === 'full disk') return false
    armed.left -= 1
    if (armed.left >= 0) return false
    const { fault, kill } = armed
    armed = undefined
    failPower()
    kill(`${fault} in a call of the disk`)
    return true
  }
  const schedule = <A>(kind: string, owner: Owner, work: () => A): Promise<A> =>
    new Promise((resolve, reject) => {
      realm.schedule(0, owner, `disk ${kind}`, () => {
        if (endsHere()) return
        try {
          const result = work()
          if (owner.isAlive) resolve(result)
        } catch (error) {
          reject(error)
        }
      })
    })
  const create = (name: string): Inode => {
    const inode = { cached: none, synced: none }
    setNames(new Map([...names, [name, inode]]))
    return inode
  }
  const writeBytes = (inode: Inode, bytes: Buffer): void => {
    const isTorn = armed?.fault === 'torn write'
    const room = armed?.fault === 'full disk' ? armed.left : bytes.length
    const size = isTorn ? chance.between(0, bytes.length) : Math.min(room, bytes.length)
    inode.cached = Buffer.concat([inode.cached, bytes.subarray(0, size)])
    if (armed?.fault === 'full disk') armed.left -= size
    if (isTorn) {
      const kill = armed?.kill
      armed = undefined
      return void kill?.('torn write')
    }
    if (size === bytes.length) return
    // Others may make room.
    if (chance.happens(0.5)) armed = undefined
    throw errorOf('ENOSPC')
  }
  const sync = (work: () => void): void => {
    if (armed?.fault === 'lying sync') hasIgnoredSync = true
    else work()
  }
  const openFile = (name: string, isTruncated: boolean) => {
    const owner = realm.owner()
    return schedule('open', owner, () => {
      const inode = names.get(name) ?? create(name)
      if (isTruncated) inode.cached = none
      return {
        stat: async () => ({ size: inode.cached.length }),
        read: async (buffer: Buffer, offset: number, length: number, position: number) => {
          const bytesRead = inode.cached.copy(buffer, offset, position, position + length)
          return { buffer, bytesRead }
        },
        appendFile: (text: string) => schedule('write', owner, () => writeBytes(inode, Buffer.from(text))),
        sync: () =>
          schedule('sync', owner, () =>
            sync(() => {
              inode.synced = inode.cached
            }),
          ),
        close: async () => undefined,
      }
    })
  }
  const put = async (name: string, text: string, { flush }: Data, isAppended: boolean): Promise<void> => {
    const file = await openFile(name, !isAppended)
    await file.appendFile(text)
    if (flush === true) await file.sync()
  }

  const real = { ...promises }
  Object.assign(promises, {
    readFile: (name: string, ...rest: [never]) =>
      isOurs(name)
        ? schedule('read', realm.owner(), () => {
            const found = names.get(name)
            if (found === undefined) throw errorOf('ENOENT')
            return found.cached.toString()
          })
        : real.readFile(name, ...rest),
    writeFile: (name: string, text: string, ...rest: [never]) =>
      isOurs(name) ? put(name, text, rest[0] ?? {}, false) : real.writeFile(name, text, ...rest),
    appendFile: (name: string, text: string, ...rest: [never]) =>
      isOurs(name) ? put(name, text, rest[0] ?? {}, true) : real.appendFile(name, text, ...rest),
    rename: (from: string, to: string) =>
      isOurs(from)
        ? schedule('rename', realm.owner(), () => {
            const found = names.get(from)
            if (found === undefined) throw errorOf('ENOENT')
            setNames(new Map([...[...names].filter(([name]) => name !== from && name !== to), [to, found]]))
          })
        : real.rename(from, to),
    open: async (name: string, ...rest: [never]): Promise<unknown> => {
      if (isOurs(name)) return openFile(name, false)
      if (paths.length === 0 || name !== '.') return real.open(name, ...rest)
      return {
        sync: () =>
          schedule('sync', realm.owner(), () =>
            sync(() => {
              syncedNames = names
              pendingNames = []
            }),
          ),
        close: async () => undefined,
      }
    },
    stat: async (name: string, ...rest: [never]): Promise<unknown> => {
      if (!isOurs(name)) return real.stat(name, ...rest)
      if (!names.has(name)) throw errorOf('ENOENT')
      return { isFile: () => true, mode: 0o600 }
    },
  })
  return {
    arm: (fault, amount, kill) => {
      armed = { fault, left: amount, kill }
    },
    leave: () => {
      if (armed?.fault === 'power failure' || armed?.fault === 'lying sync') failPower()
      armed = undefined
      hasIgnoredSync = false
    },
    read: (path) => names.get(path)?.cached.toString(),
    readSynced: (path) => syncedNames.get(path)?.synced.toString(),
    write: (path, text) => {
      const bytes = Buffer.from(text ?? '')
      const others = [...names].filter(([name]) => name !== path)
      names = new Map(text === undefined ? others : [...others, [path, { cached: bytes, synced: bytes }]])
      syncedNames = names
      pendingNames = []
    },
    hasFailed: () => hasFailed,
    hasLied: () => hasLied,
    isLying: () => hasIgnoredSync,
    reset: (next, own) => {
      paths = next
      chance = own
      armed = undefined
      hasIgnoredSync = false
      hasFailed = false
      hasLied = false
      names = new Map()
      syncedNames = names
      pendingNames = []
    },
  }
}
