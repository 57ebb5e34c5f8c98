import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as T from 'fp-ts/Task'
import type { Location, LookupRecord } from '../api'
import type { Failure, FinalItems, SinkNote } from '../cdk'
import { compareValues, type Difference, formatDifferences, formatValue, toComparable } from './convert'
import {
  addToGroup,
  checkDeactivations,
  createServiceList,
  foldCode,
  formatKept,
  formatLocation,
  formatLocationKey,
  isSameType,
  type LedgerLocation,
  type ListedLocation,
  type LocationKey,
  type ServiceList,
  toDeactivation,
  toLocationKey,
} from './ledger'
import type { SinkTarget } from './target'

/** The attribute of the list that shows an attribute of a location; the list shows no others. */
const listedNames: Readonly<Record<string, string>> = {
  name: 'displayName',
  ...Object.fromEntries(
    ['internalName', 'phone', 'email', 'website', 'address1', 'address2', 'city', 'state', 'zip', 'country'].map(
      (name) => [name, name],
    ),
  ),
  labels: 'labels',
  entityMappings: 'entityMappings',
  additionalAttributes: 'additionalAttributes',
}

const sentAttributes = ({ code: _code, codeType: _type, active: _active, ...attributes }: Location) =>
  Object.entries(attributes).filter(([, value]) => value !== undefined && value !== null)

/**
 * What would change, attribute by attribute; attributes that the list does not show are left out. Without `listed`:
 * everything is new.
 */
export const compareLocation = (
  location: Location,
  listed: ListedLocation | undefined,
): { readonly differences: ReadonlyArray<Difference>; readonly notShown: ReadonlyArray<string> } => {
  const attributes = sentAttributes(location)
  if (listed === undefined)
    return { differences: attributes.flatMap(([name, value]) => compareValues(name, null, value)), notShown: [] }
  const isShown = ([name]: readonly [string, unknown]): boolean =>
    listedNames[name] !== undefined && listed.record[listedNames[name]] !== undefined
  return {
    differences: attributes
      .filter(isShown)
      .flatMap(([name, value]) => compareValues(name, listed.record[listedNames[name] ?? ''], value)),
    notShown: attributes.filter((attribute) => !isShown(attribute)).map(([name]) => name),
  }
}

const info = (message: string): SinkNote => ({ level: 'info', message: `locations: ${message}` })
const warn = (message: string): SinkNote => ({ level: 'warn', message: `locations: ${message}` })

/**
 * The locations of the input by `formatLocationKey`, each as it was sent last; one whose record is wrong has its key
 * alone, without `active`.
 */
type InputLocations = ReadonlyMap<string, Location>

type ServicePlanRequest = {
  readonly service: ServiceList
  readonly input: InputLocations
  /** Whether the input is a complete list: what is not on it may be deactivated. */
  readonly isComplete: boolean
  /** The locations that this destination wrote; none: they are not known. */
  readonly ledger: O.Option<ReadonlyMap<string, LedgerLocation>>
  readonly deactivateUnlisted: boolean
  readonly maxDeactivationsPercent: number
  /** Every change is listed. */
  readonly dryRun: boolean
  /** Whether the service accepted a location, by `formatLocationKey`; a dry run takes all of them for accepted. */
  readonly isAccepted: (key: string) => boolean
}

const uniqueKeys = (keys: ReadonlyArray<LocationKey>): ReadonlyArray<LocationKey> => [
  ...new Map(keys.map(({ code, codeType }) => [formatLocationKey({ code, codeType }), { code, codeType }])).values(),
]

/** What the service lists and the input does not: what to deactivate, and why the others stay. */
const planDeactivations = ({ service, input, ledger, deactivateUnlisted }: ServicePlanRequest) => {
  const byCode = new Map<string, Array<Location>>()
  for (const location of input.values()) addToGroup(byCode, foldCode(toLocationKey(location)), location)
  // The service may list a code in another case than it was sent.
  const withCode = (key: LocationKey) => byCode.get(foldCode(key)) ?? []
  const isListed = (key: LocationKey): boolean =>
    withCode(key).some((location) => isSameType(toLocationKey(location).codeType, key.codeType))
  const isKept = (key: LocationKey): boolean => withCode(key).some(({ active }) => active !== false)

  const unlisted = service.locations.filter((location) => !isListed(location))
  const written = O.isSome(ledger) ? [...ledger.value.values()] : []
  const writtenByCode = new Map<string, Array<LedgerLocation>>()
  for (const key of written) addToGroup(writtenByCode, key.code.trim(), key)
  const findWritten = ({ code, codeType }: ListedLocation): ReadonlyArray<LocationKey> =>
    (writtenByCode.get(code) ?? []).filter((key) => isSameType(key.codeType, codeType))
  const isWritten = (location: ListedLocation): boolean => findWritten(location).length > 0
  const isChosen = (location: ListedLocation): boolean => deactivateUnlisted || isWritten(location)
  /**
   * Under the key that it was written with, so that the ledger notes the deactivation; else under the service's own.
   */
  const toMissing = (location: ListedLocation): ReadonlyArray<LocationKey> =>
    isWritten(location) ? findWritten(location) : [location]
  // The service may have changed the case of a code: whether such a location is active is not certain, so it is
  // deactivated too.
  const misspelt = written.filter(
    (key) => service.find(key) === undefined && service.hasCode(key.code) && !isListed(key),
  )
  const chosen = unlisted.filter(isChosen)
  // One location of the service may have been written under several keys, and one key may be of several locations.
  const missing = uniqueKeys([...chosen.flatMap(toMissing), ...misspelt])
  return {
    missingCount: chosen.filter((location) => !isKept(location)).length,
    deactivations: missing.filter((key) => !isKept(key)),
    kept: missing.filter(isKept),
    foreign: unlisted.filter((location) => !isChosen(location)),
    activeCount: deactivateUnlisted ? service.locations.length : service.locations.filter(isWritten).length,
  }
}

