import type { Chance } from './random'

/** The file and its log as they are on the disk; undefined if missing. */
export type DiskImage = { readonly file: Buffer | undefined; readonly log: Buffer | undefined }

const sector = 4096
/** What comes before the blocks of a file: a page that never changes, and two alternating headers. */
const headerBytes = 3 * sector
const blockBytes = 262_144

/**
 * What one call has made of the disk. `marked`: the log that it has removed, if it has brought it into the file.
 * `isNew`: another file has taken the place of this one.
 */
export type DiskChange = {
  readonly before: DiskImage
  readonly after: DiskImage
  readonly marked?: Buffer | undefined
  readonly isNew?: boolean
}

export const areEqual = (a: Buffer | undefined, b: Buffer | undefined): boolean =>
  a === undefined || b === undefined || a === b ? a === b : a.equals(b)

const identifierAt = 9
const identifierBytes = 16

/**
 * DuckDB starts a log with random bytes that identify its file, and writes those above 127 as two bytes. So the length
 * of a log varies by this many bytes.
 */
const randomBytes = (log: Buffer): number => {
  let extra = 0
  for (let n = 0; n < identifierBytes; n += 1) if ((log[identifierAt + n + extra] ?? 0) > 127) extra += 1
  return Math.min(extra, Math.max(0, log.length - identifierAt - identifierBytes))
}

/** The length of a log, as if its random bytes took one byte each, so that a seed has one history. */
const logLength = (log: Buffer): number => log.length - randomBytes(log)

/** Converts a place in the format of `logLength` to one in this log. */
const toLogPlace = (log: Buffer, place: number): number =>
  place <= identifierAt + identifierBytes ? place : place + randomBytes(log)

/** A place in a log, not before its first `synced` bytes. */
const drawLogPlace = (log: Buffer, synced: number, last: number, chance: Chance): number => {
  const first = synced === 0 ? 0 : synced - randomBytes(log)
  return chance.between(first, Math.max(first, last))
}

/** A log without its end, which begins anywhere after the first `synced` bytes. */
export const cutLog = (log: Buffer, synced: number, chance: Chance): Buffer =>
  log.subarray(0, toLogPlace(log, drawLogPlace(log, synced, logLength(log), chance)))

/** The bytes after, in a file that has not been made shorter yet. */
const keepLength = (before: Buffer, after: Buffer): Buffer => Buffer.concat([after, before.subarray(after.length)])

/**
 * Some units as they were and some as they are: writes that were on their way, in no order. The headers come last, so
 * they are as they were.
 */
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

/**
 * The file before or after, in which blocks that differ have lost sectors. A whole outdated block is never made: its
 * checksum would be right, so DuckDB would accept it and might crash.
 */
const tearBlocks = (before: Buffer, after: Buffer, chance: Chance): Buffer => {
  const torn = Buffer.from(chance.happens(0.5) ? before : after)
  const rate = chance.pick([0.1, 0.5])
  for (let from = headerBytes; from < torn.length; from += blockBytes) {
    const [old, written] = [before, after].map((bytes) => bytes.subarray(from, from + blockBytes)) as [Buffer, Buffer]
    if (old.equals(written) || !chance.happens(rate)) continue
    // The checksum is in the first sector.
    torn.fill(0, from, from + 512 * chance.between(1, 8))
  }
  return torn
}

/** What a power failure does to what was not synced. */
export type Loss = {
  /** The first `synced` bytes of the log were. */
  readonly tearLog: (log: Buffer, synced: number, chance: Chance) => Buffer
  /** This many bytes of the file are written together or not at all. */
  readonly unit: number
}

/** The end of the log is missing, and whole blocks. */
export const loseEnd: Loss = {
  tearLog: cutLog,
  unit: blockBytes,
}

/**
 * Any sectors are missing. DuckDB does not bear that: its log has checksums, and a checkpoint writes some blocks again
 * that are in use.
 */
export const loseSectors: Loss = {
  tearLog: (log, synced, chance) => {
    const from = drawLogPlace(log, synced, logLength(log) - 1, chance)
    const end = Math.min(logLength(log), (Math.floor(from / 512) + 1) * 512)
    return Buffer.from(log).fill(0, toLogPlace(log, from), toLogPlace(log, end))
  },
  unit: 512,
}

/**
 * What a power failure in the midst of a call leaves. DuckDB writes in this order (strace shows it), and nothing
 * overtakes an fsync: a commit writes full groups of rows into free blocks of the file, fsync, and then appends all the
 * rest to the log, fsync. A checkpoint appends a mark to the log, fsync, writes free blocks, fsync, then one of the two
 * headers, fsync, cuts free blocks off the file, and removes the log.
 */
export const failPower = (
  { before, after, marked, isNew }: DiskChange,
  { tearLog, unit }: Loss,
  chance: Chance,
): DiskImage => {
  if (isNew === true) return chance.pick([before, after])
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

/** What a power failure leaves on a disk whose fsyncs lied. */
export type DiskLoss = {
  readonly image: DiskImage
  /** The disk is as it was, or could have been, at one instant. Otherwise its contents do not belong together. */
  readonly isWhole: boolean
}

/** Resets all written files, or one of two, to their state some writes ago. */
const goBack = (changes: ReadonlyArray<DiskChange>, chance: Chance): DiskChange => {
  const depth = chance.between(0, Math.min(changes.length - 1, chance.pick([1, 4, 100])))
  return changes[changes.length - 1 - depth] as DiskChange
}

/**
 * What a power failure leaves if fsyncs returned before their writes were made. Everything is as it was some writes
 * ago; or the file and its log are, each at a different instant; or any sectors written since are missing. `changes`:
 * those that may be lost; the last one is in progress.
 */
export const loseSyncedWrites = (changes: ReadonlyArray<DiskChange>, chance: Chance): DiskLoss => {
  const [earlier, other] = [goBack(changes, chance), goBack(changes, chance)]
  const { after } = changes.at(-1) as DiskChange
  const mode = chance.pick(['all', 'all', 'apart', 'sectors'])
  if (mode === 'all') return { image: failPower(earlier, loseEnd, chance), isWhole: true }
  if (mode === 'apart') return { image: { file: earlier.after.file, log: other.after.log }, isWhole: earlier === other }
  const isNew = changes.slice(changes.indexOf(earlier)).some((change) => change.isNew)
  const [file, log] = [isNew ? Buffer.alloc(0) : earlier.before.file, after.log]
  return {
    image: {
      file: file && after.file && tearBlocks(file, after.file, chance),
      log: log && loseSectors.tearLog(log, 0, chance),
    },
    isWhole: false,
  }
}

export const describeImage = ({ file, log }: DiskImage): string =>
  `${file?.length ?? 'no file'} + ${log === undefined ? 'no log' : logLength(log)}`
