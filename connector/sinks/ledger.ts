import { appendFile, readFile, rename, writeFile } from 'node:fs/promises'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import { type TaskEither, tryCatch } from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import type { Location, LookupRecord } from '../api'
import { configFailure, defined, type Failure, type SinkNote, syncFolder } from '../cdk'

/** The attributes that identify a location. */
export type LocationKey = { readonly code: string; readonly codeType: string | null }

export const toLocationKey = ({ code, codeType }: Pick<Location, 'code' | 'codeType'>): LocationKey => ({
  code: code ?? '',
  codeType: codeType ?? null,
})

/** A text that is unique for each location. */
export const formatLocationKey = ({ code, codeType }: LocationKey): string =>
  codeType === null ? code : JSON.stringify([code, codeType])

/** Codes that the service may treat as one: they differ only in case or surrounding spaces. */
export const foldCode = ({ code }: Pick<LocationKey, 'code'>): string => code.trim().toLowerCase()

/** The location's name in messages. */
export const formatLocation = ({ code, codeType }: LocationKey): string =>
  codeType === null ? code : `${code} (${codeType})`

/** A location in the ledger. `isUnknown`: it was sent without an answer, so it may or may not be active. */
export type LedgerLocation = LocationKey & { readonly isUnknown?: true }

export const isCertain = ({ isUnknown }: LedgerLocation): boolean => isUnknown !== true

/** What changes if a complete list replaces the locations accepted before. */
export type ReconcilePlan = {
  readonly creates: ReadonlyArray<LocationKey>
  readonly updates: ReadonlyArray<LocationKey>
  /** Active before, but not on the list. */
  readonly deactivations: ReadonlyArray<LedgerLocation>
  /**
   * Active before, and on the list with another type or in another case. Deactivating them might deactivate those too.
   */
  readonly kept: ReadonlyArray<LocationKey>
}

/** `active`: locations active at the service; `listed`: those on the list. Both by `formatLocationKey`. */
export const planReconcile = (
  active: ReadonlyMap<string, LedgerLocation>,
  listed: ReadonlyMap<string, LocationKey & { readonly active: boolean }>,
): ReconcilePlan => {
  const listedActive = [...listed].filter(([, location]) => location.active)
  const isKnown = (key: string): boolean => {
    const location = active.get(key)
    return location !== undefined && isCertain(location)
  }
  const listedCodes = new Set(listedActive.map(([, location]) => foldCode(location)))
  const missing = [...active].filter(([key]) => !listed.has(key)).map(([, location]) => location)
  return {
    creates: listedActive.filter(([key]) => !isKnown(key)).map(([, location]) => toLocationKey(location)),
    updates: listedActive.filter(([key]) => isKnown(key)).map(([, location]) => toLocationKey(location)),
    deactivations: missing.filter((location) => !listedCodes.has(foldCode(location))),
    kept: missing.filter((location) => listedCodes.has(foldCode(location))),
  }
}

/** Fails if more than `maxPercent` of the certainly active locations are missing from the list: it may be truncated. */
export const checkDeactivations = (
  missingCount: number,
  activeCount: number,
  maxPercent: number,
): E.Either<Failure, void> =>
  missingCount * 100 <= maxPercent * activeCount
    ? E.right(undefined)
    : E.left(
        configFailure(
          `locations: ${missingCount} of ${activeCount} locations are no longer on the ` +
            `list, more than max_deactivations_percent (${maxPercent}); none is deactivated. ` +
            'Check that the list is complete, or raise the percentage for this run.',
        ),
      )

/** The item that deactivates a location. */
export const toDeactivation = ({ code, codeType }: LocationKey): Location => ({
  code,
  ...defined({ codeType: codeType ?? undefined }),
  active: false,
})

