import { createHash } from 'node:crypto'
import { type ApiError, toMillis } from '../../api'
import { defined } from '../../cdk'
import { isKeyRefusal, refusedKeyError } from './consistency'
import {
  checkCompleteness,
  type EntityFeedback,
  type FeedbackOperation,
  type FeedbackPage,
  type FeedbackRequest,
  findEntityFeedback,
  minRepeatedRows,
  type PageSizes,
} from './page'
import type { FeedbackWindow } from './window'

/** What a page shows of the reading of an entity. */
type ScrollStep = {
  readonly feedback: EntityFeedback | undefined
  /** Which reading of the entity's rows the page belongs to, from 0. */
  readonly reading: number
  readonly isEnd: boolean
  /** Why the rows cannot be shown to be complete; the entity ends with it. */
  readonly error?: ApiError
}

/** The reading of one entity from page to page. Only the ids of its rows are held. */
export type Scroll = {
  /** The next request, with the rows of so many days up to `to`, milliseconds; `isFirst`: it is the entity's first one. */
  readonly createRequest: (to: number) => FeedbackRequest
  readonly isFirst: () => boolean
  /** Takes the answer to it; `cutoff`: the time that the run reads up to, milliseconds. */
  readonly takePage: (page: FeedbackPage, sizes: PageSizes, cutoff: number) => ScrollStep
  /** Begins the reading again where that may help; otherwise the error to report. */
  readonly recover: (error: ApiError) => ApiError | undefined
}

const decodeError = (message: string): ApiError => ({ _tag: 'Decode', path: '$.data', message })

const endlessError = decodeError('its pages do not end')
const changingError = decodeError('its rows are others each time they are read')
const cutOffError = decodeError(
  'the service uses neither fromDate and toDate nor page, and its scrollKey does not lead on, so that rows may be missing',
)

/** The answers of a reading after which it counts as endless. */
const maxAnswers = 50_000
/** The readings of an entity, of which two in a row must agree. */
const maxReadings = 8
const maxRestarts = 3
/** The readings that must be equal before one with more rows than the one before is taken for complete. */
const minGrowingReadings = 3
/** The pages without new rows in a row that are the end, where a new key comes with each of them or pages vary in size. */
const maxBarrenPages = 3
/** The days of a request begin up to two days before its window; with one more for services that begin them at midnight. */
const slidingMillis = 3 * 86_400_000
/** The page sizes of later readings, as shares of the largest page: an order that depends on the page shows by them. */
const sizeShares = [0.5, 0.75, 0.6, 0.9, 0.4, 0.8, 0.3] as const

/** A key as it is remembered: keys may be long, and there are as many as pages. */
const digestKey = (key: string): string =>
  key.length <= 32 ? key : createHash('sha256').update(key).digest('base64url').slice(0, 22)

const startReading = (firstPage: number) => ({
  answers: 0,
  page: firstPage,
  scrollKey: undefined as string | undefined,
  usedKeys: new Set<string>(),
  /** The rows of all pages without those that slide out of the days; the different ones; those that the reading before had too. */
  served: 0,
  distinct: 0,
  shared: 0,
  /** The different rows after the run's cutoff, which are not counted above. */
  late: 0,
  /** The different rows that slide out of the days, which are not counted above either. */
  sliding: 0,
  /** Whether a page had a row twice. */
  hasDoubles: false,
  /** Pages with rows that are new in this reading. */
  freshPages: 0,
  largest: 0,
  /** Pages in a row without a row that is new in this reading. */
  barren: 0,
  lastIsShort: false,
  /** A page with fewer rows than others was followed by rows. */
  hasShortPages: false,
})
type Reading = ReturnType<typeof startReading>

/** What is compared of two readings. */
type ReadingResult = {
  readonly distinct: number
  readonly repeats: number
  readonly largest: number
  readonly sliding: number
}

/**
 * Starts readings of single entities of a service that ignores windows, by its scroll keys, or by page numbers where it
 * gives none. Rows move between pages while the service changes, so a reading of several pages is confirmed by another one.
 */
