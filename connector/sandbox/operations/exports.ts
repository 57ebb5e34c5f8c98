import * as E from 'fp-ts/Either'
import {
  type ApiError,
  type DeletedExportRequest,
  type ExportFilter,
  type ExportRequest,
  type RawResponse,
  toInstant,
} from '../../api'
import { defined } from '../../cdk'
import type { Database } from '../../snapshot/store'
import { readReviewRows } from '../data/review-tables'
import { reviewText } from '../data/review-text'
import { badRequestError } from './operation'

/**
 * Orders of an export's rows, since the service promises none. `ties` is by time, with a new random order among equal
 * times for every request.
 */
export const exportOrders = ['modified_asc', 'modified_desc', 'id', 'ties'] as const
export type ExportOrder = (typeof exportOrders)[number]

/** SQL for an order; `nonce` must differ for every request. */
export const orderClause = (order: ExportOrder, nonce: number): string =>
  ({
    modified_asc: 'modified, id',
    modified_desc: 'modified DESC, id DESC',
    id: 'id',
    ties: `modified, hash(id + ${nonce * 7919})`,
  })[order]

/** A range of the rows modified after a time (milliseconds) that `where` selects, in an order. */
type SelectionSlice = {
  readonly table: 'review' | 'deleted'
  readonly after: number
  readonly where: string
  readonly order: ExportOrder
  readonly offset: number
  readonly limit: number
  /** Differs for every request. */
  readonly nonce: number
}

/** `modified`: milliseconds since 1970. */
type SliceRow = { readonly id: string; readonly modified: number }

type SelectionCache = {
  readonly readSlice: (slice: SelectionSlice) => Promise<ReadonlyArray<SliceRow>>
  /** Call it when the data changes. */
  readonly clear: () => void
}

/** SQL for the first or last position among the rows with the same time as the row at a position. */
const tieBoundary = (table: string, aggregate: 'min' | 'max', position: string): string =>
  `(SELECT ${aggregate}(rowid) FROM ${table}
    WHERE modified = (SELECT modified FROM ${table} WHERE rowid = ${position}))`

/**
 * SQL for the rows of a sorted table from position `first` to `last`, in a random order among equal times. Only rows
 * with a time in the slice are shuffled.
 */
const shuffleRows = (table: string, first: number, last: number, nonce: number): string => {
  const firstTie = tieBoundary(table, 'min', String(first))
  const lastTie = tieBoundary(table, 'max', `(SELECT least(max(rowid), ${last}) FROM ${table})`)
  return `SELECT id, modified FROM (
      SELECT id, modified, ${firstTie} + row_number() OVER (ORDER BY ${orderClause('ties', nonce)}) - 1 AS position
      FROM ${table} WHERE rowid BETWEEN ${firstTie} AND ${lastTie}
    ) WHERE position BETWEEN ${first} AND ${last} ORDER BY position`
}

/** How many selections stay sorted. Eight shares of a backfill alternate between several windows each. */
const maxSortedSelections = 32

/**
 * Sorts a selection once and reads its slices from the sorted table until the data changes, so that every page takes
 * equally long. In order of time, the rows after any time are adjacent, so readers of several time ranges share one
 * table. Windows of mention times have a table each.
 */
