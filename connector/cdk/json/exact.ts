import { parse, stringify } from 'lossless-json'

/** Whether a double holds the number that a JSON text means: it does not become infinite, nor 0 unless it is. */
export const fitsDouble = (digits: string): boolean => {
  const value = Number(digits)
  return Number.isFinite(value) && (value !== 0 || !/^-?[\d.]*[1-9]/.test(digits))
}

const parseExactNumber = (digits: string): number | bigint | string => {
  const value = Number(digits)
  if (/^-?\d+$/.test(digits)) return Number.isSafeInteger(value) ? value : BigInt(digits)
  return fitsDouble(digits) ? value : digits
}

/** What every number has that is too small for a double: a long exponent, or many zeros. */
const mayUnderflow = /e-\d{3}|0{300}/i

/** Whether a value holds a number that may have been rounded. */
const hasRoundedNumber = (value: unknown): boolean => {
  if (typeof value === 'number') return value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(hasRoundedNumber)
  for (const name in value) if (hasRoundedNumber((value as Readonly<Record<string, unknown>>)[name])) return true
  return false
}

/** The last of a repeated key counts, as for the engine's own parser. */
const takeLast = ({ newValue }: { readonly newValue: unknown }): unknown => newValue

/**
 * A JSON text as a value whose integers beyond 2^53 are bigints; any other number that no double holds is its text,
 * which is of the wrong type where a number is expected. Throws if the text is not JSON.
 */
export const parseExactJson = (text: string): unknown => {
  const value: unknown = JSON.parse(text)
  // The exact parser is slower: it reads only texts in which the engine's own has rounded a number.
  return hasRoundedNumber(value) || mayUnderflow.test(text)
    ? parse(text, null, { parseNumber: parseExactNumber, onDuplicateKey: takeLast })
    : value
}

/** The inverse: bigints print as digits. */
export const printExactJson = (value: unknown): string => {
  try {
    return JSON.stringify(value) ?? 'null'
  } catch {
    // The engine's own printer is faster but knows no bigint.
    return stringify(value) ?? 'null'
  }
}

/** JSON text that is passed on unchanged, so that no integer in it is rounded. */
export class JsonText {
  constructor(readonly text: string) {}
}

export const printJsonText = (value: unknown): string =>
  value instanceof JsonText ? value.text : JSON.stringify(value)
