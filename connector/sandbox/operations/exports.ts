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
import { reviewText } from '../data/review-text'
import { readReviewRows } from '../data/tables'
import { badRequestError } from './operation'

/** In which order an export is served; none is promised by the service. `ties`: a new random order among equal times at every request. */
export const exportOrders = ['modified_asc', 'modified_desc', 'id', 'ties'] as const
export type ExportOrder = (typeof exportOrders)[number]

/** The order as SQL; `nonce` changes with every request. */
export const orderClause = (order: ExportOrder, nonce: number): string =>
  ({
    modified_asc: 'modified, id',
    modified_desc: 'modified DESC, id DESC',
    id: 'id',
    ties: `modified, hash(id + ${nonce * 7919})`,
  })[order]

/** A part of an ordered selection. */
export type SelectionSlice = {
  readonly table: 'review' | 'deleted'
  readonly where: string
  readonly order: ExportOrder
  readonly offset: number
  readonly limit: number
  /** Differs at every request. */
  readonly nonce: number
}

export type SelectionCache = {
  /** The ids of a slice, with the time of each. */
  readonly readSlice: (
    slice: SelectionSlice,
  ) => Promise<ReadonlyArray<{ readonly id: string; readonly modified: number }>>
  /** Something has changed. */
  readonly clear: () => void
}

/** The first or last place of the run of equal times that a place lies in. */
const runEdge = (sorted: string, which: 'min' | 'max', place: string): string =>
  `(SELECT ${which}(rowid) FROM ${sorted} WHERE modified = (SELECT modified FROM ${sorted} WHERE rowid = ${place}))`

/** A slice in a new order among equal times: only the runs that it touches are shuffled. */
const shuffleSlice = (sorted: string, { offset, limit, nonce }: SelectionSlice): string => {
  const first = runEdge(sorted, 'min', String(offset))
  const last = runEdge(sorted, 'max', `(SELECT least(max(rowid), ${offset + limit - 1}) FROM ${sorted})`)
  return `SELECT id, modified FROM (
      SELECT id, modified, ${first} + row_number() OVER (ORDER BY ${orderClause('ties', nonce)}) - 1 AS place
      FROM ${sorted} WHERE rowid BETWEEN ${first} AND ${last}
    ) WHERE place BETWEEN ${offset} AND ${offset + limit - 1} ORDER BY place`
}

/** Sorts a selection once and serves its slices from there, until something changes: a page deep inside costs what the first does. */
export const createSelectionCache = (database: Database): SelectionCache => {
  const sortedAs = new Map<string, string>()
  return {
    readSlice: async (slice) => {
      const { table, where, order, offset, limit } = slice
      const sorted = `sorted_${table}`
      const query = `SELECT id, modified FROM ${table} WHERE ${where} ORDER BY ${orderClause(order === 'ties' ? 'modified_asc' : order, 0)}`
      if (sortedAs.get(sorted) !== query) {
        await database.run(`CREATE OR REPLACE TEMP TABLE ${sorted} AS ${query}`)
        sortedAs.set(sorted, query)
      }
      const rows = await database.query(
        `SELECT id::VARCHAR AS id, epoch_ms(modified) AS modified FROM (${
          order === 'ties'
            ? shuffleSlice(sorted, slice)
            : `SELECT id, modified FROM ${sorted} WHERE rowid BETWEEN ${offset} AND ${offset + limit - 1} ORDER BY rowid`
        })`,
      )
      return rows.map(({ id, modified }) => ({ id: String(id), modified: Number(modified) }))
    },
    clear: () => sortedAs.clear(),
  }
}

export type ExportContext = {
  readonly clientId: string
  readonly order: ExportOrder
  /** The service's clock, milliseconds. */
  readonly now: number
  /** Differs at every request. */
  readonly nonce: number
  readonly selections: SelectionCache
}

const instantPattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const isInstant = (time: string): boolean =>
  instantPattern.test(time) && !Number.isNaN(Date.parse(time)) && new Date(time).toISOString() === time

/** What is wrong with a request for an export, if anything (operations 6 and 7). */
const findRequestProblem = (request: ExportRequest): string | undefined => {
  const times = (['modifiedTimeFrom', 'mentionTimeAfter', 'mentionTimeBefore'] as const).filter((name) => {
    const time = request[name]
    return time !== undefined && !isInstant(time)
  })
  if (times.length > 0) return `${times.join(', ')}: expected the pattern yyyy-MM-dd'T'HH:mm:ss.SSS'Z'`
  if (request.limit !== undefined && (request.limit < 1 || request.limit > 1000)) return 'limit: expected 1 to 1000'
  if (request.offset !== undefined && (request.offset < 0 || request.offset > Number.MAX_SAFE_INTEGER))
    return 'offset: expected 0 or more'
  const unknown = (request.additionalFields ?? []).filter((name) => name !== 'brand' && name !== 'visitRecordId')
  return unknown.length > 0 ? 'additionalFields: expected brand, visitRecordId' : undefined
}

const pageRange = (request: ExportRequest): { readonly offset: number; readonly limit: number } => ({
  offset: request.offset ?? 0,
  limit: request.limit ?? 1000,
})

/** Times are after and before, never at (operation 6); all are plain numbers by now. */
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

/** A page of operation 6, or why the request is refused; the filter echo says the defaults of what was not asked. */
export const serveReviewExport = async (
  database: Database,
  { clientId, order, now, nonce, selections }: ExportContext,
  request: ExportRequest,
): Promise<E.Either<ApiError, RawResponse>> => {
  const fault = findRequestProblem(request)
  if (fault !== undefined) return E.left(badRequestError(fault))
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
  { modifiedTimeFrom, sources: asked, ...page }: DeletedExportRequest,
): Promise<E.Either<ApiError, RawResponse>> => {
  // Attributes that the operation does not have mean nothing, whatever they hold.
  const request = {
    modifiedTimeFrom,
    ...defined({ sources: asked, offset: page.offset, limit: page.limit }),
  }
  const fault = findRequestProblem(request)
  if (fault !== undefined) return E.left(badRequestError(fault))
  const { offset, limit } = pageRange(request)
  const where = exportCondition(request)
  const rows = await selections.readSlice({ table: 'deleted', where, order, offset, limit, nonce })
  const sources = await listSourceIds(database, asked)
  return E.right(
    exportAnswer(
      rows.map(({ id, modified }) => `{"id":${id},"modifiedTime":"${toInstant(modified)}"}`),
      { clientId, sources, modifiedTimeFrom, offset, limit },
    ),
  )
}

/** The texts of these reviews, in their order. */
const readReviewTexts = async (
  database: Database,
  ids: ReadonlyArray<string>,
  additionalFields: ReadonlyArray<string>,
): Promise<ReadonlyArray<string>> => {
  if (ids.length === 0) return []
  // Constants in the list let DuckDB go through the index.
  const rows = await readReviewRows(database, `WHERE r.id IN (${ids.join(', ')})`)
  const texts = new Map(rows.map((row) => [row.id, reviewText(row, additionalFields)]))
  return ids.flatMap((id) => texts.get(id) ?? [])
}

const listSourceIds = async (
  database: Database,
  asked: ReadonlyArray<number> | undefined,
): Promise<ReadonlyArray<number>> =>
  asked !== undefined && asked.length > 0
    ? asked
    : (await database.query('SELECT id FROM source ORDER BY id')).map(({ id }) => Number(id))

const exportAnswer = (reviews: ReadonlyArray<string>, filter: ExportFilter): RawResponse => ({
  body: Buffer.from(`{"reviews":[${reviews.join(',')}],"filter":${JSON.stringify(filter)}}`),
})
