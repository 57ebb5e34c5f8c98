import { parse, stringify } from 'lossless-json'

const exact = (digits: string): number | bigint => {
  const value = Number(digits)
  return /^-?\d+$/.test(digits) && !Number.isSafeInteger(value) ? BigInt(digits) : value
}

/** A JSON text as a value whose integers beyond 2^53 are bigints; throws on anything else than JSON. */
export const parseJson = (text: string): unknown => {
  // A document without a long number needs no slower parser: a double holds any 15 digits.
  return /\d{16}/.test(text) ? parse(text, null, exact) : JSON.parse(text)
}

/** The inverse: bigints print as digits. */
export const printJson = (value: unknown): string => {
  try {
    return JSON.stringify(value) ?? 'null'
  } catch {
    // The engine's own printer is faster but knows no bigint.
    return stringify(value) ?? 'null'
  }
}
