import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { Location, type LocationSyncResult } from '../api'
import {
  annotate,
  type BatchAnswer,
  defineSink,
  type Failure,
  type FinalItems,
  type InputExtent,
  type InputRecord,
  type InputStream,
  type PreparedItem,
  type RecordVerdict,
} from '../cdk'
import {
  checkDeactivations,
  formatKept,
  formatLocationKey,
  formatPlan,
  isCertain,
  type LocationLedger,
  planReconcile,
  type ServiceList,
  toDeactivation,
  toLocationKey,
  writeLedger,
} from './ledger'
import {
  checkMapping,
  createAttributeRules,
  createMappingReporter,
  createRecordMapper,
  isTombstoneRecord,
} from './mapping'
import { planAgainstService, readServiceListOnce, verifyLocations } from './service-list'
import { isServiceAnswering, type SinkTarget, toBatchAnswer } from './target'

const acceptedVerdict: RecordVerdict = { _tag: 'Accepted' }
const rejectedVerdict: RecordVerdict = {
  _tag: 'Rejected',
  reason: 'the service could not process it (nonSyncableList)',
}

/**
 * True if an item of nonSyncableList means this location: by its code, and by its type if both have one. The item's
 * form is not specified.
 */
const matchesItem =
  (item: unknown) =>
  ({ code, codeType }: Location): boolean => {
    if (typeof item === 'string' || typeof item === 'number') return String(item) === code
    if (!t.UnknownRecord.is(item) || item.code == null || String(item.code) !== code) return false
    return typeof item.codeType !== 'string' || codeType == null || item.codeType === codeType
  }

/**
 * Interprets the answer to locations that differ in code and type. A location counts as accepted only if the status
 * reports success and no count contradicts it. If failures cannot be assigned to locations, the batch counts as
 * refused.
 */
