import { certainUntil, isDue, isRead } from './due-rows'
import { findRow } from './known-rows'
import type { ListPage, ListRow, Window } from './list'
import { askPage, pauseBefore } from './requests'
import type { Session } from './session'

/** How many rows an end probe asks for behind the place where the list should end. */
const rowsAsked = 36

/** A service that cuts its answers leaves more than this share of what it gives at a time. */
const leastShare = 0.4

/** How many rows in front of that place must be there; more where none of so few was read. */
const [rowsInFront, moreInFront] = [4, 12]

/** Where an end is looked for; `limit` has room for more than can be there. */
const probeAt = (end: number, front: number) => {
  const inFront = Math.min(front, end)
  return { offset: end - inFront, limit: inFront + rowsAsked }
}

/**
 * As many rows of `most` as a service that gave `length` rows at a time shows, and one more, even where it cuts its
 * answers.
 */
const frontOf = (most: number, length: number): number =>
  length < 2 ? 0 : Math.min(most, Math.max(1, Math.ceil(leastShare * length) - 1))

/** A page that may be the last: where it began, and its rows. */
type LastPage<R extends ListRow> = { readonly offset: number; readonly rows: ReadonlyArray<R> }

/** The request that will probably show the end behind a short page. */
export const expectedProbe = ({ offset, rows }: LastPage<ListRow>) =>
  probeAt(offset + rows.length, frontOf(rowsInFront, rows.length))

/** What stands around the place where a list should end, counted in rows from its start. */
type Probe<R extends ListRow> = {
  readonly page: ListPage<R>
  /** Where its rows end. */
  readonly end: number
  /** None came behind the expected end, or so few that the answer was not cut. */
  readonly isWhole: boolean
}

/** Asks for the rows around `end`, as many in front of it as `front`. */
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

/** What stands at the end of a list that should have `count` rows. */
export const probeCount = <R extends ListRow>(session: Session<R>, window: Window, count: number): Promise<Probe<R>> =>
  probeEnd(session, window, count, frontOf(rowsInFront, session.limits.longest()))

/** How often rows that came since the read began may keep a list from ending; the next run reads them again. */
export const patience = 4

export type End<R extends ListRow> =
  /**
   * `inserted`: by how many places known rows have moved towards the end since they were read. `rows`: the last ones.
   */
  | { readonly _tag: 'End'; readonly inserted: number; readonly rows: ReadonlyArray<R> }
  /** It does not end there: where to read on. `isNear`: the probe had few rows, all of them known or later changes. */
  | { readonly _tag: 'GoOn'; readonly offset: number; readonly isNear: boolean }
  /** No row stands there. */
  | { readonly _tag: 'Nothing'; readonly page: ListPage<R> }

/**
 * Whether the list ends where its last page, a short one, ended: it must be exactly as long as that, or still end with
 * the row that was the last. Only rows that were read may stand there, and rows that changed since; one must have been
 * read. An empty answer proves nothing. `tries`: how often no end was found before. A list that has become longer, or
 * whose pages are cut, is asked for twice.
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
    // Of a single row nothing can be asked for again but what stands behind it.
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

/**
 * By how many places rows that were there when the read began have moved towards the end of the list since they were
 * read.
 */
const movedBy = <R extends ListRow>(session: Session<R>, rows: ReadonlyArray<R>, offset: number): number =>
  rows.reduce((most, row, i) => {
    const read = isDue(session, row) ? findRow(session.known, row) : undefined
    return read === undefined ? most : Math.max(most, Math.ceil(offset + i - read.index))
  }, 0)

/** How many rows a list has, looked for from `near` on; undefined if it does not come to rest. */
export const listLength = async <R extends ListRow>(
  session: Session<R>,
  window: Window,
  near: number,
): Promise<number | undefined> => {
  let [low, high, at] = [0, Number.POSITIVE_INFINITY, near]
  for (let [step, waits] = [16, 0]; step < 2 ** 40; step *= 2) {
    const { page, end, isWhole } = await probeCount(session, window, at)
    if (isWhole && page.rows.length > 0 && end === at) return end
    // Where rows have stood, an empty answer may be of a moment.
    if (page.rows.length === 0 && at <= Math.max(near, low) && !(await pauseBefore(session, waits++))) return undefined
    if (page.rows.length > 0) low = end
    else high = end
    if (high <= low) [low, high] = [0, Number.POSITIVE_INFINITY]
    if (isWhole && page.rows.length > 0) at = end
    else at = high === Number.POSITIVE_INFINITY ? low + step : Math.floor((low + high) / 2)
  }
  return undefined
}
