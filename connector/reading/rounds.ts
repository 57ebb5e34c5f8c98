import { ignoredOffset, incompleteForNow, missingRows, refusedOffset } from './assumptions'
import { checkBounds } from './bounds'
import { infoNote } from './clock'
import { isDue, sendRows } from './due-rows'
import { probeCount } from './end'
import { type ReadItem, toItem } from './item'
import { addRows, startPass } from './known-rows'
import { describeWindow, keysOf, type ListRow, type RowVersion, type Window, watchRepeats } from './list'
import { askPage, isFullPage, pauseBefore } from './requests'
import type { Session } from './session'

/** How many rounds in a row must bring nothing new. In random order, each round misses one row in fifty. */
const quietRounds = 3
const maxRounds = 14

/** The most rows that one request may ask for. A list without order is best read in one page. */
const maxPageRows = 1000

/** A row read in rounds: the version sent, and the last round that showed it. */
type Seen = { readonly sentTime: number; readonly round: number }

/** One round over the list. */
type Round = {
  readonly number: number
  /** Rows that came for the first time. */
  fresh: number
  /** Number of rows in the list; undefined until its end is found. */
  length: number | undefined
  offset: number
  pages: number
  /** A list with more pages than this never ends. */
  readonly mostPages: number
  /** How often an empty answer was requested again. */
  waits: number
  /** Number of rows on the last page. */
  lastLength: number
}

/**
 * Reads a list that no filter divides and that keeps no order: page by page, again and again, until rounds bring
 * nothing new and the last rounds have exactly as many ids as the list is long (or, while rows come and go, no fewer).
 * `filter`: the rows that are wanted.
 */
export async function* readRounds<R extends ListRow>(
  session: Session<R>,
  window: Window,
  filter: (row: R) => boolean = () => true,
): AsyncGenerator<ReadItem<R>> {
  const { progress, env } = session
  const seen = new Map<string, Seen>()
  let [quiet, found] = [0, 0]
  let first: number | undefined
  let lengths: ReadonlyArray<number> = []
  progress.limit = Math.max(progress.limit, maxPageRows)
  for (let number = 1; number <= maxRounds; number += 1) {
    const round = newRound(number, number === 1 ? 8 * progress.pages : seen.size)
    yield* readRound(session, window, filter, seen, round)
    if (round.length === undefined) return
    found += round.fresh
    first ??= round.length
    // A list that grows by half grows with each round, so it would never end.
    if (round.length > first * 1.5 + 200) break
    const shown = [...seen.values()].filter((row) => row.round > number - quietRounds).length
    // While a list changes from round to round, several rounds together have more ids than it is long, never fewer.
    lengths = [...lengths, round.length].slice(-quietRounds)
    const isChanging = new Set(lengths).size > 1
    const fits = shown === round.length || (isChanging && shown > round.length)
    quiet = round.fresh === 0 && fits ? quiet + 1 : 0
    // A list that came in one answer is a snapshot. If none of its rows is wanted, looking at them once is enough.
    const isWhole = round.pages === 1 && shown === round.length && shown >= session.limits.longest()
    if (isWhole || quiet >= (found === 0 && !isChanging ? 1 : quietRounds)) {
      session.notes.push(
        infoNote(`${env.list.name}: ${seen.size} ids were held in memory to read what keeps no order.`),
      )
      return
    }
  }
  const what =
    `${env.list.name}: ${maxRounds} times, ${describeWindow(window)} ` +
    'had different rows from before, or fewer than its length'
  throw incompleteForNow('A3', what)
}

/** `known`: how many pages were read before, or rows in the earlier rounds. */
const newRound = (number: number, known: number): Round => ({
  number,
  fresh: 0,
  length: undefined,
  offset: 0,
  pages: 0,
  mostPages: 1000 + known,
  waits: 0,
  lastLength: 0,
})

/** Goes through the list once; three in four pages show a row. Without a length at the end, the list has no rows. */
async function* readRound<R extends ListRow>(
  session: Session<R>,
  window: Window,
  filter: (row: R) => boolean,
  seen: Map<string, Seen>,
  round: Round,
): AsyncGenerator<ReadItem<R>> {
  const { progress, known } = session
  const comesAgain = watchRepeats()
  startPass(known)
  for (;;) {
    const page = await askPage(session, window, { offset: round.offset })
    const { rows } = page
    checkBounds(session, window, rows)
    if (page.isRefused) throw refusedOffset(session, round.offset)
    if (rows.length === 0) {
      if (seen.size === 0 && round.waits > 0 && session.limits.longest() === 0) return
      if (!(await pauseBefore(session, round.waits))) throw missingRows(session)
      round.waits += 1
      round.offset = Math.max(0, round.offset - Math.max(1, round.lastLength))
      continue
    }
    if (round.pages > round.mostPages)
      throw incompleteForNow('A3', `${session.env.list.name}: the list does not end, after ${round.pages} pages`)
    const wanted = new Set(rows.filter((row) => isDue(session, row) && filter(row)))
    const fresh = [...wanted].filter((row) => isNewer(seen, row))
    const keys = keysOf(rows)
    rows.forEach((row, i) => {
      const key = keys[i] ?? row.id
      const sentTime = wanted.has(row) ? row.modifiedTime : Number.NEGATIVE_INFINITY
      const { sentTime: before = Number.NEGATIVE_INFINITY, round: lastRound = 0 } = seen.get(key) ?? {}
      if (lastRound < round.number) round.waits = 0
      seen.set(key, { sentTime: Math.max(sentTime, before), round: round.number })
    })
    round.lastLength = rows.length
    if (comesAgain(round.offset, rows)) throw ignoredOffset(session)
    round.fresh += fresh.length
    round.pages += 1
    const sent = sendRows(session, fresh)
    addRows(known, rows, round.offset, progress.cutoff ?? 0)
    yield toItem(session, sent)
    page.release?.()
    const reached = round.offset + rows.length
    if (!isFullPage(session, page)) {
      const length = await findLength(session, window, reached)
      if (length === undefined || length > reached) session.limits.learnShort(rows.length)
      // Rows added since the round came near the end belong to the next round.
      if (length !== undefined) round.length = Math.min(length, round.length ?? length)
    }
    if (round.length !== undefined && reached >= round.length) return
    round.offset += Math.max(1, Math.floor(rows.length / 4))
  }
}

const isNewer = (seen: ReadonlyMap<string, Seen>, { id, modifiedTime }: RowVersion): boolean =>
  modifiedTime > (seen.get(id)?.sentTime ?? Number.NEGATIVE_INFINITY)

/** The length of the list if it ends near `reached`; otherwise none. */
const findLength = async <R extends ListRow>(
  session: Session<R>,
  window: Window,
  reached: number,
): Promise<number | undefined> => {
  const { page, end, isWhole } = await probeCount(session, window, reached)
  return isWhole && (page.rows.length > 0 || reached === 1) ? end : undefined
}
