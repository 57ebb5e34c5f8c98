import { createReadStream } from 'node:fs'
import { chmod, type FileHandle, open, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/** A record that is not written, and why. */
export type DeadLetter = {
  /** The stream's namespace and name. */
  readonly stream: string
  readonly object: string
  /** The paths of the stream's primary key, of which a visit's id may be derived. */
  readonly primaryKey: ReadonlyArray<ReadonlyArray<string>>
  /** Whether each record of the stream means that an object is to be deleted. */
  readonly deletes: boolean
  /** Identifies the record in its sink; null if it could not be read. */
  readonly key: string | null
  /** Quotes no value of the record. */
  readonly reason: string
  /** Milliseconds since 1970. */
  readonly when: number
  /** The batch it was sent with, counted from 1; null if it was never sent. */
  readonly batch: number | null
  /** JSON text as it came. */
  readonly record: Uint8Array
}

/** Where rejected records are kept. */
export type DeadLetters = {
  readonly add: (letter: DeadLetter) => void
  /** Resolves once every letter added so far is on disk; rejects if they cannot be written. */
  readonly flush: () => Promise<void>
}

/** Keeps nothing. */
export const noDeadLetters: DeadLetters = { add: () => undefined, flush: async () => undefined }

const formatDeadLetter = ({ record, when, stream, object, primaryKey, deletes, ...rejection }: DeadLetter): string => {
  const from = { stream, object, primary_key: primaryKey, deletes }
  const members = JSON.stringify({ ...from, ...rejection, when: new Date(when).toISOString() })
  const recordText = Buffer.from(record.buffer, record.byteOffset, record.byteLength).toString('utf8')
  return `${members.slice(0, -1)},"record":${recordText === '' ? 'null' : recordText}}\n`
}

/**
 * Brings the names of the files in the folder of `path` to the disk, so that a file that is new or was renamed keeps
 * its name after a power failure. Does nothing where the system cannot.
 */
export const syncFolder = async (path: string): Promise<void> => {
  const folder = await open(dirname(path)).catch(() => undefined)
  await folder?.sync().catch(() => undefined)
  await folder?.close()
}

/** Whether the last line of a file was cut short, as a full disk or a killed run leaves it. */
const isCutShort = async (file: FileHandle, size: number): Promise<boolean> => {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(1), 0, 1, size - 1)
  return bytesRead === 1 && buffer[0] !== 0x0a
}

/** Whether a path still leads to an open file. */
export const isFileAt = async (path: string, file: FileHandle): Promise<boolean> =>
  (await stat(path).catch(() => undefined))?.ino === (await file.stat()).ino

type DeadLetterFile = {
  readonly path: string
  /** The lines that are not written yet. */
  unwritten: Array<string>
  /** The end of all writes that were started. */
  writing: Promise<void>
  /** Only its owner may read it. */
  isPrivate: boolean
  /** Its name is on the disk. */
  isNameSafe: boolean
}

/**
 * Appends JSON lines to a file that only its owner may read, since the records hold data of people; one that exists is
 * made so.
 */
export const openDeadLetterFile = (path: string): DeadLetters => {
  const letters: DeadLetterFile = {
    path,
    unwritten: [],
    writing: Promise.resolve(),
    isPrivate: false,
    isNameSafe: false,
  }
  return {
    add: (letter) => {
      letters.unwritten.push(formatDeadLetter(letter))
    },
    flush: () => {
      letters.writing = letters.writing.then(() => writeLetters(letters))
      return letters.writing
    },
  }
}

const writeLetters = async (letters: DeadLetterFile): Promise<void> => {
  const { path } = letters
  if (letters.unwritten.length === 0) {
    if (!letters.isPrivate) await makePrivate(letters)
    return
  }
  const text = letters.unwritten.join('')
  letters.unwritten = []
  const isFile = (await makePrivate(letters)) ?? true
  // Another run may have put a new file in its place in between, which lacks the letters: better twice than lost.
  if (!(await appendLetters(path, text, isFile))) await appendLetters(path, text, isFile)
  // Also where the file was there before: the run that created it may have been killed in between.
  if (isFile && !letters.isNameSafe) await syncFolder(path)
  letters.isNameSafe = true
}

/**
 * Undefined: there is no such file; false: it is a pipe or a device. A file system without permissions leaves the file
 * as it is.
 */
const makePrivate = async (letters: DeadLetterFile): Promise<boolean | undefined> => {
  const { path, isPrivate } = letters
  const found = await stat(path).catch(() => undefined)
  if (found?.isFile() === true && !isPrivate && (found.mode & 0o077) !== 0)
    await chmod(path, 0o600).catch(() => undefined)
  letters.isPrivate = true
  return found?.isFile()
}

/** Returns whether the text is in the file that has this name by now. */
const appendLetters = async (path: string, text: string, isFile: boolean): Promise<boolean> => {
  const file = await open(path, isFile ? 'a+' : 'a', 0o600)
  try {
    const { size } = await file.stat()
    await file.appendFile(isFile && size > 0 && (await isCutShort(file, size)) ? `\n${text}` : text)
    if (!isFile) return true
    await file.sync()
    return await isFileAt(path, file)
  } finally {
    await file.close()
  }
}

/** A line of a file of dead letters; undefined for one that is none, as a full disk cuts it short. */
const parseDeadLetter = (line: Buffer): Pick<DeadLetter, 'object' | 'key'> | undefined => {
  try {
    const { object, key, stream, reason } = JSON.parse(line.toString())
    const isLetter = [object, stream, reason].every((text) => typeof text === 'string')
    return isLetter ? { object, key: typeof key === 'string' ? key : null } : undefined
  } catch {
    return undefined
  }
}

/** The lines of a file with their line ends; the last one may lack it. */
export async function* readLines(chunks: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of chunks) {
    rest = Buffer.concat([rest, chunk])
    let start = 0
    for (let end = rest.indexOf(0x0a); end >= 0; end = rest.indexOf(0x0a, start)) {
      yield rest.subarray(start, end + 1)
      start = end + 1
    }
    rest = rest.subarray(start)
  }
  if (rest.length > 0) yield rest
}

/**
 * Copies a file of dead letters without those that `isLeftOut` names, into one that only its owner may read. A line
 * that was cut short comes as undefined with its text. Returns how many lines were letters, and how many were left out.
 */
export const copyDeadLetters = async (
  from: string,
  to: string,
  isLeftOut: (letter: Pick<DeadLetter, 'object' | 'key'> | undefined, text: string) => boolean,
): Promise<{ readonly letters: number; readonly leftOut: number }> => {
  const copy = await open(to, 'w', 0o600)
  let [letters, leftOut] = [0, 0]
  try {
    for await (const line of readLines(createReadStream(from))) {
      const letter = parseDeadLetter(line)
      if (letter !== undefined) letters += 1
      if (isLeftOut(letter, line.toString())) leftOut += 1
      else await copy.appendFile(line)
    }
  } finally {
    await copy.close()
  }
  return { letters, leftOut }
}
