import { createHash } from 'node:crypto'
import * as E from 'fp-ts/Either'
import { toMillis } from '../../api'
import { defined } from '../../cdk'
import {
  type EntityAnswer,
  EntityError,
  type EntityRequest,
  type EntityResult,
  type EntityRows,
  incomplete,
  isKeyRefusal,
  rowsOfEntity,
} from './answer'
import { type EntityReader, emptyPagesAtEnd, judge, showLengths } from './reader'
import type { EntityKind } from './selection'

/** The readings of an entity, of which two in a row must agree. */
const maxReadings = 8
const maxRefusedKeys = 3
/** So many pages without a new row end a reading, where keys go on. */
const maxBarrenPages = 3
/** A second with so many rows is asked for at once: one answer has no order. */
const maxAtOnce = 1000

/** One reading of an entity's rows, from its first page to its end. */
type Reading = {
  page: number
  scrollKey: string | undefined
  readonly usedKeys: Set<string>
  answers: number
  /** Pages with rows, and those in a row that brought none that is new in this reading. */
  pagesWithRows: number
  barren: number
  longest: number
  /** The rows of the window, repeats among them; the different ones; and how many of those the reading before had. */
  served: number
  rows: number
  shared: number
  /** A row came twice that is not one of those with which a page begins again: another one may be missing. */
  hasRepeats: boolean
}

const newReading = (page: number): Reading => ({
  page,
  scrollKey: undefined,
  usedKeys: new Set(),
  answers: 0,
  pagesWithRows: 0,
  barren: 0,
  longest: 0,
  served: 0,
  rows: 0,
  shared: 0,
  hasRepeats: false,
})

/** How a reading ends: the service says so, or its last page, which may have been cut, comes again. */
type Ending = 'said' | 'repeated'

/** A key as it is remembered: keys may be long, and there are as many as pages. */
const digestKey = (key: string): string =>
  key.length <= 32 ? key : createHash('sha256').update(key).digest('base64url').slice(0, 22)

/**
 * Reads all rows of an entity page by page, by scroll keys where the service gives them, until two readings in a row agree. Each
 * page leaves as it comes; only the ids of its rows are held. Rows outside the window are not compared. `to`: milliseconds.
 */
