import { type FileHandle, open, realpath, rename, rm, stat } from 'node:fs/promises'
import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { configFailure, type Failure, pathFailure, transientFailure } from '../failure'
import type { MessageFeed } from '../input'
import { parseExactJson } from '../json/exact'
import { createParsedRow } from '../message-line'
import type { InputStream } from '../sink'
import { type DeadLetters, isFileAt, openDeadLetterFile, readLines, syncFolder } from './dead-letters'

/** A dead-letter file whose records are sent again. It stays unchanged until `replaceFile`. */
export type Resend = {
  /** The streams of the letters; empty if the file has no letters. */
  readonly streams: ReadonlyArray<InputStream>
  /** How many lines are not letters, for example because a full disk cut them off. They stay in the file. */
  readonly unreadable: number
  readonly input: (halt: AbortSignal) => MessageFeed
  /** Receives the records that are rejected again. */
  readonly deadLetters: DeadLetters
  /**
   * Reduces the file to what was rejected again, lines that are not letters, and what other runs have appended in the
   * meantime.
   */
  readonly replaceFile: TaskEither<Failure, void>
  /** Must be called at the end in any case. */
  readonly close: () => Promise<void>
}

/** The members that a line must have so that its record can be sent as its stream would have sent it. */
const Letter = t.type({
  stream: t.string,
  object: t.string,
  primary_key: t.readonlyArray(t.readonlyArray(t.string)),
  deletes: t.boolean,
  record: t.UnknownRecord,
})

type Letter = t.TypeOf<typeof Letter>

/** The letter in a line; undefined if the line is not a letter. */
const readLetter = (line: Buffer): Letter | undefined => {
  try {
    const value = parseExactJson(line.toString())
    return Letter.is(value) ? value : undefined
  } catch {
    return undefined
  }
}

const newline = 0x0a
const isBlank = (line: Buffer): boolean => line.toString().trim() === ''

/** How many lines are read before the letters that were rejected again are written. */
const linesPerFlush = 1000

/**
 * Letters of one stream with a different key, object or mode, for example from before its catalog changed, form a
 * separate stream.
 */
const createLetterStreams = () => {
  const streams = new Map<string, InputStream>()
  const ids = new Set<string>()
  const keyOf = ({ stream, object, primary_key, deletes }: Letter): string =>
    JSON.stringify([stream, object, primary_key, deletes])
  return {
    streams,
    find: (letter: Letter): InputStream | undefined => streams.get(keyOf(letter)),
    add: (letter: Letter): void => {
      if (streams.has(keyOf(letter))) return
      const { stream, object, primary_key, deletes } = letter
      let id = stream
      for (let n = 2; ids.has(id); n += 1) id = `${stream} (${n})`
      ids.add(id)
      streams.set(keyOf(letter), {
        id,
        origin: stream,
        name: stream,
        objectName: object,
        key: primary_key,
        columns: O.none,
        isDeletion: deletes,
      })
    },
  }
}

/** The open dead-letter file. `size`: of the part that is resent; `copy`: the file for what stays. */
type OpenLetters = {
  readonly file: FileHandle
  readonly target: string
  readonly copy: FileHandle
  readonly copyPath: string
  readonly found: ReturnType<typeof createLetterStreams>
  readonly unreadable: number
  readonly size: number
}

const readFrom = (file: FileHandle, start: number, end?: number): AsyncIterable<Buffer> =>
  file.createReadStream({ autoClose: false, start, ...(end === undefined ? {} : { end: end - 1 }) })

const openLetters = async (target: string): Promise<OpenLetters> => {
  const copyPath = `${target}.resend`
  const file = await open(target)
  try {
    // Left over from a killed run.
    await rm(copyPath, { force: true })
    const copy = await open(copyPath, 'ax', 0o600)
    return { file, target, copy, copyPath, ...(await scanLetters(file, copy)) }
  } catch (error) {
    await file.close()
    throw error
  }
}

