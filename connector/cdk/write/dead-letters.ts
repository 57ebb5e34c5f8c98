import { appendFile } from 'node:fs/promises'

/** A record that will not be written, and why. */
export type DeadLetter = {
  readonly stream: string
  readonly object: string
  /** What the record is known by in its sink; null where that could not be read. */
  readonly key: string | null
  /** Quotes no value of the record. */
  readonly reason: string
  /** Milliseconds since 1970. */
  readonly when: number
  /** The batch it was sent with, counted from 1; null: it was never sent. */
  readonly batch: number | null
  /** JSON text as it came. */
  readonly record: Uint8Array
}

/** Where rejected records are kept. */
export type DeadLetters = {
  readonly add: (letter: DeadLetter) => void
  /** Settles once every letter added so far is on disk; rejects where it cannot be. */
  readonly flush: () => Promise<void>
}

/** Nowhere. */
export const noDeadLetters: DeadLetters = { add: () => undefined, flush: async () => undefined }

const formatDeadLetter = ({ record, when, ...letter }: DeadLetter): string => {
  const said = JSON.stringify({ ...letter, when: new Date(when).toISOString() })
  const text = Buffer.from(record.buffer, record.byteOffset, record.byteLength).toString('utf8')
  return `${said.slice(0, -1)},"record":${text}}\n`
}

/** JSON lines at the end of a file that only its owner may read, since they hold what the records say of people. */
export const openDeadLetterFile = (path: string): DeadLetters => {
  let waiting: Array<string> = []
  let writing: Promise<void> = Promise.resolve()

  const write = async (): Promise<void> => {
    if (waiting.length === 0) return
    const text = waiting.join('')
    waiting = []
    await appendFile(path, text, { mode: 0o600, flush: true })
  }
  return {
    add: (letter) => {
      waiting.push(formatDeadLetter(letter))
    },
    flush: () => {
      writing = writing.then(write)
      return writing
    },
  }
}
