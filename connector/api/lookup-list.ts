import * as E from 'fp-ts/Either'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { configFailure, type Failure, printExactJson, transientFailure } from '../cdk'
import { type ApiError, maskAttributeName } from './error'
import type { LookupQuery } from './model/entity'

/** How a lookup is paged: the names of the parameters, and the dotted path of the number of pages in the answer. */
export type LookupPaging = {
  readonly pageParam: string
  /** The number of the first page. */
  readonly firstPage: number
  readonly sizeParam?: string
  /** Records in a page. */
  readonly size: number
  readonly totalPagesPath?: string
}

/** How published deployments list their locations: by id, in pages of at most 100. */
export const publishedLocationPaging: LookupPaging = {
  pageParam: 'page',
  firstPage: 1,
  sizeParam: 'size',
  size: 100,
  totalPagesPath: 'totalPages',
}

export const publishedLocationOrder: LookupQuery = { sortBy: 'id', sortDirection: 'ASC' }

export type LookupRecord = Readonly<Record<string, unknown>>

/** A lookup whose answer contains the records as a list. */
export type LookupListRequest = {
  /** The key of its settings, for messages, such as `lookups.sources`. */
  readonly setting: string
  readonly fetch: (query: LookupQuery) => TaskEither<ApiError, unknown>
  /** The dotted path of the records in an answer. If empty, the answer itself is the list. */
  readonly recordsPath: string
  /** If undefined, one request returns all records. */
  readonly paging?: LookupPaging
  /** Parameters of every request. */
  readonly query?: LookupQuery
  /** Identifies a record in all pages and readings. If undefined, the whole record does. */
  readonly identify: (record: LookupRecord) => string | undefined
  /** Only the first page is read. */
  readonly isSample?: boolean
}

/** `doubt`: why the list may lack records. `notes`: what a person should know. */
export type LookupList = {
  readonly records: ReadonlyArray<LookupRecord>
  readonly notes: ReadonlyArray<string>
  readonly doubt?: string
}

/** The service refused a request, or its answers are not the pages of a list. */
export type LookupListError =
  | { readonly _tag: 'Request'; readonly error: ApiError }
  | { readonly _tag: 'Answer'; readonly failure: Failure }

/** With more pages than this, the answers probably never end. */
export const maxLookupPages = 1000

/** How often a list is read if it changes during reading. */
const maxReadings = 5

const valueAt = (path: string, answer: unknown): unknown =>
  path
    .split('.')
    .filter((key) => key !== '')
    .reduce<unknown>((value, key) => (t.UnknownRecord.is(value) ? value[key] : undefined), answer)

const isRecordList = (value: unknown): value is ReadonlyArray<LookupRecord> =>
  Array.isArray(value) && value.every((record) => t.UnknownRecord.is(record))

const maxListedNames = 10

/** Names of the answer's attributes for a message. */
export const listAnswerNames = (names: ReadonlyArray<string>): string => {
  const masked = [
    ...new Set(names.map((name) => (name === '' ? '' : name.split('.').map(maskAttributeName).join('.')))),
  ]
  const more = masked.length > maxListedNames ? [`${masked.length - maxListedNames} more`] : []
  return [...masked.slice(0, maxListedNames).map((name) => name || '"" (the answer itself)'), ...more].join(', ')
}

/** The paths of the lists of objects in an answer, down to `depth` levels. */
const findLists = (value: unknown, path: string, depth: number): ReadonlyArray<string> => {
  if (isRecordList(value)) return [path]
  if (!t.UnknownRecord.is(value) || depth === 0) return []
  return Object.entries(value).flatMap(([key, inner]) =>
    findLists(inner, path === '' ? key : `${path}.${key}`, depth - 1),
  )
}

const answerError = (failure: Failure): E.Either<LookupListError, never> => E.left({ _tag: 'Answer', failure })

/** The records in an answer. The failure names the lists that the answer does have. */
const findRecords = (
  { setting, recordsPath }: Pick<LookupListRequest, 'setting' | 'recordsPath'>,
  answer: unknown,
): E.Either<LookupListError, ReadonlyArray<LookupRecord>> => {
  const records = valueAt(recordsPath, answer)
  if (isRecordList(records)) return E.right(records)
  const lists = findLists(answer, '', 3)
  const places = lists.length === 0 ? 'nowhere' : `at ${listAnswerNames(lists)}`
  return answerError(
    configFailure(
      `${setting}.records_path: there is no list of objects at ` +
        `${recordsPath === '' ? 'the top of the answer' : recordsPath}. The answer has one ${places}.`,
    ),
  )
}