const maxNamedLocations = 10

const listNames = (locations: ReadonlyArray<LocationKey>): string =>
  locations.slice(0, maxNamedLocations).map(formatLocation).join(', ') +
  (locations.length > maxNamedLocations ? ' and others' : '')

const foreignNotes = (foreign: ReadonlyArray<LocationKey>): ReadonlyArray<SinkNote> =>
  foreign.length === 0
    ? []
    : [
        info(
          `${foreign.length} active locations of the service are not on the list, and no ledger ` +
            `says that this destination wrote them. They stay active: ${listNames(foreign)}. To ` +
            'deactivate them, set reconcile.deactivate_unlisted to true.',
        ),
      ]

/**
 * What a location of the input changes at the service; without a verb nothing: it is inactive already, or its record is
 * wrong.
 */
const planChange = (service: ServiceList, location: Location) => {
  const listed = service.find(toLocationKey(location))
  if (location.active === undefined) return { verb: undefined, differences: [] }
  if (location.active === false)
    return { verb: listed && ('deactivate' as const), differences: [{ path: 'active', old: true, next: false }] }
  const { differences } = compareLocation(location, listed)
  const isUnchanged = listed !== undefined && differences.length === 0
  return { verb: isUnchanged ? 'unchanged' : listed === undefined ? 'create' : 'update', differences } as const
}

/**
 * The plan against the service's own list: what is created, updated, unchanged and deactivated, attribute by attribute
 * in a dry run.
 */
export const planAgainstService = (request: ServicePlanRequest): E.Either<Failure, FinalItems<Location>> => {
  const { service, input, isComplete, dryRun } = request
  const lines: Array<SinkNote> = []
  const counts = { create: 0, update: 0, unchanged: 0, deactivate: 0 }
  for (const [inputKey, location] of input) {
    if (!request.isAccepted(inputKey)) continue
    const key = formatLocation(toLocationKey(location))
    const { verb, differences } = planChange(service, location)
    if (verb === undefined) continue
    counts[verb] += 1
    if (verb === 'unchanged' || (!dryRun && verb !== 'deactivate')) continue
    lines.push(info(`${verb} ${key}${dryRun && differences.length > 0 ? `: ${formatDifferences(differences)}` : ''}`))
  }
  const plan = isComplete
    ? planDeactivations(request)
    : { missingCount: 0, deactivations: [], kept: [], foreign: [], activeCount: service.locations.length }
  return pipe(
    checkDeactivations(plan.missingCount, plan.activeCount, request.maxDeactivationsPercent),
    E.map(() => ({
      items: plan.deactivations.map((key) => ({ item: toDeactivation(key), key: formatLocationKey(key) })),
      notes: [
        info(
          `${counts.create} created, ${counts.update} updated, ${counts.unchanged} ` +
            `unchanged, ${counts.deactivate + plan.deactivations.length} to deactivate; ` +
            `the service lists ${service.locations.length + service.withoutCode}.`,
        ),
        ...lines,
        ...plan.deactivations.map((key) =>
          info(`deactivate ${formatLocation(key)}${dryRun ? ': active true -> false' : ''}`),
        ),
        ...formatKept(plan),
        ...foreignNotes(plan.foreign),
      ],
    })),
  )
}

type ReadBackRequest = {
  /** The locations that the service accepted, by `formatLocationKey`, each as it was sent last. */
  readonly accepted: InputLocations
  readonly before: ServiceList
  readonly after: ServiceList
}

/** `isDelayed`: the service may not have applied everything yet. */
type ReadBack = { readonly notes: ReadonlyArray<SinkNote>; readonly isDelayed: boolean }

