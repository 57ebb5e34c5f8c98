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

/** The bytes of a size such as 512MB or 1GiB; undefined for anything else, and for less than `leastMemory`. */
export const parseMemorySize = (text: string): number | undefined => {
  const [, amount, unit = ''] = /^(\d{1,9}(?:\.\d{1,3})?) ?([mgt]i?b)$/i.exec(text.trim()) ?? []
  const bytes = Math.floor(Number(amount) * (sizeUnits[unit.toLowerCase()] ?? Number.NaN))
  return bytes >= leastMemory && bytes <= mostMemory ? bytes : undefined
}

/** A size that `parseMemorySize` takes, rounded down. */
export const formatMemorySize = (bytes: number): string => {
  const [unit, size] = (['TiB', 'TB', 'GiB', 'GB', 'MiB', 'MB'] as const)
    .map((name) => [name, sizeUnits[name.toLowerCase()] ?? 1] as const)
    .find(([, each]) => bytes >= each && bytes % each === 0) ?? ['MB', 1e6]
  return `${Math.floor(bytes / size)}${unit}`
}

type ReadText = (path: string) => string

/** The texts of those files that there are. */
const readExisting = (read: ReadText, paths: ReadonlyArray<string>): ReadonlyArray<string> =>
  paths.flatMap((path) => {
    try {
      return [read(path)]
    } catch {
      return []
    }
  })

/** A path and its parents: a limit of a parent holds too, and a container sees its own group as the root. */
const listParents = (path: string): ReadonlyArray<string> => {
  const steps = path.split('/').filter((step) => step !== '')
  return Array.from({ length: steps.length + 1 }, (_, n) => ['', ...steps.slice(0, steps.length - n)].join('/'))
}

/**
 * The memory that this process may use: the machine's, or less where a control group of version 1 or 2 limits it; in
 * bytes.
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

/** What DuckDB may use where nobody says it: a quarter of the memory there is, at most 1 GiB. */
export const chooseMemoryLimit = (machineMemory: number = readMachineMemory()): number =>
  Math.max(leastMemory, Math.min(2 ** 30, Math.floor(machineMemory / 4)))

/**
 * What DuckDB may use while it works, in bytes: each once the one before was too little. It fills what it may use with
 * pages of the file, so the steps keep the peak near what the work needs, which grows with the file. `least`: the first
 * step; `growth`: how many times the one before each other is.
 */
export const listMemorySteps = (least: number, limit: number, growth = 4): ReadonlyArray<number> =>
  least >= limit ? [limit] : [least, ...listMemorySteps(Math.floor(least * growth), limit, growth)]

/**
 * Whether DuckDB needed more memory than its limit, or the folder for the rest of it. A checkpoint that fails tells it
 * only by the block that it could not have.
 */
export const isOutOfMemory = (error: unknown): boolean =>
  error instanceof Error &&
  (/out of memory|failed to (?:allocate|pin) (?:block|data)|could not allocate block/i.test(error.message) ||
    spillFolderPattern.test(error.message))

/** The memory of one DuckDB instance. */
export type MemorySetter = {
  /** Runs work that changes nothing when it rejects: again with more memory where that was too little. */
  readonly run: <A>(work: () => Promise<A>) => Promise<A>
  /** Gives DuckDB at once all that it may use. */
  readonly giveAll: () => Promise<void>
  /** Runs work once with all that DuckDB may use, and takes the rest back. */
  readonly runWithAll: (work: () => Promise<void>) => Promise<void>
  /** Frees memory without a step; says whether it did. */
  readonly release: () => Promise<boolean>
}

/**
 * Runs work with the first of these limits, and again with the next where that was too little. Later work begins with
 * the limit that was enough. `set`: gives DuckDB so many bytes. `current`: what it has. `release`: frees memory before
 * a step is taken; says whether it did.
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
      // DuckDB keeps what it cannot give back.
      await give().catch(() => undefined)
    },
  }
}

/** What DuckDB says where the folder beside the file cannot be made that takes what does not fit into memory. */
export const spillFolderPattern = /Failed to create directory "?[^"]*\.tmp"?|Cannot open file "[^"]*\.tmp\//
