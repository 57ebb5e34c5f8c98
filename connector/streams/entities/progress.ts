import * as O from 'fp-ts/Option'
import { toInstant } from '../../api/model/scalar'
import type { CutRecord } from '../../api/page'
import { floorToSecond } from '../../api/scan/cursor'
import { digestRows, type EntityPartition, hashRow } from './state'

const second = 1000

/** The `fromDate` of an entity's next reading in milliseconds; a second early, so that `>` and `>=` serve the same rows. */
export const nextWindowFrom = (cursor: O.Option<number>, startDate: number, lookback: number): number =>
  floorToSecond(O.isNone(cursor) ? startDate : cursor.value - lookback) - second

/** What of a window leaves, and where the entity stands after it, if that can be said. */
export type PartitionRows = { readonly rows: ReadonlyArray<CutRecord>; readonly partition: O.Option<EntityPartition> }

/**
 * One entity while its windows come in, in the order of time. Rows up to the cursor were sent before: they are held until all of
 * them are there, and leave only where their digest is not the one that was kept. `lookback` in milliseconds.
 */
export const trackPartition = (cursor: O.Option<number>, digest: string, lookback: number) => {
  const ids = new Set<string>()
  const old = new Map<string, string>()
  const next = new Map<string, string>()
  let held: CutRecord[] = []
  let comparing = O.isSome(cursor)
  const sentUpTo = O.isSome(cursor) ? cursor.value : Number.NEGATIVE_INFINITY

  const isNew = (cut: CutRecord, until: number): boolean => {
    if (cut.modifiedTime > until || ids.has(cut.id)) return false
    ids.add(cut.id)
    const hash = hashRow(cut.json)
    if (cut.modifiedTime >= floorToSecond(until - lookback)) next.set(cut.id, hash)
    if (cut.modifiedTime > sentUpTo) return true
    if (cut.modifiedTime >= floorToSecond(sentUpTo - lookback)) old.set(cut.id, hash)
    held.push(cut)
    return false
  }

  /** `to`: where the window ends, none if it is the last; `until`: the run's signpost. Milliseconds. */
  return (cuts: ReadonlyArray<CutRecord>, to: number | undefined, until: number): PartitionRows => {
    const fresh = cuts.filter((cut) => isNew(cut, until))
    const compared = comparing && (to === undefined || to > sentUpTo)
    const again = compared && digestRows(old) !== digest ? held : []
    if (compared) {
      comparing = false
      held = []
    }
    // Windows overlap by a millisecond.
    const reached = to === undefined ? until : Math.max(sentUpTo, to - 1)
    return {
      rows: [...again, ...fresh],
      partition: comparing
        ? O.none
        : O.some({ fromDate: toInstant(reached), digest: to === undefined ? digestRows(next) : '' }),
    }
  }
}
export type PartitionTracker = ReturnType<typeof trackPartition>
