import type { Database } from '../snapshot/database'
import { type ExportOrder, orderClause } from './export-orders'

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
