import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { Location, type LocationSyncResult } from '../api'
import {
  type BatchAnswer,
  configFailure,
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

/** Whether an item of nonSyncableList, whose form is not shown, means this location: by its code, and its type where both name one. */
const matchesItem =
  (item: unknown) =>
  ({ code, codeType }: Location): boolean => {
    if (typeof item === 'string') return item === code
    if (!t.UnknownRecord.is(item) || item.code !== code) return false
    return typeof item.codeType !== 'string' || codeType == null || item.codeType === codeType
  }

/** What a result says of these locations, which must differ in code and type. Failures that cannot be told apart leave the batch refused. */
export const toLocationAnswer = (items: ReadonlyArray<Location>, result: LocationSyncResult): BatchAnswer => {
  const named = result.nonSyncableList ?? []
  const success = /^success$/i.test(result.status)
  const failed = result.failedRequests ?? (named.length > 0 || success ? named.length : items.length)
  if (failed === 0 && named.length === 0) return { _tag: 'Verdicts', verdicts: items.map(() => acceptedVerdict) }
  const verdicts = items.map((item) =>
    named.some((one) => matchesItem(one)(item)) ? rejectedVerdict : acceptedVerdict,
  )
  const told = verdicts.filter((verdict) => verdict === rejectedVerdict).length
  const clear = told === failed && named.every((one) => items.some(matchesItem(one)))
  return clear
    ? { _tag: 'Verdicts', verdicts }
    : { _tag: 'Refused', reason: `the service reports ${result.status} and does not tell which`, tooLarge: false }
}

const sinkName = 'locations'

/** Operation 5: one sync creates, updates and deactivates. Sent again, locations are what they were. */
export const locationSink = defineSink<SinkTarget, Location>({
  name: sinkName,
  codec: Location,
  matchingKeys: ['code', 'codeType'],
  operations: ['update', 'soft_delete'],
  open: (target) =>
    TE.fromIO(() => {
      const list: LocationList = { listed: new Map(), unreadable: 0 }
      return {
        prepare: (inlet) =>
          pipe(
            checkMapping(inlet, sinkName, Location, target.mapping[sinkName]),
            E.map(() => createPreparer(target, list, inlet.isDeletion)),
          ),
        write: (items, suspected) => sendLocations(target, items, suspected),
        isReachable: isServiceAnswering(target.api.syncLocations([])),
        finish: (whole) => reconcileLocations(target, list, whole),
      }
    }),
})

/** What the input lists, whatever becomes of its records. */
type LocationList = { readonly listed: Map<string, LocationKey & { readonly active: boolean }>; unreadable: number }

const KeyColumns = t.partial({ code: t.string, codeType: t.string })

const createPreparer = ({ mapping, ledger }: SinkTarget, list: LocationList, deletes: boolean) => {
  const toMapped = createRecordMapper(Location, mapping[sinkName])
  const toKey = createRecordMapper(KeyColumns, mapping[sinkName])
  const enlist = (location: Location): void => {
    const place = toLocationKey(location)
    if (O.isSome(ledger)) list.listed.set(formatLocationKey(place), { ...place, active: location.active === true })
  }
  /** A location is listed by its code, be the rest of its record wrong. */
  const enlistByCode = (columns: InputRecord): void => {
    const key = toKey(columns)
    if (E.isLeft(key) || key.right.code === undefined) list.unreadable += 1
    else enlist({ ...key.right, active: true })
  }
  const judged = (columns: InputRecord): E.Either<string, PreparedItem<Location>> =>
    pipe(
      toMapped(columns),
      E.filterOrElse(
        ({ code }) => code != null,
        () => 'code is missing',
      ),
      E.map((mapped) => {
        const item = { ...mapped, active: deletes || isTombstoneRecord(columns) ? false : (mapped.active ?? true) }
        enlist(item)
        return { item, key: formatLocationKey(toLocationKey(item)) }
      }),
    )
  return (columns: InputRecord): E.Either<string, PreparedItem<Location>> => {
    const prepared = judged(columns)
    if (E.isLeft(prepared)) enlistByCode(columns)
    return prepared
  }
}

const sendLocations = (
  { api, ledger, resend }: SinkTarget,
  items: ReadonlyArray<Location>,
  suspected: boolean,
): TE.TaskEither<Failure, BatchAnswer> =>
  pipe(
    resend(suspected)(api.syncLocations(items)),
    TE.map((result) => toLocationAnswer(items, result)),
    TE.orElse((error) => TE.fromEither(toBatchAnswer('sync locations', error))),
    TE.chainFirst((answer) =>
      O.isSome(ledger) ? appendToLedger(ledger.value.append, items, answer) : TE.right(undefined),
    ),
  )

const appendToLedger = (
  note: (entries: ReadonlyArray<LocationKey & { readonly active: boolean }>) => Promise<void>,
  items: ReadonlyArray<Location>,
  answer: BatchAnswer,
): TE.TaskEither<Failure, void> => {
  const verdicts = answer._tag === 'Verdicts' ? answer.verdicts : []
  const accepted = items.filter((_, index) => verdicts[index]?._tag === 'Accepted')
  return accepted.length === 0
    ? TE.right(undefined)
    : TE.tryCatch(
        () => note(accepted.map((item) => ({ ...toLocationKey(item), active: item.active === true }))),
        (error) =>
          configFailure(
            `reconcile.ledger_path cannot be written: ${error instanceof Error ? error.message : String(error)}. Make room, or name another file.`,
          ),
      )
}

const emptyRest: FinalItems<Location> = { items: [], notes: [] }
const restWithNote = (level: SinkNote['level'], message: string): E.Either<Failure, FinalItems<Location>> =>
  E.right({ ...emptyRest, notes: [{ level, message }] })

/** Deactivates what the ledger has and a complete list has not. */
const reconcileLocations = (
  { ledger, maxDeactivationsPercent, dryRun }: SinkTarget,
  list: LocationList,
  whole: boolean,
) => {
  if (O.isNone(ledger)) return E.right(emptyRest)
  if (!whole)
    return restWithNote(
      'warn',
      'locations: the input was no complete list, so nothing is deactivated that it does not name.',
    )
  if (list.unreadable > 0)
    return restWithNote(
      'warn',
      `locations: ${list.unreadable} records have no code that can be read and may be of any location, so nothing is deactivated that the list does not name.`,
    )
  const { active } = ledger.value
  const made = planReconcile(active, list.listed)
  return pipe(
    checkDeactivations(made, active.size, maxDeactivationsPercent),
    E.map(() => ({
      items: made.deactivations.map((place) => ({ item: toDeactivation(place), key: formatLocationKey(place) })),
      notes: formatPlan(made, dryRun),
    })),
  )
}

const toDeactivation = ({ code, codeType }: LocationKey): Location => ({
  code,
  ...(codeType === null ? {} : { codeType }),
  active: false,
})

/** `whole`: each location, and not only those that are to go. */
const formatPlan = ({ creates, updates, deactivations }: ReconcilePlan, whole: boolean): ReadonlyArray<SinkNote> => {
  const each = (verb: string, places: ReadonlyArray<LocationKey>): ReadonlyArray<SinkNote> =>
    places.map((place) => ({ level: 'info', message: `locations: ${verb} ${formatLocation(place)}` }))
  const count = (places: ReadonlyArray<LocationKey>, what: string) => `${places.length} ${what}`
  return [
    {
      level: 'info',
      message: `locations: ${count(creates, 'created')}, ${count(updates, 'updated')}, ${count(deactivations, 'to deactivate')}.`,
    },
    ...(whole ? [...each('create', creates), ...each('update', updates)] : []),
    ...each('deactivate', deactivations),
  ]
}