export const createScrolls = ({ key, firstPage }: FeedbackOperation) => {
  /** Whether an answer of this run had a key: then one without a key is the last. */
  let givesKeys = false

  return ({ kind, ids, from }: FeedbackWindow): Scroll => {
    const [id = ''] = ids
    /** The last reading that had a row, by the row's id. */
    const lastReadings = new Map<unknown, number>()
    /** Those of the first request. */
    let days: number | undefined
    let reading = 0
    let restarts = 0
    /** The different rows of all readings. */
    let known = 0
    let current: Reading = startReading(firstPage)
    let previous: ReadingResult | undefined
    let largestPage = 0
    let pageSize: number | undefined
    let maxPageSize = Number.POSITIVE_INFINITY
    let ignoresKeys = false
    /** Whether a reading ended with repeated rows: the service may not lead beyond them. */
    let isSuspect = false
    /** The number of rows that the last readings told alike, the first of them, and how many different rows they had. */
    let toldRows: number | undefined
    let toldSince = 0
    let toldDistinct = 0

    /** Rows shortly before the window, which the days reach while a reading begins and no longer when it ends. */
    const isSliding = (time: number): boolean => time < from && time >= from - slidingMillis

    const nextReading = (): void => {
      reading += 1
      current = startReading(firstPage)
    }

    /** Counts the rows of a page; how many of them are new in this reading. */
    const countRows = (rows: EntityFeedback['rows'], cutoff: number): number => {
      let fresh = 0
      current.hasDoubles ||= new Set(rows.map((row) => row[key])).size < rows.length
      for (const row of rows) {
        const rowId = row[key]
        const last = lastReadings.get(rowId) ?? -1
        if (last !== reading) {
          fresh += 1
          lastReadings.set(rowId, reading)
        }
        const time = toMillis(String(row.mentionTime))
        if (time > cutoff && last !== reading) current.late += 1
        if (isSliding(time) && last !== reading) current.sliding += 1
        if (time > cutoff || isSliding(time)) continue
        current.served += 1
        if (last === reading) continue
        current.distinct += 1
        if (last >= 0 && last === reading - 1) current.shared += 1
        if (last < 0) known += 1
        if (last < toldSince) toldDistinct += 1
      }
      return fresh
    }

    const barrenLimit = (): number => (current.largest > 0 && !current.hasShortPages ? 1 : maxBarrenPages)

    /** How the reading ends with a page; undefined: it goes on with the next one. */
    const findEnd = (page: FeedbackPage, rows: number, fresh: number, sizes: PageSizes): Ending | undefined => {
      const { scrollKey } = page
      const isComplete = checkCompleteness(sizes, findEntityFeedback(id, page), page) === 'complete'
      // A short page that comes again is the last one; a full one may be one that does not lead on.
      const fullPage = Math.min(pageSize ?? Number.POSITIVE_INFINITY, Math.max(1, largestPage, sizes.maxEntityRows))
      const ending: Ending = rows < fullPage ? 'clean' : 'repeated'
      if (scrollKey !== undefined && !ignoresKeys) {
        givesKeys = true
        const digest = digestKey(scrollKey)
        const isUsed = current.usedKeys.has(digest)
        current.usedKeys.add(digest)
        current.scrollKey = scrollKey
        return fresh === 0 && (isUsed || current.barren >= maxBarrenPages) ? ending : undefined
      }
      if (givesKeys && !ignoresKeys) return 'clean'
      if (current.answers === 1 && isComplete) return 'clean'
      const isBehind = rows > 0 || page.isRefused === true || current.barren >= barrenLimit()
      if (fresh === 0 && current.answers > 1 && isBehind) return ending
      current.page += 1
      return undefined
    }

    /** Whether the reading that ends here shows, by itself or beside the one before, that no row is missing. */
    const isConfirmed = (ending: Ending, page: FeedbackPage, sizes: PageSizes): boolean => {
      const { answers, served, distinct, shared, late, hasDoubles, freshPages, largest } = current
      const isWhole = freshPages <= 1 && previous === undefined
      if (isWhole && ending === 'clean')
        if (answers === 1 || largest < Math.min(page.perPage, Math.max(1, sizes.maxEntityRows))) return true
      if (isWhole && ending === 'repeated' && !givesKeys && largest < Math.max(minRepeatedRows, sizes.maxEntityRows))
        return true
      // So many different rows as the pages of two readings told: whatever their order, none is missing.
      if (ending === 'clean' && served === toldRows && toldDistinct >= served) return true
      if (previous === undefined) return false
      const hasAll = shared === previous.distinct
      // Rows that were skipped between two pages would be others with pages of another size.
      const isVaried = largest !== previous.largest || largest === 1
      if (isSuspect && current.sliding !== previous.sliding) return false
      if (hasAll && distinct === shared && !hasDoubles && (isVaried || (!isSuspect && previous.repeats <= late)))
        return true
      // Where rows come all the time: one can only be skipped where another was removed, and that one would be missing now.
      const isGrowing = reading >= minGrowingReadings && hasAll && distinct === known
      return !isSuspect && isGrowing && previous.repeats <= distinct - shared + late
    }

    const chooseNextReading = (): ApiError | undefined => {
      const { served, distinct } = current
      if (isSuspect && previous !== undefined) {
        if (!givesKeys || ignoresKeys) return cutOffError
        ignoresKeys = true
        isSuspect = false
        previous = undefined
        pageSize = undefined
      } else {
        const share = sizeShares[reading % sizeShares.length] ?? 1
        const varied = previous === undefined ? largestPage - 1 : Math.floor(largestPage * share)
        previous = { distinct, repeats: served - distinct, largest: current.largest, sliding: current.sliding }
        pageSize = Math.max(largestPage === 1 ? 2 : 1, varied)
      }
      nextReading()
      return reading - restarts >= maxReadings ? changingError : undefined
    }

    const endReading = (ending: Ending, page: FeedbackPage, sizes: PageSizes): Pick<ScrollStep, 'isEnd' | 'error'> => {
      isSuspect ||= ending === 'repeated'
      if (isConfirmed(ending, page, sizes)) return { isEnd: true }
      if (current.served !== toldRows) {
        toldRows = current.served
        toldSince = reading
        toldDistinct = current.distinct
      }
      const error = chooseNextReading()
      return { isEnd: error !== undefined, ...defined({ error }) }
    }

    const createRequest = (to: number): FeedbackRequest => {
      const size = Math.min(pageSize ?? Number.POSITIVE_INFINITY, maxPageSize)
      const { page, scrollKey } = current
      const perPage = Number.isFinite(size) ? size : undefined
      return { kind, ids, from, to, page, ...defined({ perPage, scrollKey, days }) }
    }

    return {
      createRequest,
      isFirst: () => reading === 0 && current.answers === 0 && restarts === 0,
      takePage: (page, sizes, cutoff) => {
        const feedback = findEntityFeedback(id, page)
        const rows = feedback?.rows ?? []
        const taken = { feedback, reading }
        const fresh = countRows(rows, cutoff)
        current.answers += 1
        days ??= page.days
        current.barren = fresh === 0 ? current.barren + 1 : 0
        if (rows.length > 0) {
          current.hasShortPages ||= current.lastIsShort
          if (fresh > 0) current.freshPages += 1
          current.largest = Math.max(current.largest, rows.length)
          current.lastIsShort = rows.length < current.largest
        }
        largestPage = Math.max(largestPage, rows.length)
        const ending = findEnd(page, rows.length, fresh, sizes)
        if (ending !== undefined) return { ...taken, ...endReading(ending, page, sizes) }
        return current.answers < maxAnswers
          ? { ...taken, isEnd: false }
          : { ...taken, isEnd: true, error: endlessError }
      },
      recover: (error) => {
        const isSize = error._tag === 'TooLarge'
        const isKey = current.scrollKey !== undefined && isKeyRefusal(error)
        if (!isSize && !isKey) return error
        if (isKey && restarts >= maxRestarts) return refusedKeyError
        const size = Math.min(pageSize ?? Number.POSITIVE_INFINITY, maxPageSize, largestPage || defaultPageSize)
        if (isSize && size <= 1) return error
        if (isSize) maxPageSize = Math.floor(size / 2)
        restarts += 1
        previous = undefined
        nextReading()
        return undefined
      },
    }
  }
}

/** Clean: the service tells that no rows follow. Repeated: it gives rows again that have come. */
type Ending = 'clean' | 'repeated'

/** The page size from which to go down where a first answer is too large. */
const defaultPageSize = 100
