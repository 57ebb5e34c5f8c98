import { Breach } from './assumptions'
import { rememberTimes } from './empty'
import { isBounded, type ListRow, type Window } from './list'
import type { Session } from './session'

const second = 1000
/** A service that ignores bounds shows it in any answer, so a few rows of each will do. */
const checkedRows = 16

/**
 * Throws a Breach of A4 if a row of a window lies outside of it, by more than the second that bounds may be rounded to.
 * Remembers some mention times, by which another window can be shown to be empty.
 */
export const checkBounds = <R extends ListRow>(session: Session<R>, window: Window, rows: ReadonlyArray<R>): void => {
  const { mentionTime } = session.env.list
  if (mentionTime === undefined || !isBounded(window)) return
  const { after = Number.NEGATIVE_INFINITY, before = Number.POSITIVE_INFINITY } = window
  const step = Math.max(1, Math.floor(rows.length / checkedRows))
  for (let i = 0; i < rows.length; i += step) {
    const row = rows[i]
    const time = row && mentionTime(row)
    if (time === undefined || time < after - second || time > before + second)
      throw new Breach('A4', 'the service does not keep to the filters by mention time')
    rememberTimes(session, [time])
  }
}
