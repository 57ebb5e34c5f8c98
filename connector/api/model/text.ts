import * as t from 'io-ts'
import { annotate, type JsonSchema } from '../../cdk/schema'

/** A value that travels as text in a query or a form. */
const textCodec = <A>(
  name: string,
  schema: JsonSchema,
  is: (value: unknown) => value is A,
  read: (text: string) => unknown,
): t.Type<A, A, unknown> =>
  annotate(schema)(
    new t.Type<A, A, unknown>(
      name,
      is,
      (value, context) => {
        const meant = typeof value === 'string' ? read(value) : value
        return is(meant) ? t.success(meant) : t.failure(value, context)
      },
      t.identity,
    ),
  )

const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)
const isIntegerValue = (value: unknown): value is number => Number.isSafeInteger(value)
const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean'
const isTextList = (value: unknown): value is ReadonlyArray<string> =>
  Array.isArray(value) && value.every((item) => typeof item === 'string')

const parseNumber = (text: string): number => (text.trim() === '' ? Number.NaN : Number(text))

export const NumberText = textCodec('NumberText', { type: 'number' }, isNumber, parseNumber)
export const IntegerText = textCodec('IntegerText', { type: 'integer' }, isIntegerValue, parseNumber)
export const BooleanText = textCodec('BooleanText', { type: 'boolean' }, isBoolean, (text) =>
  text === 'true' ? true : text === 'false' ? false : undefined,
)

/** Texts as repeated keys; a key that comes once is a list of one. */
export const TextList = textCodec('Texts', { type: 'array', items: { type: 'string' } }, isTextList, (text) => [text])
