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
import { readReviewRows, reviewText } from '../data/review-text'
import { badRequestError } from './operation'

/** Orders of an export's rows; the service promises none. `ties` is by time, with a new random order among equal times for every request. */
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

/** A range of the rows that `where` selects, in an order. */
export type SelectionSlice = {
  readonly table: 'review' | 'deleted'
  readonly where: string
  readonly order: ExportOrder
  readonly offset: number
  readonly limit: number
  /** Differs for every request. */
  readonly nonce: number
}

export type SelectionCache = {
  /** The ids of a slice, each with its modification time in milliseconds. */
  readonly readSlice: (
    slice: SelectionSlice,
  ) => Promise<ReadonlyArray<{ readonly id: string; readonly modified: number }>>
  /** Must be called when the data changes. */
  readonly clear: () => void
}

/** SQL for the first or last position among the rows with the same time as the row at a position. */
const tieBoundary = (table: string, aggregate: 'min' | 'max', position: string): string =>
  `(SELECT ${aggregate}(rowid) FROM ${table} WHERE modified = (SELECT modified FROM ${table} WHERE rowid = ${position}))`

/** SQL for a slice in a random order among equal times; only rows with a time in the slice are shuffled. */
const shuffleSlice = (table: string, { offset, limit, nonce }: SelectionSlice): string => {
  const first = tieBoundary(table, 'min', String(offset))
  const last = tieBoundary(table, 'max', `(SELECT least(max(rowid), ${offset + limit - 1}) FROM ${table})`)
  return `SELECT id, modified FROM (
      SELECT id, modified, ${first} + row_number() OVER (ORDER BY ${orderClause('ties', nonce)}) - 1 AS position
      FROM ${table} WHERE rowid BETWEEN ${first} AND ${last}
    ) WHERE position BETWEEN ${offset} AND ${offset + limit - 1} ORDER BY position`
}

/** Sorts a selection once and reads its slices from the sorted table until the data changes, so that every page takes equally long. */
export const createSelectionCache = (database: Database): SelectionCache => {
  const sortedQueries = new Map<string, string>()
  return {
    readSlice: async (slice) => {
      const { table, where, order, offset, limit } = slice
      const sortedTable = `sorted_${table}`
      const query = `SELECT id, modified FROM ${table} WHERE ${where} ORDER BY ${orderClause(order === 'ties' ? 'modified_asc' : order, 0)}`
      if (sortedQueries.get(sortedTable) !== query) {
        await database.run(`CREATE OR REPLACE TEMP TABLE ${sortedTable} AS ${query}`)
        sortedQueries.set(sortedTable, query)
      }
      const rows = await database.query(
        `SELECT id::VARCHAR AS id, epoch_ms(modified) AS modified FROM (${
          order === 'ties'
            ? shuffleSlice(sortedTable, slice)
            : `SELECT id, modified FROM ${sortedTable} WHERE rowid BETWEEN ${offset} AND ${offset + limit - 1} ORDER BY rowid`
        })`,
      )
      return rows.map(({ id, modified }) => ({ id: String(id), modified: Number(modified) }))
    },
    clear: () => sortedQueries.clear(),
  }
}

export type ExportContext = {
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

/** SQL for the filter of operation 6: times are exclusive. All values are checked numbers, so none needs quoting. */
const exportCondition = (request: ExportRequest): string =>
  [
    `modified > ${timestampLiteral(request.modifiedTimeFrom)}`,
    ...(request.sources === undefined || request.sources.length === 0
      ? []
      : [`source_id IN (${request.sources.join(', ')})`]),
    ...(request.mentionTimeAfter === undefined ? [] : [`mention > ${timestampLiteral(request.mentionTimeAfter)}`]),
    ...(request.mentionTimeBefore === undefined ? [] : [`mention < ${timestampLiteral(request.mentionTimeBefore)}`]),
  ].join(' AND ')

const timestampLiteral = (time: string): string => `epoch_ms(${Date.parse(time)})`

/** A page of operation 6, or why the request is refused; the filter echo has the default of each filter that the request lacks. */
export const serveReviewExport = async (
  database: Database,
  { clientId, order, now, nonce, selections }: ExportContext,
  request: ExportRequest,
): Promise<E.Either<ApiError, RawResponse>> => {
  const problem = findRequestProblem(request)
  if (problem !== undefined) return E.left(badRequestError(problem))
  const { offset, limit } = pageRange(request)
  const where = exportCondition(request)
  const rows = await selections.readSlice({ table: 'review', where, order, offset, limit, nonce })
  const additionalFields = request.additionalFields ?? []
  const texts = await readReviewTexts(
    database,
    rows.map(({ id }) => id),
    additionalFields,
  )
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
  const where = exportCondition(request)
  const rows = await selections.readSlice({ table: 'deleted', where, order, offset, limit, nonce })
  return E.right(
    exportAnswer(
      rows.map(({ id, modified }) => `{"id":${id},"modifiedTime":"${toInstant(modified)}"}`),
      { clientId, sources: await listSourceIds(database, sources), modifiedTimeFrom, offset, limit },
    ),
  )
}

/** The JSON texts of reviews, in the order of the ids. */
const readReviewTexts = async (
  database: Database,
  ids: ReadonlyArray<string>,
  additionalFields: ReadonlyArray<string>,
): Promise<ReadonlyArray<string>> => {
  if (ids.length === 0) return []
  // DuckDB uses the index only if the list has constants.
  const rows = await readReviewRows(database, `WHERE r.id IN (${ids.join(', ')})`)
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
