import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import { annotate, type JsonSchema } from '../../cdk'

/** An integer of up to 64 bits: a number where that is exact, otherwise a bigint. */
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

/** Milliseconds since 1970 of an ISO 8601 time, in UTC where it names no zone; NaN for any other text. */
export const toMillis = (time: string): number => {
  const parts = isoInstant.exec(time)
  if (parts === null) return Number.NaN
  const day = Number(time.slice(8, 10))
  // Date.parse reads 30 February as 1 March.
  if (day > 28 && new Date(`${time.slice(0, 10)}T00:00:00Z`).getUTCDate() !== day) return Number.NaN
  return Date.parse(parts[3] === undefined ? `${time}Z` : time)
}

/** Milliseconds since 1970 in the pattern of the service, yyyy-MM-dd'T'HH:mm:ss.SSS'Z'. */
export const toInstant = (millis: number): string => new Date(millis).toISOString()

/** The second that a time lies in, in the pattern of operations 1 to 3, yyyy-MM-dd'T'HH:mm:ss'Z'. */
export const toSecondInstant = (millis: number): string => `${toInstant(millis).slice(0, -5)}Z`

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

/** Adds the meaning of an attribute, which docs/streams.md and the catalog show. */
export const describeAttribute = (description: string) => annotate({ description })

type Nullable<P extends t.Props> = { [K in keyof P]: t.UnionC<[P[K], t.NullC]> }

/** Attributes that may be null or missing: exports omit nulls, other operations send them. */
export const optionalAttributes = <P extends t.Props>(props: P): t.PartialC<Nullable<P>> =>
  t.partial(
    Object.fromEntries(
      Object.entries(props).map(([key, codec]) => {
        const { description } = (codec as { schema?: { description?: string } }).schema ?? {}
        const union = t.union([codec, t.null])
        return [key, description === undefined ? union : describeAttribute(description)(union)]
      }),
    ) as unknown as Nullable<P>,
  )

/** A value that is text in a query or a form. */
const textCodec = <A>(
  name: string,
  schema: JsonSchema,
  is: (value: unknown) => value is A,
  parse: (text: string) => unknown,
): t.Type<A, A, unknown> =>
  annotate(schema)(
    new t.Type<A, A, unknown>(
      name,
      is,
      (value, context) => {
        const parsed = typeof value === 'string' ? parse(value) : value
        return is(parsed) ? t.success(parsed) : t.failure(value, context)
      },
      t.identity,
    ),
  )

const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)
const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean'
const isTextList = (value: unknown): value is ReadonlyArray<string> =>
  Array.isArray(value) && value.every((item) => typeof item === 'string')

const parseNumber = (text: string): number => (text.trim() === '' ? Number.NaN : Number(text))

export const NumberText = textCodec('NumberText', { type: 'number' }, isNumber, parseNumber)
export const IntegerText = textCodec('IntegerText', { type: 'integer' }, isSafeInteger, parseNumber)
export const BooleanText = textCodec('BooleanText', { type: 'boolean' }, isBoolean, (text) =>
  text === 'true' ? true : text === 'false' ? false : undefined,
)

/** A list as repeated keys; a key that comes once is a list of one. */
export const TextList = textCodec('Texts', { type: 'array', items: { type: 'string' } }, isTextList, (text) => [text])