/** Finds the streams of the letters. Copies the lines that are not letters, except one that is still being written. */
const scanLetters = async (
  file: FileHandle,
  copy: FileHandle,
): Promise<Pick<OpenLetters, 'found' | 'unreadable' | 'size'>> => {
  const found = createLetterStreams()
  let [unreadable, size] = [0, 0]
  for await (const line of readLines(readFrom(file, 0))) {
    const letter = readLetter(line)
    if (letter !== undefined) found.add(letter)
    else if (line.at(-1) !== newline) break
    else if (!isBlank(line)) {
      unreadable += 1
      await copy.appendFile(line)
    }
    size += line.length
  }
  return { found, unreadable, size }
}

const readInput = ({ file, found, size }: OpenLetters, objects: ReadonlyArray<string>, deadLetters: DeadLetters) =>
  async function* (halt: AbortSignal): MessageFeed {
    const used = new Set([...found.streams.values()].map(({ objectName }) => objectName))
    // Visits may refer to locations whose letters come later in the file.
    for (const object of objects.filter((each) => used.has(each))) {
      let number = 0
      for await (const bytes of readLines(readFrom(file, 0, size))) {
        if (halt.aborted) return
        number += 1
        const letter = readLetter(bytes)
        const stream = letter === undefined ? undefined : found.find(letter)
        if (letter !== undefined && stream?.objectName === object) {
          const row = createParsedRow(letter.record, { bytes, number }, 'record')
          yield E.right([{ _tag: 'Records', stream: stream.id, rows: [row], at: 0 }])
        }
        // If they cannot be written, the run reports it at its end.
        if (number % linesPerFlush === 0) await deadLetters.flush().catch(() => undefined)
      }
    }
    yield E.right([...found.streams.values()].map(({ id }) => ({ _tag: 'Finished', stream: id, extent: 'changes' })))
  }

/** Appends what was written to the file since then to the copy. Returns where it ended. */
const appendRest = async ({ file, copy }: OpenLetters, from: number): Promise<number> => {
  let end = from
  for await (const chunk of readFrom(file, from)) {
    await copy.appendFile(chunk)
    end += chunk.length
  }
  await copy.sync()
  return end
}

const replaceFile =
  (letters: OpenLetters, path: string): TaskEither<Failure, void> =>
  async () => {
    const { file, target, copy, copyPath, size } = letters
    try {
      const end = await appendRest(letters, size)
      if (!(await isFileAt(target, file)) || !(await isFileAt(copyPath, copy)))
        return E.left(
          transientFailure(
            `Another run has replaced ${path} in the meantime, so this one left it alone. ` +
              'Run again; nothing is counted twice.',
          ),
        )
      await rename(copyPath, target)
      await syncFolder(target)
      // What a run appended to the old file just before it was replaced.
      await appendRest(letters, end)
      return E.right(undefined)
    } catch (error) {
      return E.left(pathFailure(path, error))
    }
  }

const closeLetters = async ({ file, copy, copyPath }: OpenLetters): Promise<void> => {
  if (await isFileAt(copyPath, copy)) await rm(copyPath, { force: true })
  await file.close()
  await copy.close()
}

/**
 * Opens a dead-letter file to resend its records, in the order of `objects`. What stays is collected in a second file
 * beside it, which then replaces it atomically: a kill at any moment leaves one or the other.
 */
export const openResend =
  (path: string, objects: ReadonlyArray<string>): TaskEither<Failure, Resend> =>
  async () => {
    try {
      const target = await realpath(path)
      // Opening a pipe would wait for its writer.
      if (!(await stat(target)).isFile()) return E.left(configFailure(`${path} is not a file. ${remedy}`))
      const letters = await openLetters(target)
      const { found, unreadable, copyPath } = letters
      if (found.streams.size === 0 && unreadable > 0) {
        await closeLetters(letters)
        return E.left(configFailure(`No line of ${path} is a dead letter. ${remedy}`))
      }
      const deadLetters = openDeadLetterFile(copyPath)
      return E.right({
        streams: [...found.streams.values()],
        unreadable,
        input: readInput(letters, objects, deadLetters),
        deadLetters,
        replaceFile: replaceFile(letters, path),
        close: () => closeLetters(letters),
      })
    } catch (error) {
      const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
      return E.left(isMissing ? configFailure(`${path} does not exist. ${remedy}`) : pathFailure(path, error))
    }
  }

const remedy = 'Give --resend a file of dead letters.'
