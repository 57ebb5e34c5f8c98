import { parse, stringify } from 'lossless-json'

/** A double holds the number without overflow or underflow: it does not become infinite, nor zero unless it is zero. */
export const fitsDouble = (digits: string): boolean => {
  const value = Number(digits)
  return Number.isFinite(value) && (value !== 0 || !/^-?[\d.]*[1-9]/.test(digits))
}

const parseExactNumber = (digits: string): number | bigint | string => {
  const value = Number(digits)
  if (/^-?\d+$/.test(digits)) return Number.isSafeInteger(value) ? value : BigInt(digits)
  return fitsDouble(digits) ? value : digits
}

/** Matches every number too small for a double, by its long exponent or its many zeros. */
const mayUnderflow = /e-\d{3}|0{300}/i

/** True if a value holds a number that may have been rounded. */
const hasRoundedNumber = (value: unknown): boolean => {
  if (typeof value === 'number') return value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(hasRoundedNumber)
  for (const name in value) if (hasRoundedNumber((value as Readonly<Record<string, unknown>>)[name])) return true
  return false
}

/** The last of a repeated key counts, as in JSON.parse. */
const takeLast = ({ newValue }: { readonly newValue: unknown }): unknown => newValue

/**
 * Parses JSON with integers beyond 2^53 as bigints. A number too large or too small for a double becomes its digits as
 * a string, which is the wrong type where a number is expected. Throws if the text is not JSON.
 */
export const parseExactJson = (text: string): unknown => {
  const value: unknown = JSON.parse(text)
  // The exact parser is slower, so it reads only texts with a number that JSON.parse may have rounded.
  return hasRoundedNumber(value) || mayUnderflow.test(text)
    ? parse(text, null, { parseNumber: parseExactNumber, onDuplicateKey: takeLast })
    : value
}

/** The inverse of `parseExactJson`: bigints print as digits. */
export const printExactJson = (value: unknown): string => {
  try {
    return JSON.stringify(value) ?? 'null'
  } catch {
    // JSON.stringify is faster but does not support bigint.
    return stringify(value) ?? 'null'
  }
}

/** JSON text that is passed on unchanged, so that none of its integers is rounded. */
export class JsonText {
  constructor(readonly text: string) {}
}

export const printJsonText = (value: unknown): string =>
  value instanceof JsonText ? value.text : JSON.stringify(value)
