import { closeSync, fsyncSync, openSync, renameSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DuckDBType, DuckDBValue, JS } from '@duckdb/node-api'
import { CommandError, configFailure, pathFailure } from '../../cdk'
import { loadDuckdb } from './duckdb'

/** A value as returned by `query`: an integer as a number if that is exact, otherwise as a bigint; JSON as its text. */
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

/**
 * A DuckDB value as JSON on one line: JSON columns as the values they hold, numbers with all digits, times in ISO 8601
 * (with `Z` if they have a zone), bytes in hexadecimal, and any other type as the text that DuckDB prints.
 */
export const encodeJsonValue = (value: DuckDBValue, type: DuckDBType): string => {
  if (value === null) return 'null'
  if (typeof value === 'string') return isJsonType(type) ? value.replaceAll(/[\r\n]/g, ' ') : JSON.stringify(value)
  if (typeof value === 'number' || typeof value === 'boolean') return JSON.stringify(value)
  if (typeof value === 'bigint' || value instanceof loadDuckdb().DuckDBDecimalValue) return value.toString()
  return encodeNestedValue(value, type) ?? JSON.stringify(encodeScalarText(value))
}

/** The same as text for the user: strings without quotes, an empty text for null. */
export const encodeTextValue = (value: DuckDBValue, type: DuckDBType): string => {
  if (value === null) return ''
  if (typeof value !== 'object') return String(value)
  return encodeNestedValue(value, type) ?? encodeScalarText(value)
}

const isJsonType = (type: DuckDBType): boolean =>
  type.alias === 'JSON' && type.typeId === loadDuckdb().DuckDBTypeId.VARCHAR

type ObjectValue = Exclude<DuckDBValue, null | boolean | number | bigint | string>

const encodeNestedValue = (value: ObjectValue, type: DuckDBType): string | undefined => {
  const { DuckDBArrayValue, DuckDBListValue, DuckDBMapValue, DuckDBStructValue, DuckDBTypeId } = loadDuckdb()
  if (value instanceof DuckDBListValue || value instanceof DuckDBArrayValue) {
    const items = type.typeId === DuckDBTypeId.LIST || type.typeId === DuckDBTypeId.ARRAY ? type.valueType : type
    return `[${value.items.map((item) => encodeJsonValue(item, items)).join(',')}]`
  }
  if (value instanceof DuckDBStructValue && type.typeId === DuckDBTypeId.STRUCT)
    return encodeMembers(
      type.entryNames.map((name, i) => [
        name,
        encodeJsonValue(value.entries[name] ?? null, type.entryTypes[i] ?? type),
      ]),
    )
  if (value instanceof DuckDBMapValue && type.typeId === DuckDBTypeId.MAP)
    return encodeMembers(
      value.entries.map((entry) => [
        encodeTextValue(entry.key, type.keyType),
        encodeJsonValue(entry.value, type.valueType),
      ]),
    )
  return undefined
}

const encodeMembers = (entries: ReadonlyArray<readonly [name: string, json: string]>): string =>
  `{${entries.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',')}}`

const encodeScalarText = (value: ObjectValue): string => {
  const { DuckDBBlobValue, DuckDBDateValue, DuckDBTimestampTZValue } = loadDuckdb()
  if (value instanceof DuckDBBlobValue) return Buffer.from(value.bytes).toString('hex')
  if (value instanceof DuckDBDateValue) return value.toString()
  const micros = readMicros(value)
  if (micros === undefined || !('isFinite' in value) || !value.isFinite) return value.toString()
  return `${formatMicros(micros)}${value instanceof DuckDBTimestampTZValue ? 'Z' : ''}`
}

const readMicros = (value: ObjectValue): bigint | undefined => {
  const duckdb = loadDuckdb()
  if (value instanceof duckdb.DuckDBTimestampTZValue || value instanceof duckdb.DuckDBTimestampValue)
    return value.micros
  if (value instanceof duckdb.DuckDBTimestampSecondsValue) return value.seconds * 1_000_000n
  if (value instanceof duckdb.DuckDBTimestampMillisecondsValue) return value.millis * 1000n
  return value instanceof duckdb.DuckDBTimestampNanosecondsValue ? value.nanos / 1000n : undefined
}

/** ISO 8601 with milliseconds, or with microseconds if there are any. */
const formatMicros = (micros: bigint): string => {
  const rest = ((micros % 1000n) + 1000n) % 1000n
  const date = new Date(Number((micros - rest) / 1000n))
  if (Number.isNaN(date.getTime())) return `${micros} microseconds since 1970`
  return `${date.toISOString().slice(0, -1)}${rest === 0n ? '' : String(rest).padStart(3, '0')}`
}

export const cellToNumber = (cell: CellValue | undefined): number => Number(cell ?? 0)
export const cellToNumberOrNull = (cell: CellValue | undefined): number | null =>
  cell === null || cell === undefined ? null : Number(cell)

export const cellToTextOrNull = (cell: CellValue | undefined): string | null =>
  cell === null || cell === undefined ? null : String(cell)

/** A time in ISO 8601, UTC; null for one that has no calendar date, such as `infinity`. */
export const cellToTimeOrNull = (cell: CellValue | undefined): string | null =>
  cell instanceof Date && !Number.isNaN(cell.getTime()) ? cell.toISOString() : null

/** Does something with a path. Rejects with a reason if the file system refuses it. */
export const usePath = <A>(path: string, work: () => A): A => {
  try {
    return work()
  } catch (error) {
    throw explainPathError(path, error)
  }
}

/** A file system error as a failure with a reason; returns any other error as it is. */
export const explainPathError = (path: string, error: unknown): unknown =>
  error instanceof Error && 'syscall' in error ? new CommandError(pathFailure(path, error)) : error

/** Replaces one file with another on the same disk. */
export const replaceFile = (from: string, to: string): void => {
  try {
    flush(from)
    renameSync(from, to)
    flush(dirname(to))
  } catch (error) {
    throw new CommandError(
      configFailure(`${to} cannot be replaced. ${(error as NodeJS.ErrnoException).code}: check the folder.`),
    )
  }
}

const flush = (path: string): void => {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
