import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { Location, type LocationSyncResult } from '../api'
import {
  type BatchAnswer,
  configFailure,
  defined,
  defineSink,
  type Failure,
  type FinalItems,
  type InputRecord,
  type InputStream,
  type PreparedItem,
  type RecordVerdict,
  type SinkNote,
} from '../cdk'
import {
  checkDeactivations,
  formatLocation,
  formatLocationKey,
  isCertain,
  type LocationKey,
  type LocationLedger,
  planReconcile,
  type ReconcilePlan,
  toLocationKey,
} from './ledger'
import {
  checkMapping,
  createAttributeRules,
  createMappingReporter,
  createRecordMapper,
  isTombstoneRecord,
} from './mapping'
import { isServiceAnswering, type SinkTarget, toBatchAnswer } from './target'

const acceptedVerdict: RecordVerdict = { _tag: 'Accepted' }
const rejectedVerdict: RecordVerdict = {
  _tag: 'Rejected',
  reason: 'the service could not process it (nonSyncableList)',
}

/** Whether an item of nonSyncableList means this location: by its code, and by its type if both have one. The item's form is not specified. */
const matchesItem =
  (item: unknown) =>
  ({ code, codeType }: Location): boolean => {
    if (typeof item === 'string' || typeof item === 'number') return String(item) === code
    if (!t.UnknownRecord.is(item) || item.code == null || String(item.code) !== code) return false
    return typeof item.codeType !== 'string' || codeType == null || item.codeType === codeType
  }

/**
 * The answer to locations that differ in code and type. A location counts as accepted only if the status is one of success and no
 * count contradicts it. If failures cannot be assigned to locations, the batch counts as refused.
 */
export const toLocationAnswer = (items: ReadonlyArray<Location>, result: LocationSyncResult): BatchAnswer => {
  const failedItems = result.nonSyncableList ?? []
  const status = result.status.trim()
  const isSuccess = /^success$/i.test(status)
  // A partial success says what failed; only one that counts and lists no failure is a success.
  const saysNoFailure = result.failedRequests === 0 && result.nonSyncableList != null
  const isPartial = /^partial[ _-]?success$/i.test(status) && (failedItems.length > 0 || saysNoFailure)
  const failedCount = result.failedRequests ?? failedItems.length
  const verdicts = items.map((item) =>
    failedItems.some((failed) => matchesItem(failed)(item)) ? rejectedVerdict : acceptedVerdict,
  )
  const rejectedCount = verdicts.filter((verdict) => verdict === rejectedVerdict).length
  const acceptedCount = items.length - rejectedCount
  const isConsistent =
    rejectedCount === failedCount &&
    failedItems.every((failed) => items.some(matchesItem(failed))) &&
    (result.successfulRequests ?? acceptedCount) >= acceptedCount &&
    (result.totalRequests ?? items.length) >= items.length
  return isConsistent && (isSuccess || isPartial || (acceptedCount === 0 && items.length > 0))
    ? { _tag: 'Verdicts', verdicts }
    : { _tag: 'Refused', reason: `the service reports ${formatStatus(status)} and does not say which`, tooLarge: false }
}

const formatStatus = (status: string): string => (/^[A-Z_ ]{1,40}$/i.test(status) ? status : 'an unknown status')

const sinkName = 'locations'

/** Operation 5: one request creates, updates and deactivates. It may be sent again, since that changes nothing. */
export const locationSink = defineSink<SinkTarget, Location>({
  name: sinkName,
  codec: Location,
  matchingKeys: ['code', 'codeType'],
  operations: ['update', 'soft_delete'],
  open: (target) =>
    TE.fromIO(() => {
      const list: LocationList = { listed: new Map(), unreadable: 0 }
      const announced = new Set<string>()
      return {
        prepare: (stream) =>
          pipe(
            checkMapping(stream, sinkName, Location, target.mapping[sinkName]),
            E.map(() => createPreparer(target, list, stream)),
          ),
        write: (items, isSuspect) => sendLocations(target, announced, items, isSuspect),
        isReachable: isServiceAnswering(target.api.syncLocations([])),
        finish: (isWhole) => reconcileLocations(target, list, isWhole),
      }
    }),
})