/** `listAll`: lists every change, not only deactivations. */
export const formatPlan = (
  { creates, updates, deactivations }: ReconcilePlan,
  listAll: boolean,
): ReadonlyArray<SinkNote> => {
  const list = (verb: string, locations: ReadonlyArray<LocationKey>): ReadonlyArray<SinkNote> =>
    locations.map((location) => ({ level: 'info', message: `locations: ${verb} ${formatLocation(location)}` }))
  return [
    {
      level: 'info',
      message:
        `locations: ${creates.length} created, ${updates.length} updated, ` + `${deactivations.length} to deactivate.`,
    },
    ...(listAll ? [...list('create', creates), ...list('update', updates)] : []),
    ...list('deactivate', deactivations),
  ]
}

export const formatKept = ({ kept }: Pick<ReconcilePlan, 'kept'>): ReadonlyArray<SinkNote> =>
  kept.map((location) => ({
    level: 'warn',
    message:
      `locations: ${formatLocation(location)} is not on the list, but its code is, ` +
      'with another codeType or in another case. It is not deactivated, since the ' +
      'service may know both as one; send it with active false to deactivate it.',
  }))

/** A location as the service lists it. */
export type ListedLocation = LocationKey & { readonly record: LookupRecord }

/** The active locations of the service. */
export type ServiceList = {
  readonly locations: ReadonlyArray<ListedLocation>
  /** The location with this code and type. If either has no type, the only location with this code. */
  readonly find: (key: LocationKey) => ListedLocation | undefined
  /** A location has this code, in any case. */
  readonly hasCode: (code: string) => boolean
  /** How many locations have no code and so cannot be written to. */
  readonly withoutCode: number
}

/** A key of the list as text; empty if missing. */
const textOf = (value: unknown): string => (value === undefined || value === null ? '' : String(value).trim())

/** Two types may be the same: the service may omit one. */
export const isSameType = (a: string | null, b: string | null): boolean => a === b || a === null || b === null

/** Adds an item to the list of its key. */
export const addToGroup = <A>(groups: Map<string, Array<A>>, key: string, item: A): void => {
  const group = groups.get(key)
  if (group === undefined) groups.set(key, [item])
  else group.push(item)
}

export const createServiceList = (records: ReadonlyArray<LookupRecord>): ServiceList => {
  const locations = records.flatMap((record): ReadonlyArray<ListedLocation> => {
    const code = textOf(record.code)
    return code === '' ? [] : [{ code, codeType: textOf(record.codeType) || null, record }]
  })
  const byCode = new Map<string, Array<ListedLocation>>()
  for (const location of locations) addToGroup(byCode, location.code, location)
  const foldedCodes = new Set(locations.map(foldCode))
  return {
    locations,
    find: ({ code, codeType }) => {
      const sameCode = byCode.get(code.trim()) ?? []
      const exact = sameCode.find((location) => location.codeType === codeType)
      if (exact !== undefined) return exact
      const [only, ...others] = sameCode.filter((location) => isSameType(location.codeType, codeType))
      return others.length === 0 ? only : undefined
    },
    hasCode: (code) => foldedCodes.has(foldCode({ code })),
    withoutCode: records.length - locations.length,
  }
}

/** The locations that the service accepted from this destination, kept in a file from run to run. */
export type LocationLedger = {
  /** Those that are or may be active at the start of the run, by `formatLocationKey`. */
  readonly active: ReadonlyMap<string, LedgerLocation>
  /** Records locations as unknown until an entry follows. Resolves once that is on disk. */
  readonly announce: (locations: ReadonlyArray<LocationKey>) => Promise<void>
  /** Resolves once the entries are on disk. */
  readonly append: (entries: ReadonlyArray<LocationKey & { readonly active: boolean }>) => Promise<void>
}

const LedgerEntry = t.type({
  code: t.string,
  codeType: t.union([t.string, t.null]),
  active: t.union([t.boolean, t.literal('unknown')]),
})

type LedgerEntry = t.TypeOf<typeof LedgerEntry>
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

