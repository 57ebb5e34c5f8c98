import { chmod, type FileHandle, open, stat } from 'node:fs/promises'

/** A record that is not written, and why. */
export type DeadLetter = {
  readonly stream: string
  readonly object: string
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

const formatDeadLetter = ({ record, when, ...letter }: DeadLetter): string => {
  const members = JSON.stringify({ ...letter, when: new Date(when).toISOString() })
  const recordText = Buffer.from(record.buffer, record.byteOffset, record.byteLength).toString('utf8')
  return `${members.slice(0, -1)},"record":${recordText === '' ? 'null' : recordText}}\n`
}

/** Whether the last line of a file was cut short, as a full disk or a killed run leaves it. */
const isCutShort = async (file: FileHandle, size: number): Promise<boolean> => {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(1), 0, 1, size - 1)
  return bytesRead === 1 && buffer[0] !== 0x0a
}

/** Appends JSON lines to a file that only its owner may read, since the records hold data of people; one that exists is made so. */
export const openDeadLetterFile = (path: string): DeadLetters => {
  let unwritten: Array<string> = []
  let writing: Promise<void> = Promise.resolve()
  let isPrivate = false

  /** Undefined: there is no such file; false: it is a pipe or a device. A file system without permissions leaves the file as it is. */
  const makePrivate = async (): Promise<boolean | undefined> => {
    const found = await stat(path).catch(() => undefined)
    if (found?.isFile() === true && !isPrivate && (found.mode & 0o077) !== 0)
      await chmod(path, 0o600).catch(() => undefined)
    isPrivate = true
    return found?.isFile()
  }
  const write = async (): Promise<void> => {
    if (unwritten.length === 0) {
      if (!isPrivate) await makePrivate()
      return
    }
    const text = unwritten.join('')
    unwritten = []
    const isFile = (await makePrivate()) ?? true
    const file = await open(path, isFile ? 'a+' : 'a', 0o600)
    try {
      const { size } = await file.stat()
      await file.appendFile(isFile && size > 0 && (await isCutShort(file, size)) ? `\n${text}` : text)
      if (isFile) await file.sync()
    } finally {
      await file.close()
    }
  }
  return {
    add: (letter) => {
      unwritten.push(formatDeadLetter(letter))
    },
    flush: () => {
      writing = writing.then(write)
      return writing
    },
  }
}