export async function* readToEnd(
  reader: EntityReader,
  window: {
    readonly kind: EntityKind
    readonly id: string
    readonly from: number
    readonly to: number
    readonly isFirst: boolean
  },
): AsyncGenerator<EntityResult> {
  const { operation, shown } = reader
  const { kind, id, from, to, isFirst } = window
  /** The last reading that had a row, by the row's id. */
  const lastReadings = new Map<string, number>()
  let current = newReading(operation.firstPage)
  let previous: Reading | undefined
  let number = 0
  let days: number | undefined
  let perPage: number | undefined
  let [repeatedEnds, refusedKeys] = [0, 0]
  let ignoresKeys = false
  let firstPerPage = Number.POSITIVE_INFINITY
  let firstLongest: number | undefined
  const byDays = !shown.usesDates
  /** How many rows the last readings had, the first of these readings, and the different rows since. */
  let [told, toldSince, toldRows] = [-1, 0, 0]

  const createRequest = (): EntityRequest => {
    const { page, scrollKey } = current
    return { kind, ids: [id], from, to, page, byDays, ...defined({ perPage, scrollKey, days }) }
  }
  /** Counts the rows of a page; whether one is new in this reading. */
  const countPage = (rows: EntityRows['rows']): boolean => {
    let hasFresh = false
    for (const row of rows) {
      const key = String(row[operation.key])
      const last = lastReadings.get(key)
      const time = toMillis(String(row.mentionTime))
      const isInside = time >= from && time <= (reader.cutoff() ?? to)
      if (isInside) current.served += 1
      if (last === number) {
        // Rows that come in front push others to the next page: these begin it.
        if (hasFresh) current.hasRepeats = true
        continue
      }
      hasFresh = true
      lastReadings.set(key, number)
      if (!isInside) continue
      current.rows += 1
      if (last === undefined || last < toldSince) toldRows += 1
      if (last !== undefined && last === number - 1) current.shared += 1
    }
    current.answers += 1
    current.barren = hasFresh ? 0 : current.barren + 1
    if (rows.length > 0 && hasFresh) current.pagesWithRows += 1
    current.longest = Math.max(current.longest, rows.length)
    return hasFresh
  }
  /** How the reading ends with a page; undefined: it goes on. */
  const findEnding = (answer: EntityAnswer, rows: EntityRows['rows'], hasFresh: boolean): Ending | undefined => {
    const { scrollKey } = answer
    const isFull = rows.length >= answer.perPage || [firstPerPage, shown.cut].includes(rows.length)
    const ending = isFull ? 'repeated' : 'said'
    if (scrollKey !== undefined && !ignoresKeys) {
      const isUsed = current.usedKeys.has(digestKey(scrollKey))
      current.usedKeys.add(digestKey(scrollKey))
      current.scrollKey = scrollKey
      return !hasFresh && (isUsed || current.barren >= maxBarrenPages) ? ending : undefined
    }
    if (shown.givesKeys && !ignoresKeys) return 'said'
    if (
      current.answers === 1 &&
      judge(shown, { rows, pages: rowsOfEntity(id, answer)?.pages ?? 0 }, answer.perPage) === 'complete'
    )
      return 'said'
    const isBehind = rows.length > 0 || answer.isRefused === true || current.barren >= emptyPagesAtEnd(shown)
    if (!hasFresh && current.answers > 1 && isBehind) return ending
    current.page += 1
    return undefined
  }
  /** Whether no row is missing. A row that goes moves those behind it to a page that was read: then it is missing in the next reading. */
  const isConfirmed = (ending: Ending, answer: EntityAnswer): boolean => {
    const { answers, pagesWithRows, longest, rows, shared, hasRepeats } = current
    if (hasRepeats) return false
    if (previous !== undefined) return shared === previous.rows && (ending === 'said' || rows === previous.rows)
    const isDoubtful = isFirst && longest === 0
    if (ending === 'repeated' || pagesWithRows > 1 || isDoubtful) return false
    return answers === 1 || longest < Math.min(answer.perPage, Math.max(1, shown.longest))
  }
  /** Whether two readings had equally many rows, and so many different ones have come since: whatever their order, none is missing. */
  const hasAllTold = (ending: Ending): boolean => {
    if (ending === 'said' && current.served === told && toldRows >= told) return true
    if (current.served !== told) [told, toldSince, toldRows] = [current.served, number, current.rows]
    return false
  }
  /** An order that depends on the page shows when pages have another size; a whole second in one answer has none. */
  const sizeOfReading = (n: number, served: number): number | undefined => {
    if (to - from <= 2000 && n <= 2 && served < maxAtOnce) return served + 1
    const longest = firstLongest ?? 0
    return longest === 0 ? undefined : longest > n ? longest - n : longest + n
  }
  const beginNext = (ending: Ending): void => {
    repeatedEnds = ending === 'repeated' ? repeatedEnds + 1 : repeatedEnds
    if (ending === 'repeated' && repeatedEnds > 1) {
      if (ignoresKeys || current.usedKeys.size === 0) throw new EntityError(incomplete.cutOff)
      ;[ignoresKeys, repeatedEnds] = [true, 0]
    }
    previous = ending === 'said' && !current.hasRepeats ? current : undefined
    const { rows, served, longest } = current
    firstLongest ??= longest
    number += 1
    if (number >= maxReadings) throw new EntityError(incomplete.changing(rows))
    perPage = sizeOfReading(number, served)
    current = newReading(operation.firstPage)
  }
  /** Begins the reading again where that may help. */
  const recover = (error: unknown): void => {
    const told = error instanceof EntityError ? error.error : undefined
    if (told?._tag === 'TooLarge' && (perPage ?? defaultPerPage) > 1)
      perPage = Math.floor(Math.min(perPage ?? Number.POSITIVE_INFINITY, current.longest || defaultPerPage) / 2)
    else if (told !== undefined && current.scrollKey !== undefined && isKeyRefusal(told)) {
      refusedKeys += 1
      if (refusedKeys > maxRefusedKeys) throw new EntityError(incomplete.refusedKey)
    } else throw error
    number += 1
    previous = undefined
    current = newReading(operation.firstPage)
  }

  for (;;) {
    let answer: EntityAnswer
    try {
      answer = await reader.ask(createRequest())
    } catch (error) {
      recover(error)
      continue
    }
    days ??= answer.days
    firstPerPage = Math.min(firstPerPage, answer.perPage)
    const found = rowsOfEntity(id, answer)
    const rows = found?.rows ?? []
    const hasFresh = countPage(rows)
    const ending = findEnding(answer, rows, hasFresh)
    showLengths(shown, answer)
    const reading = number
    const isEnd = ending !== undefined && (isConfirmed(ending, answer) || hasAllTold(ending))
    yield { kind, id, to: undefined, scroll: { reading, isEnd }, answer: E.right(found) }
    if (isEnd) return
    if (ending !== undefined) beginNext(ending)
  }
}

/** The page size from which to go down where a first answer is too large. */
const defaultPerPage = 100