export const createSelectionCache = (database: Database): SelectionCache => {
  /** The sorted tables by their queries, the most recently read one last. */
  const sortedTables = new Map<string, string>()
  let isStale = false
  const dropSorted = async (count: number): Promise<void> => {
    for (const [query, sortedTable] of [...sortedTables].slice(0, Math.max(0, count))) {
      await database.run(`DROP TABLE ${sortedTable}`)
      sortedTables.delete(query)
    }
  }
  let created = 0
  const sortSelection = async (query: string): Promise<string> => {
    await dropSorted(isStale ? sortedTables.size : 0)
    isStale = false
    const found = sortedTables.get(query)
    sortedTables.delete(query)
    const sortedTable = found ?? `sorted_${++created}`
    if (found === undefined) {
      await dropSorted(sortedTables.size + 1 - maxSortedSelections)
      await database.run(`CREATE TEMP TABLE ${sortedTable} AS ${query}`)
    }
    sortedTables.set(query, sortedTable)
    return sortedTable
  }
  return {
    readSlice: async ({ table, after, where, order, offset, limit, nonce }) => {
      const isAfter = `modified > epoch_ms(${after})`
      const sortedOrder = order === 'ties' ? 'modified_asc' : order
      const sortedTable = await sortSelection(`
        SELECT id, modified FROM ${table}
        WHERE ${order === 'id' ? `${where} AND ${isAfter}` : where}
        ORDER BY ${orderClause(sortedOrder, 0)}`)
      const skipped =
        sortedOrder === 'modified_asc'
          ? Number(await database.scalar(`SELECT count(*) FROM ${sortedTable} WHERE NOT ${isAfter}`))
          : 0
      const [first, last] = [skipped + offset, skipped + offset + limit - 1]
      const slice =
        order === 'ties'
          ? shuffleRows(sortedTable, first, last, nonce)
          : `SELECT id, modified FROM ${sortedTable}
             WHERE rowid BETWEEN ${first} AND ${last} AND ${isAfter} ORDER BY rowid`
      const rows = await database.query(`SELECT id::VARCHAR AS id, epoch_ms(modified) AS modified FROM (${slice})`)
      return rows.map(({ id, modified }) => ({ id: String(id), modified: Number(modified) }))
    },
    clear: () => {
      isStale = true
    },
  }
}

type ExportContext = {
  readonly clientId: string
  readonly order: ExportOrder
  /** The service's time in milliseconds. */
  readonly now: number
  /** Differs for every request. */
  readonly nonce: number
  readonly selections: SelectionCache
}

const instantPattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const isInstant = (time: string): boolean =>
  instantPattern.test(time) && !Number.isNaN(Date.parse(time)) && new Date(time).toISOString() === time

/** What is wrong with a request of operation 6 or 7; undefined if nothing is. */
const findRequestProblem = (request: ExportRequest): string | undefined => {
  const wrongTimes = (['modifiedTimeFrom', 'mentionTimeAfter', 'mentionTimeBefore'] as const).filter((name) => {
    const time = request[name]
    return time !== undefined && !isInstant(time)
  })
  if (wrongTimes.length > 0) return `${wrongTimes.join(', ')}: expected the pattern yyyy-MM-dd'T'HH:mm:ss.SSS'Z'`
  if (request.limit !== undefined && (request.limit < 1 || request.limit > 1000)) return 'limit: expected 1 to 1000'
  if (request.offset !== undefined && (request.offset < 0 || request.offset > Number.MAX_SAFE_INTEGER))
    return 'offset: expected 0 or more'
  const unknownFields = (request.additionalFields ?? []).filter((name) => name !== 'brand' && name !== 'visitRecordId')
  return unknownFields.length > 0 ? 'additionalFields: expected brand, visitRecordId' : undefined
}

const pageRange = (request: ExportRequest): { readonly offset: number; readonly limit: number } => ({
  offset: request.offset ?? 0,
  limit: request.limit ?? 1000,
})

/**
 * SQL for the filters of operation 6 except the modification time; times are exclusive. All values are checked numbers,
 * so none needs quoting.
 */
const exportCondition = (request: ExportRequest): string =>
  [
    'true',
    ...(request.sources === undefined || request.sources.length === 0
      ? []
      : [`source_id IN (${request.sources.join(', ')})`]),
    ...(request.mentionTimeAfter === undefined ? [] : [`mention > ${timestampLiteral(request.mentionTimeAfter)}`]),
    ...(request.mentionTimeBefore === undefined ? [] : [`mention < ${timestampLiteral(request.mentionTimeBefore)}`]),
  ].join(' AND ')

