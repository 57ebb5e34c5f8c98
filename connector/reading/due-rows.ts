import { hasId, newestTime } from './known-rows'
import type { ListRow, RowVersion } from './list'
import { putNewestLast } from './list'
import { addRowsSent } from './sent-rows'
import { nextFilterFrom, type Session } from './session'

const day = 86_400_000

/**
 * The time up to which nothing is missed, whichever clock stamps the rows. Later rows do not show where the list ends.
 */
export const certainUntil = <R extends ListRow>({ progress: { cutoff = 0, rowClock = 0 } }: Session<R>): number =>
  // A row older than a day cannot have changed during the read, whichever clock stamps rows.
  Math.max(cutoff - day, Math.min(cutoff, rowClock))

/** The row belongs to this run. */
export const isDue = <R extends ListRow>({ progress }: Session<R>, { modifiedTime }: RowVersion): boolean =>
  modifiedTime <= (progress.cutoff ?? 0)

/** This pass has read the row or a newer version of it. */
export const isRead = <R extends ListRow>({ known }: Session<R>, { id, modifiedTime }: RowVersion): boolean =>
  hasId(known, id) && modifiedTime <= (newestTime(known, id) ?? 0)

/** Neither this version nor a later one has been sent. (A row after the cutoff was read but not sent.) */
const isNew = <R extends ListRow>({ known, progress }: Session<R>, row: R): boolean => {
  const time = newestTime(known, row.id)
  return time === undefined || time < row.modifiedTime || time > (progress.cutoff ?? 0)
}

/** Returns the rows of a page that are to be sent, and remembers them. */
export const sendRows = <R extends ListRow>(
  session: Session<R>,
  rows: ReadonlyArray<R>,
  filter: (row: R) => boolean = () => true,
): ReadonlyArray<R> => {
  const { origin, progress } = session
  const due = rows.filter((row) => isDue(session, row) && filter(row))
  addRowsSent(progress.sent, due, nextFilterFrom(origin, progress))
  for (const { modifiedTime } of due)
    if (!(progress.newest !== undefined && progress.newest > modifiedTime)) progress.newest = modifiedTime
  progress.pages += 1
  return putNewestLast(due.filter((row) => isNew(session, row)))
}
