import { isUtf8 } from 'node:buffer'
import { readFile } from 'node:fs/promises'
import * as E from 'fp-ts/Either'
import type { TaskEither } from 'fp-ts/TaskEither'
import { configFailure, type Failure } from '../failure'
import { parseJson } from '../json/parse'

const fileErrorReasons: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  EACCES: 'may not be read',
  EISDIR: 'is a folder',
}

/** Reads a text file. `what` is its name in the failure, such as "config". */
export const readTextFile =
  (what: string, path: string): TaskEither<Failure, string> =>
  async () => {
    try {
      const bytes = await readFile(path)
      return isUtf8(bytes)
        ? E.right(bytes.toString('utf8').replace(/^\uFEFF/, ''))
        : E.left(configFailure(`The ${what} file ${path} is not UTF-8. Save it as UTF-8.`))
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? ''
      // The path is not quoted, because it may hold a token.
      if (/^\s*[{[]/.test(path))
        return E.left(configFailure(`--${what} needs the path of a file, but got JSON. Save the JSON to a file.`))
      return E.left(configFailure(`The ${what} file ${path} ${fileErrorReasons[code] ?? `cannot be read (${code})`}.`))
    }
  }

/** A JSON file. */
export const readJsonFile =
  (what: string, path: string): TaskEither<Failure, unknown> =>
  async () => {
    const text = await readTextFile(what, path)()
    if (E.isLeft(text)) return text
    return E.mapLeft((problem: string) => configFailure(`The ${what} file ${path} ${problem}.`))(parseJson(text.right))
  }

/** Reads a state file: JSON, or lines of it as a run printed them. An empty file means no state. */
export const readStateFile =
  (path: string): TaskEither<Failure, unknown> =>
  async () => {
    const text = await readTextFile('state', path)()
    if (E.isLeft(text)) return text
    if (text.right.trim() === '') return E.right(null)
    const whole = parseJson(text.right)
    if (E.isRight(whole)) return whole
    const lines = text.right.split('\n').filter((line) => line.trim() !== '')
    const parsed = E.traverseArray(parseJson)(lines)
    return lines.length > 1 && E.isRight(parsed)
      ? parsed
      : E.left(configFailure(`The state file ${path} ${E.isLeft(whole) ? whole.left : 'is wrong'}.`))
  }
