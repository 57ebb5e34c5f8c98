import { certainUntil, isDue, isRead } from './due-rows'
import { findRow } from './known-rows'
import type { ListPage, ListRow, Window } from './list'
import { askPage, pauseBefore } from './requests'
import type { Session } from './session'

/** How many rows an end probe requests after the expected end. */
const rowsAsked = 36

/** A service that caps its answers returns more than this share of its usual page. */
const leastShare = 0.4

/** How many rows before the expected end must be there; more if none of the first few was read. */
const [rowsInFront, moreInFront] = [4, 12]

/** A probe around an expected end; its `limit` leaves room for more rows than there can be. */
const probeAt = (end: number, front: number) => {
  const inFront = Math.min(front, end)
  return { offset: end - inFront, limit: inFront + rowsAsked }
}

/**
 * How many of `most` rows to request before the end, so that a service that returned `length` rows at a time shows them
 * and one more, even if it caps its answers.
 */
const frontOf = (most: number, length: number): number =>
  length < 2 ? 0 : Math.min(most, Math.max(1, Math.ceil(leastShare * length) - 1))

/** A page that may be the last: where it began, and its rows. */
type LastPage<R extends ListRow> = { readonly offset: number; readonly rows: ReadonlyArray<R> }

/** The request that will probably confirm the end after a short page. */
export const expectedProbe = ({ offset, rows }: LastPage<ListRow>) =>
  probeAt(offset + rows.length, frontOf(rowsInFront, rows.length))

/** The rows around the expected end of a list; positions count from its start. */
type Probe<R extends ListRow> = {
  readonly page: ListPage<R>
  /** Position after the last row. */
  readonly end: number
  /** The answer had no rows after the expected end, or so few that it cannot have been cut off. */
  readonly isWhole: boolean
}

/** Requests the rows around `end`, including `front` rows before it. */
const probeEnd = async <R extends ListRow>(
  session: Session<R>,
  window: Window,
  end: number,
  front: number,
): Promise<Probe<R>> => {
  const where = probeAt(end, front)
  const page = await askPage(session, window, where)
  page.release?.()
  const count = page.rows.length
  const extra = count - (end - where.offset)
  return {
    page,
    end: where.offset + count,
    isWhole: extra <= 0 || count < leastShare * Math.min(where.limit, session.limits.longest()),
  }
}

/** Probes the end of a list that should have `count` rows. */
export const probeCount = <R extends ListRow>(session: Session<R>, window: Window, count: number): Promise<Probe<R>> =>
  probeEnd(session, window, count, frontOf(rowsInFront, session.limits.longest()))

/** How often rows added since the read began may keep a list from ending. The next run reads them again. */
export const patience = 4

export type End<R extends ListRow> =
  /** `inserted`: how many places known rows have moved towards the end since they were read. `rows`: the last rows. */
  | { readonly _tag: 'End'; readonly inserted: number; readonly rows: ReadonlyArray<R> }
  /** The list goes on at `offset`. `isNear`: the probe had few rows, all of them known or changed later. */
  | { readonly _tag: 'GoOn'; readonly offset: number; readonly isNear: boolean }
  /** The probe returned no rows. */
  | { readonly _tag: 'Nothing'; readonly page: ListPage<R> }

/**
 * Checks that the list ends where its short last page ended: it must be exactly that long, or still end with the same
 * row. Only rows already read, or changed since, may stand there, and at least one must have been read. An empty answer
 * proves nothing. `tries`: how often no end was found before. If the list has grown, or its pages are capped, it is
 * asked for twice.
 */
export const findEnd = async <R extends ListRow>(
  session: Session<R>,
  window: Window,
  last: LastPage<R>,
  overlap: number,
  tries: number,
): Promise<End<R>> => {
  const lateFrom = tries < patience ? (session.progress.cutoff ?? 0) : certainUntil(session)
  const isLate = ({ modifiedTime }: R): boolean => modifiedTime > lateFrom
  let end = last.offset + last.rows.length
  let lastRow = last.rows.at(-1)
  const { length } = last.rows
  let isConfirmed = false
  for (let steps = 0; steps < 8; steps += 1) {
    const probe = await probeEnd(session, window, end, frontOf(tries < 2 ? rowsInFront : moreInFront, length))
    const { rows } = probe.page
    const offset = probe.end - rows.length
    if (!rows.every((row) => isRead(session, row) || isLate(row))) {
      if (rows.some((row) => !isRead(session, row) && row.modifiedTime <= certainUntil(session)))
        session.limits.learnShort(last.rows.length)
      return { _tag: 'GoOn', offset: Math.max(0, end - overlap), isNear: false }
    }
    // For a single row, only what comes after it can be requested again.
    const isSingle = last.rows.length === 1 && last.offset === 0 && steps === 0
    if (rows.length === 0) return isSingle ? { _tag: 'End', inserted: 0, rows } : { _tag: 'Nothing', page: probe.page }
    const at = rows.findIndex(({ id, modifiedTime }) => id === lastRow?.id && modifiedTime === lastRow.modifiedTime)
    const endsWithLast = at >= 0 && rows.slice(at + 1).every(isLate)
    if (probe.isWhole && (endsWithLast || (probe.end === end && rows.some((row) => isRead(session, row))))) {
      if (isConfirmed || (probe.end === end && !session.limits.cutsPages()))
        return { _tag: 'End', inserted: movedBy(session, rows, offset), rows }
      isConfirmed = true
      end = probe.end
      continue
    }
    const isNear = probe.isWhole && rows.length < length
    if (!probe.isWhole || probe.end >= end)
      return { _tag: 'GoOn', offset: last.offset + Math.max(1, probe.end - end), isNear }
    end = probe.end
    lastRow = rows.at(-1)
  }
  return { _tag: 'GoOn', offset: Math.max(0, end - overlap), isNear: false }
}

/** How many places rows that existed when the read began have moved towards the end since they were read. */
const movedBy = <R extends ListRow>(session: Session<R>, rows: ReadonlyArray<R>, offset: number): number =>
  rows.reduce((most, row, i) => {
    const read = isDue(session, row) ? findRow(session.known, row) : undefined
    return read === undefined ? most : Math.max(most, Math.ceil(offset + i - read.index))
  }, 0)

/** Finds how many rows a list has, starting at `near`. Undefined if the length keeps changing. */
export const listLength = async <R extends ListRow>(
  session: Session<R>,
  window: Window,
  near: number,
): Promise<number | undefined> => {
  let [low, high, at] = [0, Number.POSITIVE_INFINITY, near]
  for (let [step, waits] = [16, 0]; step < 2 ** 40; step *= 2) {
    const { page, end, isWhole } = await probeCount(session, window, at)
    if (isWhole && page.rows.length > 0 && end === at) return end
    // If rows were seen there before, an empty answer may be temporary.
    if (page.rows.length === 0 && at <= Math.max(near, low) && !(await pauseBefore(session, waits++))) return undefined
    if (page.rows.length > 0) low = end
    else high = end
    if (high <= low) [low, high] = [0, Number.POSITIVE_INFINITY]
    if (isWhole && page.rows.length > 0) at = end
    else at = high === Number.POSITIVE_INFINITY ? low + step : Math.floor((low + high) / 2)
  }
  return undefined
}
