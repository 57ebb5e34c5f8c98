import type { JS } from '@duckdb/node-api'

/** A value as `query` gives it: integers as a number where that is exact, else as a bigint; JSON as its text. */
export type Cell = JS
export type Cells = Readonly<Record<string, Cell>>

export const toCells = (row: Cells): Cells =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name, toCell(value)]))

const toCell = (value: Cell): Cell => {
  if (typeof value === 'bigint')
    return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value
  if (Array.isArray(value)) return value.map(toCell)
  if (value === null || typeof value !== 'object' || value instanceof Date || value instanceof Uint8Array) return value
  return toCells(value) as { [key: string]: Cell }
}
