import { createHash } from 'node:crypto'
import * as O from 'fp-ts/Option'
import { toInstant } from '../../cdk'
import type { CutRecord } from '../../export'
import { floorToSecond } from '../../reading'
import type { EntityState } from './state'

/** The most rows up to the cursor that are held back while an entity is read page by page. */
const maxHeldRecords = 1000

/** The rows of a window or page to send, and the entity's state after it; no state while rows are held back. */
export type TakenRows = { readonly rows: ReadonlyArray<CutRecord>; readonly entityState: O.Option<EntityState> }

/**
 * Where rows come from: a window that ends at `to` (undefined: the last one), or a page of a reading of the whole
 * entity.
 */
type RowsOrigin = { readonly to: number | undefined; readonly scroll?: undefined } | { readonly scroll: Scroll }

type Scroll = { readonly reading: number; readonly isEnd: boolean }

/**
 * Tracks one entity while its windows arrive in order of time, or its pages in any order and in several readings. Rows
 * up to the cursor were sent by an earlier run: they are held back until all have arrived, and sent again only if their
 * digest differs from the one in the state. If there are too many to hold, the next reading sends them. Without a next
 * reading, or if it lacks one of them, the cursor stays and the next run sends them. Times in milliseconds. Its members
 * change in place.
 */
type EntityTracker = {
  /** Earlier rows belong to no window of this run. */
  readonly from: number
  readonly lookback: number
  /** The cursor; -Infinity without one. */
  readonly sentUpTo: number
  /** The digest from the state. */
  readonly digest: string
  readonly ids: Set<string>
  /** Hashes by id: of the rows that `digest` covers, and of those that the next state's digest covers. */
  readonly oldHashes: Map<string, string>
  readonly nextHashes: Map<string, string>
  heldRecords: CutRecord[]
  /** How many rows up to the cursor have arrived, held or not. */
  oldCount: number
  lastReading: number
  /** The ids of the rows up to the cursor that this reading sends again; undefined: none. */
  resentIds: Set<string> | undefined
  /** Rows up to the cursor are still awaited. */
  isComparing: boolean
}

export const trackEntity = (
  cursor: O.Option<number>,
  digest: string,
  lookback: number,
  from: number,
): EntityTracker => ({
  from,
  lookback,
  sentUpTo: O.getOrElse(() => Number.NEGATIVE_INFINITY)(cursor),
  digest,
  ids: new Set(),
  oldHashes: new Map(),
  nextHashes: new Map(),
  heldRecords: [],
  oldCount: 0,
  lastReading: 0,
  resentIds: undefined,
  isComparing: O.isSome(cursor),
})

/** A digest (66 bits) of the hashes of rows by id, independent of their order. */
const digestRows = (rows: ReadonlyMap<string, string>): string =>
  createHash('sha256')
    .update(
      [...rows]
        .map(([id, hash]) => `${id} ${hash}`)
        .sort()
        .join('\n'),
    )
    .digest('base64url')
    .slice(0, 11)

const hashRow = (text: Uint8Array): string => createHash('sha256').update(text).digest('base64url').slice(0, 11)

/** Takes a row. Returns true if it is to be sent now. `cutoff`: the time up to which the run reads. */
const isNew = (tracker: EntityTracker, record: CutRecord, cutoff: number): boolean => {
  const { from, lookback, sentUpTo, ids, oldHashes, nextHashes, heldRecords } = tracker
  if (record.modifiedTime < from || record.modifiedTime > cutoff || ids.has(record.id)) return false
  ids.add(record.id)
  const hash = hashRow(record.json)
  if (record.modifiedTime >= floorToSecond(cutoff - lookback)) nextHashes.set(record.id, hash)
  if (record.modifiedTime > sentUpTo) return true
  if (record.modifiedTime >= floorToSecond(sentUpTo - lookback)) oldHashes.set(record.id, hash)
  heldRecords.push(record)
  tracker.oldCount += 1
  return false
}

/** The rows up to the cursor that this reading sends again and that have not been sent yet. */
const takeResent = (
  { resentIds, sentUpTo, ids }: EntityTracker,
  records: ReadonlyArray<CutRecord>,
): ReadonlyArray<CutRecord> =>
  records.filter(({ id, modifiedTime }) => {
    if (resentIds === undefined || modifiedTime > sentUpTo || !ids.has(id) || resentIds.has(id)) return false
    resentIds.add(id)
    return true
  })

const holdsAll = ({ heldRecords, oldCount }: EntityTracker): boolean => heldRecords.length === oldCount

const hasChanged = ({ isComparing, oldHashes, digest }: EntityTracker): boolean =>
  isComparing && digestRows(oldHashes) !== digest

const takePage = (
  tracker: EntityTracker,
  records: ReadonlyArray<CutRecord>,
  { reading, isEnd }: Scroll,
  cutoff: number,
): TakenRows => {
  if (reading > tracker.lastReading) {
    if (!holdsAll(tracker) && hasChanged(tracker)) tracker.resentIds = new Set()
    tracker.lastReading = reading
  }
  const newRecords = records.filter((record) => isNew(tracker, record, cutoff))
  if (tracker.heldRecords.length > maxHeldRecords) tracker.heldRecords = []
  const rows = [...newRecords, ...takeResent(tracker, records)]
  if (!isEnd) return { rows, entityState: O.none }
  const isChanged = hasChanged(tracker)
  const isSent = !isChanged || holdsAll(tracker) || tracker.resentIds?.size === tracker.oldCount
  return {
    rows: isChanged && holdsAll(tracker) ? [...tracker.heldRecords, ...rows] : rows,
    entityState: O.some(
      isSent
        ? { fromDate: toInstant(cutoff), digest: digestRows(tracker.nextHashes) }
        : { fromDate: toInstant(tracker.sentUpTo), digest: '' },
    ),
  }
}

const takeWindow = (
  tracker: EntityTracker,
  records: ReadonlyArray<CutRecord>,
  to: number | undefined,
  cutoff: number,
): TakenRows => {
  const { sentUpTo } = tracker
  const newRecords = records.filter((record) => isNew(tracker, record, cutoff))
  const hasAllOld = tracker.isComparing && (to === undefined || to > sentUpTo)
  const changedRecords = hasAllOld && hasChanged(tracker) ? tracker.heldRecords : []
  if (hasAllOld) {
    tracker.isComparing = false
    tracker.heldRecords = []
  }
  // Windows overlap by a millisecond.
  const nextCursor = to === undefined ? cutoff : Math.max(sentUpTo, to - 1)
  return {
    rows: [...changedRecords, ...newRecords],
    entityState: tracker.isComparing
      ? O.none
      : O.some({ fromDate: toInstant(nextCursor), digest: to === undefined ? digestRows(tracker.nextHashes) : '' }),
  }
}

/** Takes the rows of a window or page of one entity. `cutoff`: the time up to which the run reads. */
export type TakeRows = (records: ReadonlyArray<CutRecord>, origin: RowsOrigin, cutoff: number) => TakenRows

export const takeRows =
  (tracker: EntityTracker): TakeRows =>
  (records, origin, cutoff) =>
    origin.scroll === undefined
      ? takeWindow(tracker, records, origin.to, cutoff)
      : takePage(tracker, records, origin.scroll, cutoff)