/**
 * Reads JSON lines: a header with the service's address, then entries, of which the last for a location counts. Ignores
 * an incomplete last line.
 */
export const decodeLedger = (
  path: string,
  baseUrl: string,
  text: string,
): E.Either<Failure, ReadonlyMap<string, LedgerLocation>> => {
  if (text === '') return E.right(new Map())
  const [header, ...entries] = text.split('\n').slice(0, -1).map(parseLine)
  if (!LedgerHeader.is(header)) return ledgerFailure(path, 'is not a ledger of this destination. Name another file')
  if (header.base_url !== baseUrl)
    return ledgerFailure(
      path,
      `is the ledger of ${header.base_url}, not of ${baseUrl}. Use another file for each service`,
    )
  const active = new Map<string, LedgerLocation>()
  for (const [index, entry] of entries.entries()) {
    if (!LedgerEntry.is(entry))
      return ledgerFailure(path, `is damaged at line ${index + 2}. Correct or delete that line`)
    const { code, codeType } = entry
    const key = formatLocationKey(entry)
    if (entry.active === true) active.set(key, { code, codeType })
    else if (entry.active === false) active.delete(key)
    else if (!active.has(key)) active.set(key, { code, codeType, isUnknown: true })
  }
  return E.right(active)
}

const formatLine = (value: unknown): string => `${JSON.stringify(value)}\n`

const ledgerFileFailure = (path: string, verb: string, error: unknown): E.Either<Failure, never> =>
  ledgerFailure(path, `cannot be ${verb} (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`)

/** Reads a ledger without writing it. A missing file is an empty ledger. */
export const readLedger =
  (path: string, baseUrl: string): TaskEither<Failure, LocationLedger> =>
  async () => {
    const text = await readFile(path, 'utf8').then(E.right, (error: NodeJS.ErrnoException) =>
      error.code === 'ENOENT' ? E.right('') : ledgerFileFailure(path, 'read', error),
    )
    return pipe(
      text,
      E.flatMap((content) => decodeLedger(path, baseUrl, content)),
      E.map((active) => ({ active, announce: async () => undefined, append: async () => undefined })),
    )
  }

/** Wraps a write to a ledger; its failure says what to do. */
export const writeLedger = (write: () => Promise<void>): TaskEither<Failure, void> =>
  tryCatch(write, (error) =>
    configFailure(
      'reconcile.ledger_path cannot be written: ' +
        `${error instanceof Error ? error.message : String(error)}. Free up space, or name another file.`,
    ),
  )

/** Opens a ledger, creates it if it is missing, and rewrites it with its active locations only. */
export const openLedger =
  (path: string, baseUrl: string): TaskEither<Failure, LocationLedger> =>
  async () => {
    const ledger = await readLedger(path, baseUrl)()
    if (E.isLeft(ledger)) return ledger
    const { active } = ledger.right
    const lines = [...active.values()].map(({ code, codeType, isUnknown }) =>
      formatLine({ code, codeType, active: isUnknown === true ? 'unknown' : true } satisfies LedgerEntry),
    )
    /**
     * Writes run one at a time, and none after a failed one: an entry that a full disk truncated would merge with the
     * next.
     */
    let last: Promise<void> = Promise.resolve()
    const append = (entries: ReadonlyArray<LedgerEntry>): Promise<void> => {
      last = last.then(() => appendFile(path, entries.map(formatLine).join(''), { flush: true }))
      return last
    }
    try {
      await writeFile(`${path}.new`, [formatLine({ base_url: baseUrl }), ...lines].join(''), { flush: true })
      await rename(`${path}.new`, path)
      await syncFolder(path)
    } catch (error) {
      return ledgerFileFailure(path, 'written', error)
    }
    return E.right({
      active,
      announce: (locations) => append(locations.map((location) => ({ ...location, active: 'unknown' }))),
      append,
    })
  }