/** The number of pages that an answer reports; undefined if it is not a number from 1. */
const readTotalPages = ({ totalPagesPath }: LookupPaging, answer: unknown): number | undefined => {
  const total = totalPagesPath === undefined ? undefined : valueAt(totalPagesPath, answer)
  const count = typeof total === 'string' && /^\d+$/.test(total) ? Number(total) : total
  return Number.isSafeInteger(count) && Number(count) > 0 ? Number(count) : undefined
}

/**
 * The records of one reading by identity. A record on a later page replaces an earlier one. Two records on the same
 * page are both kept if they differ.
 */
const createRecordSet = (identify: LookupListRequest['identify']) => {
  const entries = new Map<string, { readonly page: number; readonly contents: Map<string, LookupRecord> }>()
  return {
    /** Adds the records of a page. Returns how many of them are new. */
    add: (page: number, records: ReadonlyArray<LookupRecord>): number => {
      const before = entries.size
      for (const record of records) {
        const content = printExactJson(record)
        const key = identify(record) ?? content
        const entry = entries.get(key)
        if (entry?.page === page) entry.contents.set(content, record)
        else entries.set(key, { page, contents: new Map([[content, record]]) })
      }
      return entries.size - before
    },
    size: () => entries.size,
    has: (key: string) => entries.has(key),
    keys: () => [...entries.keys()],
    records: () => [...entries.values()].flatMap(({ contents }) => [...contents.values()]),
  }
}

type Reading = Omit<LookupList, 'records'> & {
  readonly set: ReturnType<typeof createRecordSet>
  /** A record may have been on no page, because another one was removed between two pages. */
  readonly mayLack: boolean
}

/** True for an answer that a service may give for a page after the last one. */
const isPageRefusal = (error: ApiError): boolean => error._tag === 'Http' && [400, 404, 416].includes(error.status)

/** The parameters for a page, numbered from 0. */
const queryOf = ({ query, paging }: LookupListRequest, page: number): LookupQuery => ({
  ...query,
  ...(paging === undefined ? {} : { [paging.pageParam]: paging.firstPage + page }),
  ...(paging?.sizeParam === undefined ? {} : { [paging.sizeParam]: paging.size }),
})

/** A reading of all pages, as far as it has come. Its members are mutable. */
type Progress = {
  readonly set: ReturnType<typeof createRecordSet>
  readonly notes: string[]
  /** The number of records on the longest page. */
  longest: number
  /** The number of pages that the service reports. */
  total: number | undefined
  /** The next page is read only as a precaution. */
  mayBeOver: boolean
  /** There may be records after the first page. */
  mayLack: boolean
}

/** Interprets a refused page: after other pages, it may be the end of the list. */
const takeRefusal = (
  { setting }: LookupListRequest,
  { set, notes, total, mayBeOver }: Progress,
  n: number,
  error: ApiError,
): E.Either<LookupListError, Reading> => {
  const isEnd = n > 0 && (mayBeOver || total === undefined) && isPageRefusal(error)
  if (!isEnd) return E.left({ _tag: 'Request', error })
  return E.right({ set, mayLack: n > 1, notes, ...(mayBeOver ? {} : { doubt: refusedPageDoubt(setting, n + 1) }) })
}

/** Interprets a page without new records. A service that ignores both parameters returns everything at once. */
const takeRepeatedPage = (
  { setting }: LookupListRequest,
  { pageParam, size }: LookupPaging,
  { set, notes, longest, total, mayBeOver }: Progress,
  n: number,
): E.Either<LookupListError, Reading> => {
  const isReported = total !== undefined && n + 1 < total
  const isEverything = n === 1 && (longest > size || (longest < size && !isReported))
  if (isReported && !isEverything) return repeatedPageError(setting, pageParam, n + 1)
  const isDoubtful = n === 1 && !isEverything && !mayBeOver
  const doubt = isDoubtful ? { doubt: repeatedPageDoubt(setting, pageParam, size) } : {}
  return E.right({ set, mayLack: n > 1, notes, ...doubt })
}

