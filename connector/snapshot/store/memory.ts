import { readFileSync } from 'node:fs'
import { totalmem } from 'node:os'

const sizeUnits: Readonly<Record<string, number>> = {
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
}

/** With less, DuckDB cannot open a file. */
export const leastMemory = 16e6
const mostMemory = 1e15

/** The bytes of a size such as 512MB or 1GiB; undefined for anything else, and below `leastMemory`. */
export const parseMemorySize = (text: string): number | undefined => {
  const [, amount, unit = ''] = /^(\d{1,9}(?:\.\d{1,3})?) ?([mgt]i?b)$/i.exec(text.trim()) ?? []
  const bytes = Math.floor(Number(amount) * (sizeUnits[unit.toLowerCase()] ?? Number.NaN))
  return bytes >= leastMemory && bytes <= mostMemory ? bytes : undefined
}

/** A size in the form that `parseMemorySize` takes, rounded down. */
export const formatMemorySize = (bytes: number): string => {
  const [unit, size] = (['TiB', 'TB', 'GiB', 'GB', 'MiB', 'MB'] as const)
    .map((name) => [name, sizeUnits[name.toLowerCase()] ?? 1] as const)
    .find(([, each]) => bytes >= each && bytes % each === 0) ?? ['MB', 1e6]
  return `${Math.floor(bytes / size)}${unit}`
}

type ReadText = (path: string) => string

/** The texts of the files that exist. */
const readExisting = (read: ReadText, paths: ReadonlyArray<string>): ReadonlyArray<string> =>
  paths.flatMap((path) => {
    try {
      return [read(path)]
    } catch {
      return []
    }
  })

/** A path and its parents. A parent's limit also applies, and a container sees its own group as the root. */
const listParents = (path: string): ReadonlyArray<string> => {
  const steps = path.split('/').filter((step) => step !== '')
  return Array.from({ length: steps.length + 1 }, (_, n) => ['', ...steps.slice(0, steps.length - n)].join('/'))
}

/**
 * The memory that this process may use: the machine's, or less if a control group (version 1 or 2) limits it; bytes.
 */
export const readMachineMemory = (
  read: ReadText = (path) => readFileSync(path, 'utf8'),
  total: number = totalmem(),
): number => {
  const groups = readExisting(read, ['/proc/self/cgroup']).flatMap((text) => text.split('\n'))
  const files = groups.flatMap((group) => {
    const [id, controllers = '', ...path] = group.split(':')
    if (id === '0' && controllers === '')
      return listParents(path.join(':')).map((parent) => `/sys/fs/cgroup${parent}/memory.max`)
    return controllers.split(',').includes('memory')
      ? listParents(path.join(':')).map((parent) => `/sys/fs/cgroup/memory${parent}/memory.limit_in_bytes`)
      : []
  })
  const limits = readExisting(read, files).map((text) => Number(text.trim() || Number.NaN))
  return Math.min(total, ...limits.filter((limit) => limit > 0))
}

/** DuckDB's default memory limit: a quarter of the memory, at most 1 GiB. */
export const chooseMemoryLimit = (machineMemory: number = readMachineMemory()): number =>
  Math.max(leastMemory, Math.min(2 ** 30, Math.floor(machineMemory / 4)))

/**
 * The steps of DuckDB's memory limit, in bytes; each is used once the previous one was too little. DuckDB fills its
 * memory with pages of the file, so the steps keep the peak near what the work needs, which grows with the file.
 * `least`: the first step; `growth`: the factor between steps.
 */
export const listMemorySteps = (least: number, limit: number, growth = 4): ReadonlyArray<number> =>
  least >= limit ? [limit] : [least, ...listMemorySteps(Math.floor(least * growth), limit, growth)]

/**
 * DuckDB needed more memory than its limit, or could not create its spill folder. A failed checkpoint only reports the
 * block that it could not allocate.
 */
export const isOutOfMemory = (error: unknown): boolean =>
  error instanceof Error &&
  (/out of memory|failed to (?:allocate|pin) (?:block|data)|could not allocate block/i.test(error.message) ||
    spillFolderPattern.test(error.message))

/** The memory of one DuckDB instance. */
export type MemorySetter = {
  /** Runs work that changes nothing if it rejects, and reruns it with more memory if that was too little. */
  readonly run: <A>(work: () => Promise<A>) => Promise<A>
  /** Immediately gives DuckDB all memory that it may use. */
  readonly giveAll: () => Promise<void>
  /** Runs work once with all memory that DuckDB may use, and takes the rest back. */
  readonly runWithAll: (work: () => Promise<void>) => Promise<void>
  /** Frees memory without raising the limit. Resolves to true if it did. */
  readonly release: () => Promise<boolean>
}

/**
 * Runs work with the first of these limits, and again with the next one if that was too little. Later work starts with
 * the limit that was enough. `set`: sets DuckDB's limit in bytes. `current`: its current limit. `release`: frees memory
 * before a step is taken; resolves to true if it did.
 */
export const createMemorySetter = (
  set: (bytes: number) => Promise<void>,
  limits: ReadonlyArray<number>,
  current?: number,
  release: () => Promise<boolean> = async () => false,
): MemorySetter => {
  let level = 0
  let given = current
  const give = async (): Promise<void> => {
    const limit = limits[level]
    if (limit === undefined || limit === given) return
    given = limit
    await set(limit)
  }
  return {
    release,
    run: async (work) => {
      for (;;) {
        const tried = level
        try {
          await give()
          return await work()
        } catch (error) {
          if (!isOutOfMemory(error)) throw error
          if (await release()) continue
          if (tried + 1 >= limits.length) throw error
          // Other work on the file may have taken the step meanwhile.
          if (level === tried) level += 1
        }
      }
    },
    giveAll: () => {
      level = Math.max(0, limits.length - 1)
      return give()
    },
    runWithAll: async (work) => {
      const before = level
      level = Math.max(0, limits.length - 1)
      await give()
      await work()
      level = before
      // DuckDB keeps what it cannot return.
      await give().catch(() => undefined)
    },
  }
}

/** DuckDB's message if it cannot create the folder next to the file for what does not fit into memory. */
export const spillFolderPattern = /Failed to create directory "?[^"]*\.tmp"?|Cannot open file "[^"]*\.tmp\//