export const toLocationAnswer = (items: ReadonlyArray<Location>, result: LocationSyncResult): BatchAnswer => {
  const failedItems = result.nonSyncableList ?? []
  const status = result.status.trim()
  const isSuccess = /^success$/i.test(status)
  // A partial success says what failed. It counts as success only if it counts and lists no failure.
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

/** Operation 5: one request creates, updates and deactivates. Repeating it changes nothing, so it may be sent again. */
export const locationSink = defineSink<SinkTarget, Location>({
  name: sinkName,
  // The service's specification names no required attribute, but only the code identifies a location.
  codec: annotate({ required: ['code'] })(Location),
  matchingKeys: [['code'], ['code', 'codeType']],
  operations: ['update', 'soft_delete'],
  open: (target) =>
    TE.fromIO(() => {
      const list: LocationList = { listed: new Map(), unreadable: 0, isUsed: false }
      const known = readKnowledge(target)
      const accepted = new Map<string, Location>()
      const before = readServiceListOnce(target)
      return {
        prepare: (stream) =>
          pipe(
            checkMapping(stream, sinkName, Location, target.mapping[sinkName]),
            E.map(() => {
              list.isUsed = true
              return createPreparer(target, list, stream)
            }),
          ),
        write: (items, isSuspect) =>
          pipe(
            TE.fromTask(before.read),
            TE.flatMap(() => sendLocations(target, known, items, isSuspect)),
            TE.chainFirstIOK((answer) => () => {
              noteAccepted(accepted, items, answer)
              noteRejected(target.rejectedCodes, items, answer)
            }),
          ),
        isReachable: isServiceAnswering(target.api.syncLocations([])),
        beforeFinish: async () => (list.isUsed ? before.read() : undefined),
        finish: (extent) => reconcileLocations(target, list, extent, { service: before.list(), accepted }),
        verify: verifyLocations(target, accepted, before.list),
      }
    }),
})

const noteAccepted = (accepted: Map<string, Location>, items: ReadonlyArray<Location>, answer: BatchAnswer): void => {
  if (answer._tag !== 'Verdicts') return
  for (const [index, item] of items.entries())
    if (answer.verdicts[index]?._tag === 'Accepted') accepted.set(formatLocationKey(toLocationKey(item)), item)
}

/** A location that a later record of the run writes is no longer rejected. */
const noteRejected = (codes: Set<string>, items: ReadonlyArray<Location>, answer: BatchAnswer): void => {
  const isRefusedAlone = answer._tag === 'Refused' && items.length === 1
  for (const [index, { code }] of items.entries()) {
    const verdict = answer._tag === 'Verdicts' ? answer.verdicts[index]?._tag : undefined
    if (code == null) continue
    if (isRefusedAlone || verdict === 'Rejected') codes.add(code)
    else if (verdict === 'Accepted') codes.delete(code)
  }
}

/**
 * The locations of the input by `formatLocationKey`, including rejected ones; `unreadable`: the number of records
 * without a readable code; `isUsed`: some stream holds locations.
 */
type LocationList = { readonly listed: Map<string, Location>; unreadable: number; isUsed: boolean }

const KeyColumns = t.partial({ code: t.string, codeType: t.string })

/** These identify a location and decide if it is active. */
const essentialAttributes = ['code', 'codeType', 'active']

const createPreparer = (target: SinkTarget, list: LocationList, { name, isDeletion }: InputStream) => {
  const { ledger, serviceList = O.none } = target
  const rules = createAttributeRules(target, sinkName, name, essentialAttributes)
  const mapLocation = createRecordMapper(Location, rules)
  const mapKey = createRecordMapper(KeyColumns, rules)
  const reportMapping = createMappingReporter(target, rules, Location, name)
  const addToList = (location: Location): void => {
    const key = toLocationKey(location)
    // A ledger alone plans by keys.
    if (O.isSome(serviceList)) list.listed.set(formatLocationKey(key), location)
    else if (O.isSome(ledger)) list.listed.set(formatLocationKey(key), { ...key, active: location.active !== false })
  }
  /** A location with an invalid record is on the list too, if its code can be read. */
  const addKeyToList = (columns: InputRecord): void => {
    const key = mapKey(columns)
    if (E.isLeft(key) || key.right.code === undefined) {
      list.unreadable += 1
      return
    }
    target.rejectedCodes.add(key.right.code)
    addToList(key.right)
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
        // The service may identify a location by its code alone, so all records of a code are sent in order.
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

/**
 * What the ledger knows about locations that may be active. new: announced by this run and never sent before; unknown:
 * it was sent, but its answer was lost.
 */
type LedgerKnowledge = Map<string, 'active' | 'unknown' | 'new'>

const readKnowledge = ({ ledger }: SinkTarget): LedgerKnowledge =>
  new Map(
    O.isNone(ledger)
      ? []
      : [...ledger.value.active].map(([key, location]) => [key, isCertain(location) ? 'active' : 'unknown']),
  )

const sendLocations = (
  { api, ledger, resend }: SinkTarget,
  known: LedgerKnowledge,
  items: ReadonlyArray<Location>,
  isSuspect: boolean,
): TE.TaskEither<Failure, BatchAnswer> =>
  pipe(
    O.isSome(ledger) ? announceLocations(ledger.value, known, items) : TE.right(undefined),
    TE.flatMap(() =>
      pipe(
        resend(isSuspect)(api.syncLocations(items)),
        TE.map((result) => toLocationAnswer(items, result)),
        TE.orElse((error) => TE.fromEither(toBatchAnswer('sync locations', error))),
      ),
    ),
    TE.chainFirst((answer) =>
      O.isSome(ledger) ? appendOutcomes(ledger.value, known, items, answer) : TE.right(undefined),
    ),
  )

/**
 * Records new locations before they are sent. If the answer is lost or the run is killed, the next run knows that they
 * may be active.
 */
const announceLocations = (
  ledger: LocationLedger,
  known: LedgerKnowledge,
  items: ReadonlyArray<Location>,
): TE.TaskEither<Failure, void> => {
  const added = items
    .filter(({ active }) => active === true)
    .map(toLocationKey)
    .filter((location) => !known.has(formatLocationKey(location)))
  for (const location of added) known.set(formatLocationKey(location), 'new')
  return added.length === 0 ? TE.right(undefined) : writeLedger(() => ledger.announce(added))
}

/**
 * Records what was accepted, and removes what was refused unless an earlier record of that location was or may have
 * been accepted.
 */
const appendOutcomes = (
  ledger: LocationLedger,
  known: LedgerKnowledge,
  items: ReadonlyArray<Location>,
  answer: BatchAnswer,
): TE.TaskEither<Failure, void> => {
  const isRefusedAlone = answer._tag === 'Refused' && items.length === 1
  const verdicts = answer._tag === 'Verdicts' ? answer.verdicts : []
  const entries = items.flatMap((item, index) => {
    const location = toLocationKey(item)
    const key = formatLocationKey(location)
    const isAccepted = verdicts[index]?._tag === 'Accepted'
    const isRejected = isRefusedAlone || verdicts[index]?._tag === 'Rejected'
    if (answer._tag === 'Unanswered' && known.get(key) === 'new') known.set(key, 'unknown')
    if (!isAccepted && !(isRejected && known.get(key) === 'new')) return []
    const active = isAccepted && item.active === true
    if (active) known.set(key, 'active')
    else known.delete(key)
    return [{ ...location, active }]
  })
  return entries.length === 0 ? TE.right(undefined) : writeLedger(() => ledger.append(entries))
}

const noItems: FinalItems<Location> = { items: [], notes: [] }

/** Why missing locations are not deactivated; undefined if they can be. */
const findObstacle = (extent: InputExtent, unreadable: number): string | undefined => {
  switch (extent) {
    case 'empty':
      return 'locations: no record came, and an empty list deactivates nothing.'
    case 'unsaid':
      return (
        'locations: the catalog has no generation_id, so the list may be incomplete. ' +
        'No location is deactivated for being missing from it.'
      )
    case 'changes':
      return 'locations: the input was not a complete list, so no location is deactivated for being missing from it.'
    case 'whole':
      return unreadable === 0
        ? undefined
        : `locations: ${unreadable} records have no readable code and may be of any location, ` +
            'so no location is deactivated for being missing from the list.'
  }
}

/**
 * Plans against the service's list if it was read, otherwise against the ledger, and deactivates what a complete list
 * no longer has.
 */
const reconcileLocations = (
  { ledger, deactivateUnlisted = false, maxDeactivationsPercent, dryRun }: SinkTarget,
  list: LocationList,
  extent: InputExtent,
  {
    service,
    accepted,
  }: { readonly service: ServiceList | undefined; readonly accepted: ReadonlyMap<string, Location> },
): E.Either<Failure, FinalItems<Location>> => {
  if (O.isNone(ledger) && service === undefined) return E.right(noItems)
  const obstacle = findObstacle(extent, list.unreadable)
  const mayDeactivate = O.isSome(ledger) || deactivateUnlisted
  const warning = obstacle !== undefined && mayDeactivate ? [{ level: 'warn', message: obstacle } as const] : []
  if (service !== undefined)
    return pipe(
      planAgainstService({
        service,
        input: list.listed,
        isComplete: obstacle === undefined,
        ledger: O.map(({ active }: LocationLedger) => active)(ledger),
        deactivateUnlisted,
        maxDeactivationsPercent,
        dryRun,
        isAccepted: (key) => accepted.has(key),
      }),
      E.map(({ items, notes }) => ({ items, notes: [...notes, ...warning] })),
    )
  if (O.isNone(ledger) || obstacle !== undefined) return E.right({ items: [], notes: warning })
  const { active } = ledger.value
  const plan = planReconcile(active, toListedKeys(list))
  return pipe(
    checkDeactivations(
      plan.deactivations.filter(isCertain).length,
      [...active.values()].filter(isCertain).length,
      maxDeactivationsPercent,
    ),
    E.map(() => ({
      items: plan.deactivations.map((key) => ({ item: toDeactivation(key), key: formatLocationKey(key) })),
      notes: [...formatPlan(plan, dryRun), ...formatKept(plan)],
    })),
  )
}

const toListedKeys = ({ listed }: LocationList) =>
  new Map(
    [...listed].map(([key, location]) => [key, { ...toLocationKey(location), active: location.active !== false }]),
  )
