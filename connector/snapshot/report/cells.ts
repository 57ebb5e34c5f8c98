import type { CellValue } from '../database'

export const cellToNumber = (cell: CellValue | undefined): number => Number(cell ?? 0)
export const cellToNumberOrNull = (cell: CellValue | undefined): number | null =>
  cell === null || cell === undefined ? null : Number(cell)
export const cellToTextOrNull = (cell: CellValue | undefined): string | null =>
  cell === null || cell === undefined ? null : String(cell)

/** A time in ISO 8601, UTC; null for one that no calendar of ours can write, such as `infinity`. */
export const cellToTimeOrNull = (cell: CellValue | undefined): string | null =>
  cell instanceof Date && !Number.isNaN(cell.getTime()) ? cell.toISOString() : null
