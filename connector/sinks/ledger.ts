import { appendFile, readFile, rename, writeFile } from 'node:fs/promises'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { configFailure, type Failure } from '../cdk/failure'
import { keyOf, type Place } from './plan'

/** The locations this destination had accepted, kept in a file from run to run. */
export type Ledger = {
  /** Those that are active, by `keyOf`, as the run began. */
  readonly active: ReadonlyMap<string, Place>
  /** Settles once it is on disk. */
  readonly note: (entries: ReadonlyArray<Entry>) => Promise<void>
}

const Entry = t.type({ code: t.string, codeType: t.union([t.string, t.null]), active: t.boolean })
export type Entry = t.TypeOf<typeof Entry>
const Head = t.type({ base_url: t.string })

const wrong = (path: string, what: string): E.Either<Failure, never> =>
  E.left(configFailure(`reconcile.ledger_path: ${path} ${what}.`))

const valueOf = (line: string): unknown => {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** The text of a ledger: JSON lines, first the service it is of, then each entry; the later goes over the earlier. A last line that was cut off does not count. */
export const readLedger = (
  path: string,
  baseUrl: string,
  text: string,
): E.Either<Failure, ReadonlyMap<string, Place>> => {
  if (text === '') return E.right(new Map())
  const [head, ...entries] = text.split('\n').slice(0, -1).map(valueOf)
  if (!Head.is(head)) return wrong(path, 'is no ledger of this destination. Name another file')
  if (head.base_url !== baseUrl)
    return wrong(path, `is the ledger of ${head.base_url}, not of ${baseUrl}. Name a file of its own for each service`)
  const active = new Map<string, Place>()
  for (const [index, entry] of entries.entries()) {
    if (!Entry.is(entry)) return wrong(path, `is damaged at line ${index + 2}. Mend that line or take it out`)
    const { code, codeType } = entry
    if (entry.active) active.set(keyOf(entry), { code, codeType })
    else active.delete(keyOf(entry))
  }
  return E.right(active)
}

const lineOf = (value: unknown): string => `${JSON.stringify(value)}\n`

const unusable = (path: string, verb: string, error: unknown): E.Either<Failure, never> =>
  wrong(path, `cannot be ${verb} (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`)

/** A ledger that is only looked at; one that is missing is empty. */
export const lookAtLedger =
  (path: string, baseUrl: string): TaskEither<Failure, Ledger> =>
  async () => {
    const text = await readFile(path, 'utf8').then(E.right, (error: NodeJS.ErrnoException) =>
      error.code === 'ENOENT' ? E.right('') : unusable(path, 'read', error),
    )
    return pipe(
      text,
      E.flatMap((read) => readLedger(path, baseUrl, read)),
      E.map((active) => ({ active, note: async () => undefined })),
    )
  }

/** Opens a ledger, made if it is missing, and writes it anew without what no longer counts. */
export const openLedger =
  (path: string, baseUrl: string): TaskEither<Failure, Ledger> =>
  async () => {
    const found = await lookAtLedger(path, baseUrl)()
    if (E.isLeft(found)) return found
    const { active } = found.right
    const entries = [...active.values()].map((place) => lineOf({ ...place, active: true }))
    try {
      await writeFile(`${path}.new`, [lineOf({ base_url: baseUrl }), ...entries].join(''), { flush: true })
      await rename(`${path}.new`, path)
    } catch (error) {
      return unusable(path, 'written', error)
    }
    return E.right({ active, note: (noted) => appendFile(path, noted.map(lineOf).join(''), { flush: true }) })
  }
