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

/** The most readings of an entity; two in a row must agree. */
const maxReadings = 8
const maxRefusedKeys = 3

/** How many pages without a new row end a reading, if keys go on. */
const maxBarrenPages = 3

/** Up to how many rows of one second are requested at once: a single answer needs no order. */
const maxAtOnce = 1000

/** One reading of an entity's rows, from its first page to its end. */
type Reading = {
  page: number
  scrollKey: string | undefined
  readonly usedKeys: Set<string>
  answers: number
  /** Number of pages with rows, and how many in a row brought no row that is new in this reading. */
  pagesWithRows: number
  barren: number
  longest: number
  /** Number of compared rows including repeats, of different rows, and of those that the previous reading had. */
  served: number
  rows: number
  shared: number
  /**
   * A row came twice without being one of the rows that a page repeats from the previous page, so another one may be
   * missing.
   */
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

/** How a reading ends: the service says so, or its last page, which may have been cut off, comes again. */
type Ending = 'said' | 'repeated'

/** Stores a key as a digest: keys may be long, and there are as many as pages. */
const digestKey = (key: string): string =>
  key.length <= 32 ? key : createHash('sha256').update(key).digest('base64url').slice(0, 22)

/** The window of an entity to read completely, milliseconds. */
type ScrolledWindow = {
  readonly kind: EntityKind
  readonly id: string
  readonly from: number
  readonly to: number
  /** No earlier run has read it, and no later one will read it again. */
  readonly isFirst: boolean
}

/** All readings of an entity; changed in place. */
type Scroll = {
  readonly reader: EntityReader
  readonly window: ScrolledWindow
  readonly byDays: boolean
  /** By row id, the last reading that had the row. */
  readonly lastReadings: Map<string, number>
  /** The number of the current reading, and the previous reading if it may be compared. */
  number: number
  current: Reading
  previous: Reading | undefined
  days: number | undefined
  /** The page size to request, the smallest that an answer gave, and the longest page of the first reading. */
  perPage: number | undefined
  firstPerPage: number
  firstLongest: number | undefined
  repeatedEnds: number
  refusedKeys: number
  ignoresKeys: boolean
  /** How many rows the last readings had, the first of these readings, and the different rows since then. */
  told: number
  toldSince: number
  toldRows: number
}

const startScroll = (reader: EntityReader, window: ScrolledWindow): Scroll => ({
  reader,
  window,
  byDays: !reader.shown.usesDates,
  lastReadings: new Map(),
  number: 0,
  current: newReading(reader.operation.firstPage),
  previous: undefined,
  days: undefined,
  perPage: undefined,
  firstPerPage: Number.POSITIVE_INFINITY,
  firstLongest: undefined,
  repeatedEnds: 0,
  refusedKeys: 0,
  ignoresKeys: false,
  told: -1,
  toldSince: 0,
  toldRows: 0,
})

/**
 * Reads all rows of an entity page by page, with scroll keys if the service gives them, until two readings in a row
 * agree. Each page is sent as it comes; only the ids of its rows are kept.
 */
export async function* readToEnd(reader: EntityReader, window: ScrolledWindow): AsyncGenerator<EntityResult> {
  const { kind, id } = window
  const scroll = startScroll(reader, window)
  for (;;) {
    let answer: EntityAnswer
    try {
      answer = await reader.ask(createRequest(scroll))
    } catch (error) {
      recover(scroll, error)
      continue
    }
    scroll.days ??= answer.days
    scroll.firstPerPage = Math.min(scroll.firstPerPage, answer.perPage)
    const found = rowsOfEntity(id, answer)
    const hasFresh = countPage(scroll, found?.rows ?? [])
    const ending = findEnding(scroll, answer, found, hasFresh)
    showLengths(reader.shown, answer)
    const isEnd = ending !== undefined && (isConfirmed(scroll, ending, answer) || hasAllTold(scroll, ending))
    yield { kind, id, to: undefined, scroll: { reading: scroll.number, isEnd }, answer: E.right(found) }
    if (isEnd) return
    if (ending !== undefined) beginNext(scroll, ending)
  }
}

const createRequest = ({ window, byDays, current, perPage, days }: Scroll): EntityRequest => {
  const { kind, id, from, to } = window
  const { page, scrollKey } = current
  return { kind, ids: [id], from, to, page, byDays, ...defined({ perPage, scrollKey, days }) }
}

/**
 * The days of a request begin up to two days before its window, and one more for services whose days begin at midnight.
 */
const slidingMillis = 3 * 86_400_000

/** Readings are compared by this row: it did not come after the run began, and does not slide out of the days. */
const isCompared = ({ reader, window: { from, to } }: Scroll, time: number): boolean =>
  time <= (reader.cutoff() ?? to) && (time >= from || time < from - slidingMillis)

/** Counts the rows of a page. Returns true if one is new in this reading. */
const countPage = (scroll: Scroll, rows: EntityRows['rows']): boolean => {
  const { reader, lastReadings, number, current } = scroll
  let hasFresh = false
  for (const row of rows) {
    const key = String(row[reader.operation.key])
    const last = lastReadings.get(key)
    const counts = isCompared(scroll, toMillis(String(row.mentionTime)))
    if (counts) current.served += 1
    if (last === number) {
      // Rows inserted earlier push others to the next page, which then begins with them.
      if (hasFresh) current.hasRepeats = true
      continue
    }
    hasFresh = true
    lastReadings.set(key, number)
    if (!counts) continue
    current.rows += 1
    if (last === undefined || last < scroll.toldSince) scroll.toldRows += 1
    if (last !== undefined && last === number - 1) current.shared += 1
  }
  current.answers += 1
  current.barren = hasFresh ? 0 : current.barren + 1
  if (hasFresh) current.pagesWithRows += 1
  current.longest = Math.max(current.longest, rows.length)
  return hasFresh
}

/** How the reading ends with a page; undefined: it goes on. */
const findEnding = (
  { reader: { shown }, current, firstPerPage, ignoresKeys }: Scroll,
  { perPage, scrollKey, isRefused }: EntityAnswer,
  found: EntityRows | undefined,
  hasFresh: boolean,
): Ending | undefined => {
  const { rows, pages = 0 } = found ?? { rows: [] }
  const isFull = rows.length >= perPage || [firstPerPage, shown.cut].includes(rows.length)
  const ending = isFull ? 'repeated' : 'said'
  if (scrollKey !== undefined && !ignoresKeys) {
    const key = digestKey(scrollKey)
    const isUsed = current.usedKeys.has(key)
    current.usedKeys.add(key)
    current.scrollKey = scrollKey
    return !hasFresh && (isUsed || current.barren >= maxBarrenPages) ? ending : undefined
  }
  if (shown.givesKeys && !ignoresKeys) return 'said'
  if (current.answers === 1 && judge(shown, { rows, pages }, perPage) === 'complete') return 'said'
  const isBehind = rows.length > 0 || isRefused === true || current.barren >= emptyPagesAtEnd(shown)
  if (!hasFresh && current.answers > 1 && isBehind) return ending
  current.page += 1
  return undefined
}

/**
 * True if no row is missing. A removed row moves later ones to a page that was already read; they are then missing, and
 * the next reading shows it.
 */
const isConfirmed = ({ reader, window, current, previous }: Scroll, ending: Ending, answer: EntityAnswer): boolean => {
  const { answers, pagesWithRows, longest, rows, shared, hasRepeats } = current
  if (hasRepeats) return false
  if (previous !== undefined) return shared === previous.rows && (ending === 'said' || rows === previous.rows)
  const isDoubtful = window.isFirst && longest === 0
  if (ending === 'repeated' || pagesWithRows > 1 || isDoubtful) return false
  return answers === 1 || longest < Math.min(answer.perPage, Math.max(1, reader.shown.longest))
}

/**
 * True if two readings had the same number of rows, and that many different ones have come since. Then none is missing,
 * whatever their order.
 */
const hasAllTold = (scroll: Scroll, ending: Ending): boolean => {
  const { current, told, toldRows, number } = scroll
  if (ending === 'said' && current.served === told && toldRows >= told) return true
  if (current.served !== told)
    Object.assign(scroll, { told: current.served, toldSince: number, toldRows: current.rows })
  return false
}

/** If the order depends on the page, another page size shows it; a whole second in one answer has no order. */
const chooseSize = ({ window: { from, to }, number, firstLongest = 0 }: Scroll, served: number): number | undefined => {
  if (to - from <= 2000 && number <= 2 && served < maxAtOnce) return served + 1
  if (firstLongest === 0) return undefined
  return firstLongest > number ? firstLongest - number : firstLongest + number
}

const beginNext = (scroll: Scroll, ending: Ending): void => {
  const { current, ignoresKeys } = scroll
  if (ending === 'repeated') scroll.repeatedEnds += 1
  if (ending === 'repeated' && scroll.repeatedEnds > 1) {
    if (ignoresKeys || current.usedKeys.size === 0) throw new EntityError(incomplete.cutOff)
    scroll.ignoresKeys = true
    scroll.repeatedEnds = 0
  }
  scroll.firstLongest ??= current.longest
  beginReading(scroll, ending === 'said' && !current.hasRepeats ? current : undefined)
  if (scroll.number >= maxReadings) throw new EntityError(incomplete.changing(current.rows))
  scroll.perPage = chooseSize(scroll, current.served)
}

const beginReading = (scroll: Scroll, previous: Reading | undefined): void => {
  scroll.number += 1
  scroll.previous = previous
  scroll.current = newReading(scroll.reader.operation.firstPage)
}

/** Restarts the reading if that may help. */
const recover = (scroll: Scroll, error: unknown): void => {
  const { current, perPage } = scroll
  const told = error instanceof EntityError ? error.error : undefined
  if (told?._tag === 'TooLarge' && (perPage ?? defaultPerPage) > 1)
    scroll.perPage = Math.floor(Math.min(perPage ?? Number.POSITIVE_INFINITY, current.longest || defaultPerPage) / 2)
  else if (told !== undefined && current.scrollKey !== undefined && isKeyRefusal(told)) {
    scroll.refusedKeys += 1
    if (scroll.refusedKeys > maxRefusedKeys) throw new EntityError(incomplete.refusedKey)
  } else throw error
  beginReading(scroll, undefined)
}

/** The page size to reduce from if a first answer is too large. */
const defaultPerPage = 100
