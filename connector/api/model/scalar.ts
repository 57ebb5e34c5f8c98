import * as t from 'io-ts'
import { annotate, type JsonSchema, toInstant } from '../../cdk'

/** The second that contains a time, in the format of operations 1 to 3, yyyy-MM-dd'T'HH:mm:ss'Z'. */
export const toSecondInstant = (millis: number): string => `${toInstant(millis).slice(0, -5)}Z`

/** Adds the description of an attribute for docs/streams.md and the catalog. */
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

/** A value that is a string in a query or a form. */
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

const isSafeInteger = (value: unknown): value is number => Number.isSafeInteger(value)
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

/** A list as repeated keys; a single key is a list of one. */
export const TextList = textCodec('Texts', { type: 'array', items: { type: 'string' } }, isTextList, (text) => [text])