/** How many differences are printed one by one at most. */
const maxToldDifferences = 100

/** Compares what the service accepted with what it lists after it. */
export const compareReadBack = ({ accepted, before, after }: ReadBackRequest): ReadBack => {
  const counts = { same: 0, different: 0, missing: 0, active: 0 }
  const lines: Array<string> = []
  const hidden = new Set<string>()
  let isDelayed = false
  for (const location of accepted.values()) {
    const key = toLocationKey(location)
    const listed = after.find(key)
    if (location.active === false) {
      counts[listed === undefined ? 'same' : 'active'] += 1
      if (listed !== undefined) lines.push(`${formatLocation(key)} is still listed as active after its deactivation.`)
      isDelayed ||= listed !== undefined
      continue
    }
    if (listed === undefined) {
      counts.missing += 1
      lines.push(`${formatLocation(key)} is not on the service's list after it was accepted.`)
      isDelayed = true
      continue
    }
    const { differences, notShown } = compareLocation(location, listed)
    for (const name of notShown) hidden.add(name)
    counts[differences.length === 0 ? 'same' : 'different'] += 1
    if (differences.length === 0) continue
    const earlier = new Map(
      compareLocation(location, before.find(key)).differences.map(({ path, old }) => [path, toComparable(old)]),
    )
    const told = differences.map(({ path, old, next }) => {
      const isUnchanged = earlier.get(path) === toComparable(old)
      isDelayed ||= isUnchanged
      return (
        `${path} ${formatValue(path, next)} was sent, ` +
        `${isUnchanged ? 'and is still' : 'and is kept as'} ${formatValue(path, old)}`
      )
    })
    lines.push(`${formatLocation(key)} reads back different: ${told.join('; ')}.`)
  }
  const wrong = counts.different + counts.missing + counts.active
  const summary =
    `${accepted.size} read back: ${counts.same} as sent, ${counts.different} ` +
    `different, ${counts.missing} missing, ${counts.active} still active.`
  const left = lines.length > maxToldDifferences ? [`${lines.length - maxToldDifferences} more differ.`] : []
  const notCompared =
    hidden.size === 0 ? '' : ` Not compared, since the list does not show them: ${[...hidden].sort().join(', ')}.`
  return {
    isDelayed,
    notes: [
      ...[...lines.slice(0, maxToldDifferences), ...left].map(warn),
      (wrong === 0 ? info : warn)(summary + notCompared),
    ],
  }
}

/**
 * Reads the service's list once, when it is needed first; where it cannot be read, a warning says what takes its place.
 */
export const readServiceListOnce = ({ serviceList = O.none, ledger, warn }: SinkTarget) => {
  let list: ServiceList | undefined
  let reading: Promise<void> | undefined
  const readNow = async (): Promise<void> => {
    const read = O.isSome(serviceList) ? await serviceList.value(false)() : undefined
    if (read === undefined) return
    if (E.isRight(read)) list = createServiceList(read.right.records)
    else
      warn(
        `locations: the service's own list cannot be read, so ` +
          `${O.isSome(ledger) ? 'the plan is made from the ledger' : 'nothing is planned'} ` +
          `and what is written is not verified. ${read.left.message}`,
      )
  }
  return {
    read: (): Promise<void> => {
      reading ??= readNow()
      return reading
    },
    list: () => list,
  }
}

/** How long the service gets to apply what it accepted, if the first reading shows that it has not; milliseconds. */
const readBackDelay = 2000

/** Reads back what was accepted; once more, if the service has not applied everything yet. */
export const verifyLocations =
  (
    { serviceList = O.none, dryRun, wait = () => T.of(undefined) }: SinkTarget,
    accepted: ReadonlyMap<string, Location>,
    listBefore: () => ServiceList | undefined,
  ): T.Task<ReadonlyArray<SinkNote>> =>
  async () => {
    const before = listBefore()
    if (O.isNone(serviceList) || before === undefined || dryRun) return []
    if (accepted.size === 0) return []
    const readBack = async (): Promise<E.Either<Failure, ReadBack>> =>
      E.map(({ records }: { readonly records: ReadonlyArray<LookupRecord> }) =>
        compareReadBack({ accepted, before, after: createServiceList(records) }),
      )(await serviceList.value(false)())
    const first = await readBack()
    if (E.isRight(first) && first.right.isDelayed) await wait(readBackDelay)()
    const last = E.isRight(first) && first.right.isDelayed ? await readBack() : first
    return E.isRight(last)
      ? last.right.notes
      : [
          {
            level: 'warn',
            message:
              `locations: the service's list cannot be read after the run, ` +
              `so what was written is not verified. ${last.left.message}`,
          },
        ]
  }