/** The locations of the input, rejected ones included; `unreadable`: the number of records without a readable code. */
type LocationList = { readonly listed: Map<string, LocationKey & { readonly active: boolean }>; unreadable: number }

const KeyColumns = t.partial({ code: t.string, codeType: t.string })

/** What identifies a location, and what decides whether it is active. */
const essentialAttributes = ['code', 'codeType', 'active']

const createPreparer = (target: SinkTarget, list: LocationList, { name, isDeletion }: InputStream) => {
  const { ledger } = target
  const rules = createAttributeRules(target, sinkName, name, essentialAttributes)
  const mapLocation = createRecordMapper(Location, rules)
  const mapKey = createRecordMapper(KeyColumns, rules)
  const reportMapping = createMappingReporter(target, rules, Location, name)
  const addToList = (location: Location): void => {
    const key = toLocationKey(location)
    if (O.isSome(ledger)) list.listed.set(formatLocationKey(key), { ...key, active: location.active === true })
  }
  /** A location whose record is wrong is on the list too, if its code can be read. */
  const addKeyToList = (columns: InputRecord): void => {
    const key = mapKey(columns)
    if (E.isLeft(key) || key.right.code === undefined) list.unreadable += 1
    else addToList({ ...key.right, active: true })
  }
  const toItem = (columns: InputRecord): E.Either<string, PreparedItem<Location>> =>
    pipe(
      mapLocation(columns),
      E.filterOrElse(
        ({ code }) => code != null,
        () => 'code is missing',
      ),
      E.map((location) => {
        const active = isDeletion || isTombstoneRecord(columns) ? false : (location.active ?? true)
        const item = { ...location, active }
        addToList(item)
        // The service may know a location by its code alone, so all records of a code are sent in their order.
        return { item, key: item.code ?? '' }
      }),
    )
  return (columns: InputRecord): E.Either<string, PreparedItem<Location>> => {
    reportMapping(columns)
    const prepared = toItem(columns)
    if (E.isLeft(prepared)) addKeyToList(columns)
    return prepared
  }
}

/** `announced`: the locations that this run has put into the ledger before their answer. */
const sendLocations = (
  { api, ledger, resend }: SinkTarget,
  announced: Set<string>,
  items: ReadonlyArray<Location>,
  isSuspect: boolean,
): TE.TaskEither<Failure, BatchAnswer> =>
  pipe(
    O.isSome(ledger) ? announceLocations(ledger.value, announced, items) : TE.right(undefined),
    TE.flatMap(() =>
      pipe(
        resend(isSuspect)(api.syncLocations(items)),
        TE.map((result) => toLocationAnswer(items, result)),
        TE.orElse((error) => TE.fromEither(toBatchAnswer('sync locations', error))),
      ),
    ),
    TE.chainFirst((answer) =>
      O.isSome(ledger) ? appendOutcomes(ledger.value, announced, items, answer) : TE.right(undefined),
    ),
  )

/** Whether the ledger holds the location as active for certain. */
const isKnownActive = ({ active }: LocationLedger, key: string): boolean => {
  const known = active.get(key)
  return known !== undefined && isCertain(known)
}

const writeLedger = (write: () => Promise<void>): TE.TaskEither<Failure, void> =>
  TE.tryCatch(write, (error) =>
    configFailure(
      `reconcile.ledger_path cannot be written: ${error instanceof Error ? error.message : String(error)}. Make room, or name another file.`,
    ),
  )

