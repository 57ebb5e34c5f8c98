import * as O from 'fp-ts/Option'
import type { JsonSchema } from '../../connector/cdk/schema'
import type { Stream } from '../../connector/cdk/stream'
import { printExact } from './destination'

const typeOf = ({ type, format, items }: JsonSchema): string => {
  const name = [type].flat().find((one) => one !== 'null') ?? 'any'
  if (name === 'array') return `array of ${typeOf((items as JsonSchema | undefined) ?? {})}`
  return format === 'date-time' ? 'date-time' : String(name)
}

/** An attribute and, below it, what it holds; each with type and meaning. */
const attributes = (schema: JsonSchema, path = ''): ReadonlyArray<string> =>
  Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>).flatMap(([key, attribute]) => {
    const inner = (attribute.items as JsonSchema | undefined) ?? attribute
    return [
      `| \`${path}${key}\` | ${typeOf(attribute)} | ${String(attribute.description ?? '').replaceAll('|', '\\|')} |`,
      ...attributes(inner, `${path}${key}${attribute.items === undefined ? '' : '[]'}.`),
    ]
  })

/** A stream as docs/streams.md shows it. */
export const streamDoc = (
  { name, schema, primaryKey, cursor, syncModes }: Stream<never>,
  { what, costs }: { readonly what: string; readonly costs: string },
  example: unknown,
): string =>
  [
    `## ${name}`,
    '',
    what,
    '',
    `- Sync modes: ${syncModes.map((mode) => mode.replace('_', ' ')).join(', ')}`,
    `- Primary key: ${primaryKey.map((key) => `\`${key}\``).join(', ')}`,
    ...(O.isSome(cursor) ? [`- Cursor: \`${cursor.value}\``] : []),
    `- Costs: ${costs}`,
    '',
    '| attribute | type | meaning |',
    '| --- | --- | --- |',
    ...attributes(schema),
    ...(example === undefined ? [] : ['', '```json', printExact(example), '```']),
    '',
  ].join('\n')
