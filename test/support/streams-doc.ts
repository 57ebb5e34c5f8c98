import * as O from 'fp-ts/Option'
import type { JsonSchema } from '../../connector/cdk/schema'
import type { Stream } from '../../connector/cdk/stream'
import { printExact } from './destination'

const typeOf = ({ type, format, items }: JsonSchema): string => {
  const name = [type].flat().find((name) => name !== 'null') ?? 'any'
  if (name === 'array') return `array of ${typeOf((items as JsonSchema | undefined) ?? {})}`
  return format === 'date-time' ? 'date-time' : String(name)
}

/** A table row for each attribute, followed by those of the attributes within it: path, type and meaning. */
const attributeRows = (schema: JsonSchema, path = ''): ReadonlyArray<string> =>
  Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>).flatMap(([key, attribute]) => {
    const inner = (attribute.items as JsonSchema | undefined) ?? attribute
    return [
      `| \`${path}${key}\` | ${typeOf(attribute)} | ${String(attribute.description ?? '').replaceAll('|', '\\|')} |`,
      ...attributeRows(inner, `${path}${key}${attribute.items === undefined ? '' : '[]'}.`),
    ]
  })

/** The section of docs/streams.md about a stream. */
export const formatStreamDoc = (
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
    ...attributeRows(schema),
    ...(example === undefined ? [] : ['', '```json', printExact(example), '```']),
    '',
  ].join('\n')
