import { Breach, incompleteForNow, refusedOffset } from './assumptions'
import { warningNote } from './clock'
import { listLength, probeCount } from './end'
import type { ReadItem } from './item'
import type { ListRow, Window } from './list'
import { countChanged, readPages } from './pages'
import { askPage, widest } from './requests'
import { readRounds } from './rounds'
import { type Session, startWindow } from './session'

/** How often the lengths of a changing list are compared. */
const maxTries = 8

/**
 * Reads the rows without a mention time, which belong to no window. There are none if the whole list is as long as the
 * list with bounds that include every mention time; otherwise they are found by reading all of it.
 */
export async function* readUnmentioned<R extends ListRow>(
  session: Session<R>,
  { rows }: Window,
): AsyncGenerator<ReadItem<R>> {
  if (rows !== undefined && (await areAllMentioned(session, rows))) return
  const isUnmentioned = (row: R): boolean => session.env.list.mentionTime?.(row) === undefined
  try {
    yield* readPages(session, {}, false, isUnmentioned)
  } catch (error) {
    if (!(error instanceof Breach)) throw error
    startWindow(session)
    yield* readRounds(session, {}, isUnmentioned)
  }
}

/**
 * Compares the lengths of both lists. `near`: their approximate length. If the service refuses such a deep offset,
 * reviews without a mention time are looked for on the first page only, with a warning.
 */
const areAllMentioned = async <R extends ListRow>(session: Session<R>, near: number): Promise<boolean> => {
  const { name, mentionTime } = session.env.list
  const { page } = await probeCount(session, {}, near)
  if (page.isRefused) {
    const first = await askPage(session, {}, { offset: 0 })
    const times = first.rows.map((row) => mentionTime?.(row))
    first.release?.()
    if (times.includes(undefined)) throw refusedOffset(session, near)
    session.notes.push(
      warningNote(
        `${name}: the service refuses offset ${near}, so reviews without a mention ` +
          `time could not be looked for. The first ${times.length} reviews all have one.`,
      ),
    )
    return true
  }
  let mentioned = await listLength(session, widest, near)
  for (let tries = 0; tries < maxTries; tries += 1) {
    if (mentioned === undefined) return false
    const whole = await listLength(session, {}, mentioned)
    const again = await listLength(session, widest, mentioned)
    // If rows come or go between the requests, the lengths say nothing.
    if (again === mentioned) {
      if (mentioned > near + (await countChanged(session, {})))
        throw incompleteForNow('A1', `${name}: the list has ${mentioned} rows, and its windows together had ${near}`)
      return whole === mentioned
    }
    mentioned = again
  }
  return false
}
