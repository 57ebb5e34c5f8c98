import { createReadStream } from 'node:fs'
import { chmod, type FileHandle, open, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/** A record that was not written, and why. */
export type DeadLetter = {
  /** The stream's namespace and name. */
  readonly stream: string
  readonly object: string
  /** The paths of the stream's primary key; a visit's id may be derived from it. */
  readonly primaryKey: ReadonlyArray<ReadonlyArray<string>>
  /** Each record of the stream deletes an object. */
  readonly deletes: boolean
  /** Identifies the record in its sink; null if it could not be read. */
  readonly key: string | null
  /** Quotes no value of the record. */
  readonly reason: string
  /** Milliseconds since 1970. */
  readonly when: number
  /** The batch it was sent with, counted from 1; null if it was never sent. */
  readonly batch: number | null
  /** The JSON text as received. */
  readonly record: Uint8Array
}

/** Where rejected records are kept. */
export type DeadLetters = {
  readonly add: (letter: DeadLetter) => void
  /** Resolves once every letter added so far is on disk. Rejects if they cannot be written. */
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
 * Syncs the folder of `path` to disk, so that a new or renamed file keeps its name after a power failure. Does nothing
 * if the system does not support it.
 */
export const syncFolder = async (path: string): Promise<void> => {
  const folder = await open(dirname(path)).catch(() => undefined)
  await folder?.sync().catch(() => undefined)
  await folder?.close()
}

/** True if the last line of a file was cut off, for example by a full disk or a killed run. */
const isCutShort = async (file: FileHandle, size: number): Promise<boolean> => {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(1), 0, 1, size - 1)
  return bytesRead === 1 && buffer[0] !== 0x0a
}

/** True if a path still refers to an open file. */
export const isFileAt = async (path: string, file: FileHandle): Promise<boolean> =>
  (await stat(path).catch(() => undefined))?.ino === (await file.stat()).ino

type DeadLetterFile = {
  readonly path: string
  /** The lines not yet written. */
  unwritten: Array<string>
  /** Resolves when all writes started so far have ended. */
  writing: Promise<void>
  /** Its permissions are set: only its owner may read it. */
  isPrivate: boolean
  /** Its name is safely on disk. */
  isNameSafe: boolean
}

/**
 * Appends JSON lines to a file that only its owner may read, because the records hold personal data. Restricts the
 * permissions of an existing file.
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
  // Another run may have replaced the file in the meantime, and the new one lacks the letters. Better twice than lost.
  if (!(await appendLetters(path, text, isFile))) await appendLetters(path, text, isFile)
  // Even for an existing file: the run that created it may have been killed before this step.
  if (isFile && !letters.isNameSafe) await syncFolder(path)
  letters.isNameSafe = true
}

/**
 * Restricts the file to its owner. Undefined if the file does not exist, false if it is a pipe or a device. On a file
 * system without permissions, the file stays as it is.
 */
const makePrivate = async (letters: DeadLetterFile): Promise<boolean | undefined> => {
  const { path, isPrivate } = letters
  const found = await stat(path).catch(() => undefined)
  if (found?.isFile() === true && !isPrivate && (found.mode & 0o077) !== 0)
    await chmod(path, 0o600).catch(() => undefined)
  letters.isPrivate = true
  return found?.isFile()
}

/** Returns true if the text ended up in the file that now has this name. */
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

/** A line of a dead-letter file; undefined if it is not a letter, for example because a full disk cut it off. */
const parseDeadLetter = (line: Buffer): Pick<DeadLetter, 'object' | 'key'> | undefined => {
  try {
    const { object, key, stream, reason } = JSON.parse(line.toString())
    const isLetter = [object, stream, reason].every((text) => typeof text === 'string')
    return isLetter ? { object, key: typeof key === 'string' ? key : null } : undefined
  } catch {
    return undefined
  }
}

/** The lines of a file with their line ends. The last one may lack it. */
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
 * Copies a dead-letter file, without the letters that match `isLeftOut`, into a file that only its owner may read. For
 * a line that was cut off, `isLeftOut` receives undefined and the text. Returns how many lines were letters, and how
 * many were left out.
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
