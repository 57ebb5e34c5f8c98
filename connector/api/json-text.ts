import { parse, stringify } from 'lossless-json'

const exact = (digits: string): number | bigint => {
  const value = Number(digits)
  return /^-?\d+$/.test(digits) && !Number.isSafeInteger(value) ? BigInt(digits) : value
}

/** Whether a value holds a number that may have been rounded. */
const holdsRounded = (value: unknown): boolean => {
  if (typeof value === 'number') return value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(holdsRounded)
  for (const name in value) if (holdsRounded((value as Readonly<Record<string, unknown>>)[name])) return true
  return false
}

/** Of a key that comes more than once the last counts, as for the engine's own parser. */
const lastOf = ({ newValue }: { readonly newValue: unknown }): unknown => newValue

/** A JSON text as a value whose integers beyond 2^53 are bigints; throws on anything else than JSON. */
export const parseJson = (text: string): unknown => {
  const value: unknown = JSON.parse(text)
  // The slower parser is for those alone whom the engine's own has rounded.
  return holdsRounded(value) ? parse(text, null, { parseNumber: exact, onDuplicateKey: lastOf }) : value
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
