import { appendFile } from 'node:fs/promises'

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
  return `${members.slice(0, -1)},"record":${recordText}}\n`
}

/** Appends JSON lines to a file that only its owner may read, since the records hold data of people. */
export const openDeadLetterFile = (path: string): DeadLetters => {
  let unwritten: Array<string> = []
  let writing: Promise<void> = Promise.resolve()

  const write = async (): Promise<void> => {
    if (unwritten.length === 0) return
    const text = unwritten.join('')
    unwritten = []
    await appendFile(path, text, { mode: 0o600, flush: true })
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
