import type { Cell } from './database'

/** A value of DuckDB's as JSON: integers in full, times in ISO 8601, bytes in hexadecimal. */
export const jsonCell = (value: Cell): string => {
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof Uint8Array) return JSON.stringify(Buffer.from(value).toString('hex'))
  if (Array.isArray(value)) return `[${value.map(jsonCell).join(',')}]`
  if (value === null || typeof value !== 'object' || value instanceof Date) return JSON.stringify(value)
  return `{${Object.entries(value)
    .map(([name, inner]) => `${JSON.stringify(name)}:${jsonCell(inner)}`)
    .join(',')}}`
}

/** The same for people: texts without quotes, nothing for null. */
export const textCell = (value: Cell): string => {
  if (value === null) return ''
  if (typeof value === 'string') return value
  return value instanceof Date ? value.toISOString() : jsonCell(value)
}
