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

/** Maps attributes of a location to those of the service's list; the list shows no others. */
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
 * What would change, attribute by attribute, except for attributes that the list does not show. Without `listed`,
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
 * The locations of the input by `formatLocationKey`, each as last sent. One with an invalid record has only its key,
 * without `active`.
 */
type InputLocations = ReadonlyMap<string, Location>

type ServicePlanRequest = {
  readonly service: ServiceList
  readonly input: InputLocations
  /** The input is a complete list, so what is missing from it may be deactivated. */
  readonly isComplete: boolean
  /** The locations that this destination wrote; none if unknown. */
  readonly ledger: O.Option<ReadonlyMap<string, LedgerLocation>>
  readonly deactivateUnlisted: boolean
  readonly maxDeactivationsPercent: number
  /** Every change is listed. */
  readonly dryRun: boolean
  /** The service accepted the location with this `formatLocationKey`; a dry run treats all as accepted. */
  readonly isAccepted: (key: string) => boolean
}

const uniqueKeys = (keys: ReadonlyArray<LocationKey>): ReadonlyArray<LocationKey> => [
  ...new Map(keys.map(({ code, codeType }) => [formatLocationKey({ code, codeType }), { code, codeType }])).values(),
]

/** Plans what to deactivate among the locations that the input lacks, and explains why the others stay. */
const planDeactivations = ({ service, input, ledger, deactivateUnlisted }: ServicePlanRequest) => {
  const byCode = new Map<string, Array<Location>>()
  for (const location of input.values()) addToGroup(byCode, foldCode(toLocationKey(location)), location)
  // The service may list a code in a different case from the one sent.
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
   * Uses the key that it was written with, so that the ledger records the deactivation; otherwise the service's key.
   */
  const toMissing = (location: ListedLocation): ReadonlyArray<LocationKey> =>
    isWritten(location) ? findWritten(location) : [location]
  // The service may have changed the case of a code. Such a location may still be active, so it is deactivated too.
  const misspelt = written.filter(
    (key) => service.find(key) === undefined && service.hasCode(key.code) && !isListed(key),
  )
  const chosen = unlisted.filter(isChosen)
  // A location may have been written under several keys, and a key may belong to several locations.
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
 * What a location of the input changes at the service. Without a verb nothing changes: it is already inactive, or its
 * record is invalid.
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
 * The plan against the service's list: what is created, updated, unchanged and deactivated; in a dry run for each
 * attribute.
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
  /** The locations that the service accepted, by `formatLocationKey`, each as last sent. */
  readonly accepted: InputLocations
  readonly before: ServiceList
  readonly after: ServiceList
}

/** `isDelayed`: the service may not have applied everything yet. */
type ReadBack = { readonly notes: ReadonlyArray<SinkNote>; readonly isDelayed: boolean }

/** The most differences printed individually. */
const maxToldDifferences = 100

/** Compares what the service accepted with what it lists afterwards. */
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

/** Reads the service's list once, on first use. If it cannot be read, a warning names the substitute. */
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

/** How long the service gets to apply accepted changes if the first read shows that it has not, milliseconds. */
const readBackDelay = 2000

/** Reads back what was accepted, a second time if the service has not applied everything yet. */
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
