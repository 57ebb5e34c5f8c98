import type { Cell } from '../database'

export const numberOf = (cell: Cell | undefined): number => Number(cell ?? 0)
export const numberOrNull = (cell: Cell | undefined): number | null =>
  cell === null || cell === undefined ? null : Number(cell)
export const textOrNull = (cell: Cell | undefined): string | null =>
  cell === null || cell === undefined ? null : String(cell)

/** A time in ISO 8601, UTC; null for one that no calendar of ours can write, such as `infinity`. */
export const timeOrNull = (cell: Cell | undefined): string | null =>
  cell instanceof Date && !Number.isNaN(cell.getTime()) ? cell.toISOString() : null