/** Takes the records of page `n`, from 0. Returns the reading if it ends there. */
const takePage = (
  request: LookupListRequest,
  paging: LookupPaging,
  progress: Progress,
  n: number,
  records: ReadonlyArray<LookupRecord>,
): E.Either<LookupListError, Reading> | undefined => {
  const { setting } = request
  const { set, notes, total } = progress
  const added = set.add(n, records)
  if (records.length === 0) {
    const isReported = total !== undefined && n + 1 < total
    if (isReported) notes.push(`${setting}: the service reports ${total} pages, but page ${n + 1} is empty.`)
    return E.right({ set, mayLack: progress.mayLack || isReported, notes })
  }
  if (added === 0) return takeRepeatedPage(request, paging, progress, n)
  if (progress.mayBeOver && total !== undefined && notes.length === 0)
    notes.push(`${setting}: the service has more pages than it reports (${n}); all of them are read.`)
  const isFull = records.length >= (n === 0 ? paging.size : progress.longest)
  progress.longest = Math.max(progress.longest, records.length)
  progress.mayLack ||= n > 0 || (isFull && total !== 1)
  progress.mayBeOver = total === undefined ? !isFull : n + 1 >= total
  // The first page may be short because the service limits the page size, whatever number of pages it reports.
  if (progress.mayBeOver && !isFull && n > 0) return E.right({ set, mayLack: progress.mayLack, notes })
  return undefined
}

/**
 * Reads all pages once. The reading ends at the number of pages that the service reports, at a page shorter than the
 * others, or at a page without new records.
 */
const readOnce = async (
  request: LookupListRequest,
  paging: LookupPaging,
): Promise<E.Either<LookupListError, Reading>> => {
  const progress: Progress = {
    set: createRecordSet(request.identify),
    notes: [],
    longest: 0,
    total: undefined,
    mayBeOver: false,
    mayLack: false,
  }
  for (let n = 0; n < maxLookupPages; n += 1) {
    const answer = await request.fetch(queryOf(request, n))()
    if (E.isLeft(answer)) return takeRefusal(request, progress, n, answer.left)
    const records = findRecords(request, answer.right)
    if (E.isLeft(records)) return records
    progress.total = readTotalPages(paging, answer.right)
    const end = takePage(request, paging, progress, n, records.right)
    if (end !== undefined) return end
  }
  return answerError(
    configFailure(
      `${request.setting}.paging: the list does not end after ${maxLookupPages} ` +
        `pages. Check page_param (${paging.pageParam}), or raise size.`,
    ),
  )
}

const repeatedPageError = (setting: string, pageParam: string, page: number): E.Either<LookupListError, never> =>
  answerError(
    configFailure(
      `${setting}.paging: page ${page} repeats earlier pages although the service reports more ` +
        `pages, so the rest of the list cannot be read. Check page_param (${pageParam}).`,
    ),
  )

const refusedPageDoubt = (setting: string, page: number): string =>
  `${setting}: the service refuses page ${page}, which is treated as the end of ` +
  'the list. Name total_pages_path, if the answer reports the number of pages.'

const repeatedPageDoubt = (setting: string, pageParam: string, size: number): string =>
  `${setting}: the second page repeats the first, which has ${size} records, as many as asked ` +
  `for. If the list is longer, the rest is not read: check paging.page_param (${pageParam}).`

/**
 * Reads a list completely. A list of several pages is read again until a reading has every record of the one before. If
 * a record is removed during reading, the others move, so one of them may be on no page.
 */
export const readLookupList =
  (request: LookupListRequest): TaskEither<LookupListError, LookupList> =>
  async () => {
    const { paging } = request
    if (paging === undefined || request.isSample === true) {
      const answer = await request.fetch(queryOf(request, 0))()
      if (E.isLeft(answer)) return E.left({ _tag: 'Request', error: answer.left })
      return E.map((records: LookupList['records']): LookupList => ({ records, notes: [] }))(
        findRecords(request, answer.right),
      )
    }
    let previous: Reading['set'] | undefined
    for (let reading = 1; reading <= maxReadings; reading += 1) {
      const read = await readOnce(request, paging)
      if (E.isLeft(read)) return read
      const { set, mayLack, notes, ...rest } = read.right
      const isConfirmed = previous?.keys().every(set.has) ?? !mayLack
      if (isConfirmed) {
        const changed =
          reading > 2 || (previous !== undefined && previous.size() !== set.size())
            ? [`${request.setting}: the list changed while it was read, so it was read ${reading} times.`]
            : []
        return E.right({ records: set.records(), notes: [...notes, ...changed], ...rest })
      }
      previous = set
    }
    return answerError(
      transientFailure(
        `${request.setting}: the list changes faster than it can be read: each of ` +
          `${maxReadings} readings lacks records of the one before. Run again later.`,
      ),
    )
  }
