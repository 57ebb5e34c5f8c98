import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import { annotate } from './schema'

/** An integer of up to 64 bits: a number if that is exact, otherwise a bigint. */
export type Int64 = number | bigint
const isInt64 = (value: unknown): value is Int64 =>
  typeof value === 'bigint' ? BigInt.asIntN(64, value) === value : Number.isInteger(value)

export const Int64 = annotate({ type: 'integer' })(
  new t.Type<Int64>(
    'Int64',
    isInt64,
    (value, context) => (isInt64(value) ? t.success(value) : t.failure(value, context)),
    t.identity,
  ),
)

const isSafeInteger = (value: unknown): value is number => Number.isSafeInteger(value)

/** A small integer, such as a count or a limit. */
export const Integer = annotate({ type: 'integer' })(
  new t.Type<number>(
    'Integer',
    isSafeInteger,
    (value, context) => (isSafeInteger(value) ? t.success(value) : t.failure(value, context)),
    t.identity,
  ),
)

const isoInstant = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?$/

/** Milliseconds since 1970 of an ISO 8601 time, in UTC if it has no zone; NaN for any other text. */
export const toMillis = (time: string): number => {
  const parts = isoInstant.exec(time)
  if (parts === null) return Number.NaN
  const day = Number(time.slice(8, 10))
  // Date.parse reads 30 February as 1 March.
  if (day > 28 && new Date(`${time.slice(0, 10)}T00:00:00Z`).getUTCDate() !== day) return Number.NaN
  return Date.parse(parts[3] === undefined ? `${time}Z` : time)
}

/** The ISO 8601 time in UTC, yyyy-MM-dd'T'HH:mm:ss.SSS'Z', of milliseconds since 1970. */
export const toInstant = (millis: number): string => new Date(millis).toISOString()

/** An ISO 8601 time; the connector emits it in UTC with `Z`. */
export type Instant = string
export const Instant = annotate({ type: 'string', format: 'date-time', airbyte_type: 'timestamp_with_timezone' })(
  new t.Type<Instant>(
    'Instant',
    (value): value is Instant => typeof value === 'string' && !Number.isNaN(toMillis(value)),
    (value, context) =>
      E.filterOrElse(
        (text: string) => !Number.isNaN(toMillis(text)),
        () => [{ value, context, message: 'not an ISO 8601 time' }] as t.Errors,
      )(t.string.validate(value, context)),
    t.identity,
  ),
)
