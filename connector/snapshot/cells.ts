import type { JS } from '@duckdb/node-api'

/** A value as `query` gives it: integers as a number where that is exact, else as a bigint; JSON as its text. */
export type CellValue = JS
export type RowValues = Readonly<Record<string, CellValue>>

export const toRowValues = (row: RowValues): RowValues =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name, toCellValue(value)]))

const toCellValue = (value: CellValue): CellValue => {
  if (typeof value === 'bigint')
    return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value
  if (Array.isArray(value)) return value.map(toCellValue)
  if (value === null || typeof value !== 'object' || value instanceof Date || value instanceof Uint8Array) return value
  return toRowValues(value) as { [key: string]: CellValue }
}