/** Notes new locations before they are sent: if the answer is lost, or the run is killed, the next run knows that they may be active. */
const announceLocations = (
  ledger: LocationLedger,
  announced: Set<string>,
  items: ReadonlyArray<Location>,
): TE.TaskEither<Failure, void> => {
  const unknown = items
    .filter(({ active }) => active === true)
    .map(toLocationKey)
    .filter((location) => {
      const key = formatLocationKey(location)
      return !ledger.active.has(key) && !announced.has(key)
    })
  for (const location of unknown) announced.add(formatLocationKey(location))
  return unknown.length === 0 ? TE.right(undefined) : writeLedger(() => ledger.announce(unknown))
}

/** Notes what was accepted, and forgets what was refused and was not known to be active. */
const appendOutcomes = (
  ledger: LocationLedger,
  announced: Set<string>,
  items: ReadonlyArray<Location>,
  answer: BatchAnswer,
): TE.TaskEither<Failure, void> => {
  const isRefusedAlone = answer._tag === 'Refused' && items.length === 1
  const verdicts = answer._tag === 'Verdicts' ? answer.verdicts : []
  const entries = items.flatMap((item, index) => {
    const location = toLocationKey(item)
    const key = formatLocationKey(location)
    if (verdicts[index]?._tag === 'Accepted') return [{ ...location, active: item.active === true }]
    const isRejected = isRefusedAlone || verdicts[index]?._tag === 'Rejected'
    if (!isRejected || isKnownActive(ledger, key) || !(announced.delete(key) || ledger.active.has(key))) return []
    return [{ ...location, active: false }]
  })
  return entries.length === 0 ? TE.right(undefined) : writeLedger(() => ledger.append(entries))
}

const noItems: FinalItems<Location> = { items: [], notes: [] }
const warnOnly = (message: string): E.Either<Failure, FinalItems<Location>> =>
  E.right({ items: [], notes: [{ level: 'warn', message }] })

/** Deactivates the locations of the ledger that are not on a complete list. */
const reconcileLocations = (
  { ledger, maxDeactivationsPercent, dryRun }: SinkTarget,
  list: LocationList,
  isWhole: boolean,
): E.Either<Failure, FinalItems<Location>> => {
  if (O.isNone(ledger)) return E.right(noItems)
  if (!isWhole)
    return warnOnly('locations: the input was no complete list, so no location is deactivated for not being on it.')
  if (list.unreadable > 0)
    return warnOnly(
      `locations: ${list.unreadable} records have no readable code and may be of any location, so no location is deactivated for not being on the list.`,
    )
  const { active } = ledger.value
  const plan = planReconcile(active, list.listed)
  return pipe(
    checkDeactivations(plan, [...active.values()].filter(isCertain).length, maxDeactivationsPercent),
    E.map(() => ({
      items: plan.deactivations.map((key) => ({ item: toDeactivation(key), key: formatLocationKey(key) })),
      notes: [...formatPlan(plan, dryRun), ...formatKept(plan)],
    })),
  )
}

const toDeactivation = ({ code, codeType }: LocationKey): Location => ({
  code,
  ...defined({ codeType: codeType ?? undefined }),
  active: false,
})

/** `listAll`: lists every change, not only deactivations. */
const formatPlan = ({ creates, updates, deactivations }: ReconcilePlan, listAll: boolean): ReadonlyArray<SinkNote> => {
  const list = (verb: string, locations: ReadonlyArray<LocationKey>): ReadonlyArray<SinkNote> =>
    locations.map((location) => ({ level: 'info', message: `locations: ${verb} ${formatLocation(location)}` }))
  return [
    {
      level: 'info',
      message: `locations: ${creates.length} created, ${updates.length} updated, ${deactivations.length} to deactivate.`,
    },
    ...(listAll ? [...list('create', creates), ...list('update', updates)] : []),
    ...list('deactivate', deactivations),
  ]
}

const formatKept = ({ kept }: ReconcilePlan): ReadonlyArray<SinkNote> =>
  kept.map((location) => ({
    level: 'warn',
    message: `locations: ${formatLocation(location)} is not on the list, but its code is, with another codeType. It is not deactivated, since the service may know both as one; send it with active false to deactivate it.`,
  }))
