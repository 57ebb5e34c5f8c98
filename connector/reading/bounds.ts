import { Breach } from './assumptions'
import { rememberTimes } from './empty'
import { isBounded, type ListRow, type Window } from './list'
import type { Session } from './session'

const second = 1000
/** A service that ignores bounds shows it in any answer, so checking a few rows of each is enough. */
const checkedRows = 16

/**
 * Throws a Breach of A4 if a row lies outside its window by more than a second (bounds may be rounded). Remembers some
 * mention times, which later help to show that another window is empty.
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