const timestampLiteral = (time: string): string => `epoch_ms(${Date.parse(time)})`

/**
 * A page of operation 6, or why the request is refused. The filter echo has the default of each filter that the request
 * omits.
 */
export const serveReviewExport = async (
  database: Database,
  { clientId, order, now, nonce, selections }: ExportContext,
  request: ExportRequest,
): Promise<E.Either<ApiError, RawResponse>> => {
  const problem = findRequestProblem(request)
  if (problem !== undefined) return E.left(badRequestError(problem))
  const { offset, limit } = pageRange(request)
  const [after, where] = [Date.parse(request.modifiedTimeFrom), exportCondition(request)]
  const rows = await selections.readSlice({ table: 'review', after, where, order, offset, limit, nonce })
  const additionalFields = request.additionalFields ?? []
  const texts = await readReviewTexts(database, rows, additionalFields)
  return E.right(
    exportAnswer(texts, {
      clientId,
      sources: await listSourceIds(database, request.sources),
      modifiedTimeFrom: request.modifiedTimeFrom,
      mentionTimeAfter: request.mentionTimeAfter ?? toInstant(0),
      mentionTimeBefore: request.mentionTimeBefore ?? toInstant(now),
      dateType: 'MODIFIED_TIME',
      offset,
      limit,
      additionalFields,
    }),
  )
}

/** A page of operation 7, or why the request is refused. */
export const serveDeletedExport = async (
  database: Database,
  { clientId, order, nonce, selections }: ExportContext,
  { modifiedTimeFrom, sources, ...page }: DeletedExportRequest,
): Promise<E.Either<ApiError, RawResponse>> => {
  // The operation ignores attributes that it does not have, whatever their values.
  const request = {
    modifiedTimeFrom,
    ...defined({ sources, offset: page.offset, limit: page.limit }),
  }
  const problem = findRequestProblem(request)
  if (problem !== undefined) return E.left(badRequestError(problem))
  const { offset, limit } = pageRange(request)
  const [after, where] = [Date.parse(modifiedTimeFrom), exportCondition(request)]
  const rows = await selections.readSlice({ table: 'deleted', after, where, order, offset, limit, nonce })
  return E.right(
    exportAnswer(
      rows.map(({ id, modified }) => `{"id":${id},"modifiedTime":"${toInstant(modified)}"}`),
      { clientId, sources: await listSourceIds(database, sources), modifiedTimeFrom, offset, limit },
    ),
  )
}

/** The JSON texts of the reviews of a slice, in its order. */
const readReviewTexts = async (
  database: Database,
  slice: ReadonlyArray<SliceRow>,
  additionalFields: ReadonlyArray<string>,
): Promise<ReadonlyArray<string>> => {
  if (slice.length === 0) return []
  const ids = slice.map(({ id }) => id)
  const times = slice.map(({ modified }) => modified)
  // DuckDB uses the index only if the list has constants. It reads the rows between two times without it, as they lie
  // together.
  const rows = await readReviewRows(
    database,
    `WHERE r.id IN (${ids.join(', ')}) AND r.modified BETWEEN ` +
      `epoch_ms(${Math.min(...times)}) AND epoch_ms(${Math.max(...times)})`,
  )
  const texts = new Map(rows.map((row) => [row.id, reviewText(row, additionalFields)]))
  return ids.flatMap((id) => texts.get(id) ?? [])
}

/** The requested sources, or all sources if the request names none. */
const listSourceIds = async (
  database: Database,
  requested: ReadonlyArray<number> | undefined,
): Promise<ReadonlyArray<number>> =>
  requested !== undefined && requested.length > 0
    ? requested
    : (await database.query('SELECT id FROM source ORDER BY id')).map(({ id }) => Number(id))

const exportAnswer = (reviews: ReadonlyArray<string>, filter: ExportFilter): RawResponse => ({
  body: Buffer.from(`{"reviews":[${reviews.join(',')}],"filter":${JSON.stringify(filter)}}`),
})
