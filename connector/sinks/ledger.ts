import { appendFile, readFile, rename, writeFile } from 'node:fs/promises'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import type { Location } from '../api'
import { configFailure, type Failure } from '../cdk'

/** A location by what it is matched by. */
export type LocationKey = { readonly code: string; readonly codeType: string | null }

export const toLocationKey = ({ code, codeType }: Pick<Location, 'code' | 'codeType'>): LocationKey => ({
  code: code ?? '',
  codeType: codeType ?? null,
})

/** The same for the same location, and for no other. */
export const formatLocationKey = ({ code, codeType }: LocationKey): string =>
  codeType === null ? code : JSON.stringify([code, codeType])

/** The same for people to read. */
export const formatLocation = ({ code, codeType }: LocationKey): string =>
  codeType === null ? code : `${code} (${codeType})`

/** A complete list against what was accepted before. */
export type ReconcilePlan = {
  readonly creates: ReadonlyArray<LocationKey>
  readonly updates: ReadonlyArray<LocationKey>
  /** Accepted before and still active, but no longer on the list. */
  readonly deactivations: ReadonlyArray<LocationKey>
}

/** `active`: accepted before and active since; `listed`: what the list says of each place, whether it is to be active. Both by `keyOf`. */
export const planReconcile = (
  active: ReadonlyMap<string, LocationKey>,
  listed: ReadonlyMap<string, LocationKey & { readonly active: boolean }>,
): ReconcilePlan => {
  const wanted = [...listed].filter(([, place]) => place.active)
  const known = (key: string): boolean => active.has(key)
  return {
    creates: wanted.filter(([key]) => !known(key)).map(([, place]) => toLocationKey(place)),
    updates: wanted.filter(([key]) => known(key)).map(([, place]) => toLocationKey(place)),
    deactivations: [...active].filter(([key]) => !listed.has(key)).map(([, place]) => place),
  }
}

/** Refuses a plan that deactivates more than `maxPercent` of the `active` locations, as a list that was cut off would. */
export const checkDeactivations = (
  { deactivations }: ReconcilePlan,
  active: number,
  maxPercent: number,
): E.Either<Failure, void> =>
  deactivations.length * 100 <= maxPercent * active
    ? E.right(undefined)
    : E.left(
        configFailure(
          `locations: ${deactivations.length} of ${active} locations are no longer on the list, more than max_deactivations_percent (${maxPercent}); none is deactivated. See that the list is complete, or raise it for this run.`,
        ),
      )

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
