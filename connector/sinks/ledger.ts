import { appendFile, readFile, rename, writeFile } from 'node:fs/promises'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { configFailure, type Failure } from '../cdk/failure'
import { formatLocationKey, type LocationKey } from './plan'

/** The locations this destination had accepted, kept in a file from run to run. */
export type LocationLedger = {
  /** Those that are active, by `keyOf`, as the run began. */
  readonly active: ReadonlyMap<string, LocationKey>
  /** Settles once it is on disk. */
  readonly append: (entries: ReadonlyArray<LedgerEntry>) => Promise<void>
}

const LedgerEntry = t.type({ code: t.string, codeType: t.union([t.string, t.null]), active: t.boolean })
export type LedgerEntry = t.TypeOf<typeof LedgerEntry>
const LedgerHeader = t.type({ base_url: t.string })

const ledgerFailure = (path: string, what: string): E.Either<Failure, never> =>
  E.left(configFailure(`reconcile.ledger_path: ${path} ${what}.`))

const parseLine = (line: string): unknown => {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** The text of a ledger: JSON lines, first the service it is of, then each entry; the later goes over the earlier. A last line that was cut off does not count. */
export const decodeLedger = (
  path: string,
  baseUrl: string,
  text: string,
): E.Either<Failure, ReadonlyMap<string, LocationKey>> => {
  if (text === '') return E.right(new Map())
  const [head, ...entries] = text.split('\n').slice(0, -1).map(parseLine)
  if (!LedgerHeader.is(head)) return ledgerFailure(path, 'is no ledger of this destination. Name another file')
  if (head.base_url !== baseUrl)
    return ledgerFailure(
      path,
      `is the ledger of ${head.base_url}, not of ${baseUrl}. Name a file of its own for each service`,
    )
  const active = new Map<string, LocationKey>()
  for (const [index, entry] of entries.entries()) {
    if (!LedgerEntry.is(entry))
      return ledgerFailure(path, `is damaged at line ${index + 2}. Mend that line or take it out`)
    const { code, codeType } = entry
    if (entry.active) active.set(formatLocationKey(entry), { code, codeType })
    else active.delete(formatLocationKey(entry))
  }
  return E.right(active)
}

const formatLine = (value: unknown): string => `${JSON.stringify(value)}\n`

const ledgerFileFailure = (path: string, verb: string, error: unknown): E.Either<Failure, never> =>
  ledgerFailure(path, `cannot be ${verb} (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`)

/** A ledger that is only looked at; one that is missing is empty. */
export const readLedger =
  (path: string, baseUrl: string): TaskEither<Failure, LocationLedger> =>
  async () => {
    const text = await readFile(path, 'utf8').then(E.right, (error: NodeJS.ErrnoException) =>
      error.code === 'ENOENT' ? E.right('') : ledgerFileFailure(path, 'read', error),
    )
    return pipe(
      text,
      E.flatMap((read) => decodeLedger(path, baseUrl, read)),
      E.map((active) => ({ active, append: async () => undefined })),
    )
  }

/** Opens a ledger, made if it is missing, and writes it anew without what no longer counts. */
export const openLedger =
  (path: string, baseUrl: string): TaskEither<Failure, LocationLedger> =>
  async () => {
    const found = await readLedger(path, baseUrl)()
    if (E.isLeft(found)) return found
    const { active } = found.right
    const entries = [...active.values()].map((place) => formatLine({ ...place, active: true }))
    try {
      await writeFile(`${path}.new`, [formatLine({ base_url: baseUrl }), ...entries].join(''), { flush: true })
      await rename(`${path}.new`, path)
    } catch (error) {
      return ledgerFileFailure(path, 'written', error)
    }
    return E.right({ active, append: (noted) => appendFile(path, noted.map(formatLine).join(''), { flush: true }) })
  }
