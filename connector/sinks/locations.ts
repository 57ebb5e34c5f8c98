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
  type PreparedItem,
  type RecordVerdict,
  type SinkNote,
} from '../cdk'
import { isServiceAnswering, toBatchAnswer } from './batch-errors'
import {
  checkDeactivations,
  formatLocation,
  formatLocationKey,
  type LocationKey,
  type LocationLedger,
  planReconcile,
  type ReconcilePlan,
  toLocationKey,
} from './ledger'
import { checkMapping, createRecordMapper, isTombstoneRecord } from './mapping'
import type { SinkTarget } from './target'

const acceptedVerdict: RecordVerdict = { _tag: 'Accepted' }
const rejectedVerdict: RecordVerdict = {
  _tag: 'Rejected',
  reason: 'the service could not process it (nonSyncableList)',
}

/** Whether an item of nonSyncableList means this location: by its code, and by its type if both have one. The item's form is not specified. */
const matchesItem =
  (item: unknown) =>
  ({ code, codeType }: Location): boolean => {
    if (typeof item === 'string') return item === code
    if (!t.UnknownRecord.is(item) || item.code !== code) return false
    return typeof item.codeType !== 'string' || codeType == null || item.codeType === codeType
  }

/** The answer to locations that differ in code and type. If failures cannot be assigned to locations, the batch counts as refused. */
export const toLocationAnswer = (items: ReadonlyArray<Location>, result: LocationSyncResult): BatchAnswer => {
  const failedItems = result.nonSyncableList ?? []
  const isSuccess = /^success$/i.test(result.status)
  const failedCount = result.failedRequests ?? (failedItems.length > 0 || isSuccess ? failedItems.length : items.length)
  if (failedCount === 0 && failedItems.length === 0)
    return { _tag: 'Verdicts', verdicts: items.map(() => acceptedVerdict) }
  const verdicts = items.map((item) =>
    failedItems.some((failed) => matchesItem(failed)(item)) ? rejectedVerdict : acceptedVerdict,
  )
  const rejectedCount = verdicts.filter((verdict) => verdict === rejectedVerdict).length
  return rejectedCount === failedCount && failedItems.every((failed) => items.some(matchesItem(failed)))
    ? { _tag: 'Verdicts', verdicts }
    : { _tag: 'Refused', reason: `the service reports ${result.status} and does not say which`, tooLarge: false }
}

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
      return {
        prepare: (stream) =>
          pipe(
            checkMapping(stream, sinkName, Location, target.mapping[sinkName]),
            E.map(() => createPreparer(target, list, stream.isDeletion)),
          ),
        write: (items, isSuspect) => sendLocations(target, items, isSuspect),
        isReachable: isServiceAnswering(target.api.syncLocations([])),
        finish: (isWhole) => reconcileLocations(target, list, isWhole),
      }
    }),
})

/** The locations of the input, rejected ones included; `unreadable`: the number of records without a readable code. */
type LocationList = { readonly listed: Map<string, LocationKey & { readonly active: boolean }>; unreadable: number }

const KeyColumns = t.partial({ code: t.string, codeType: t.string })

const createPreparer = ({ mapping, ledger }: SinkTarget, list: LocationList, isDeletion: boolean) => {
  const mapLocation = createRecordMapper(Location, mapping[sinkName])
  const mapKey = createRecordMapper(KeyColumns, mapping[sinkName])
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
        return { item, key: formatLocationKey(toLocationKey(item)) }
      }),
    )
  return (columns: InputRecord): E.Either<string, PreparedItem<Location>> => {
    const prepared = toItem(columns)
    if (E.isLeft(prepared)) addKeyToList(columns)
    return prepared
  }
}

const sendLocations = (
  { api, ledger, resend }: SinkTarget,
  items: ReadonlyArray<Location>,
  isSuspect: boolean,
): TE.TaskEither<Failure, BatchAnswer> =>
  pipe(
    resend(isSuspect)(api.syncLocations(items)),
    TE.map((result) => toLocationAnswer(items, result)),
    TE.orElse((error) => TE.fromEither(toBatchAnswer('sync locations', error))),
    TE.chainFirst((answer) =>
      O.isSome(ledger) ? appendToLedger(ledger.value.append, items, answer) : TE.right(undefined),
    ),
  )

const appendToLedger = (
  append: LocationLedger['append'],
  items: ReadonlyArray<Location>,
  answer: BatchAnswer,
): TE.TaskEither<Failure, void> => {
  const verdicts = answer._tag === 'Verdicts' ? answer.verdicts : []
  const accepted = items.filter((_, index) => verdicts[index]?._tag === 'Accepted')
  return accepted.length === 0
    ? TE.right(undefined)
    : TE.tryCatch(
        () => append(accepted.map((item) => ({ ...toLocationKey(item), active: item.active === true }))),
        (error) =>
          configFailure(
            `reconcile.ledger_path cannot be written: ${error instanceof Error ? error.message : String(error)}. Make room, or name another file.`,
          ),
      )
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
    checkDeactivations(plan, active.size, maxDeactivationsPercent),
    E.map(() => ({
      items: plan.deactivations.map((key) => ({ item: toDeactivation(key), key: formatLocationKey(key) })),
      notes: formatPlan(plan, dryRun),
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
