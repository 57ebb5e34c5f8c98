import type { JsonSchema } from '../../cdk/schema'
import type { Check } from '../check'
import { type Column, columnsOf, fingerprint } from '../column'
import { literal, quoted } from '../database'
import { type Context, hasColumns, keyText, said, together } from './context'

/** What holds for the rows of any stream. */
export const rowChecks = (all: Context): ReadonlyArray<Check> => {
  const streams = all.filter(({ columns }) => columns.length > 0)
  const keyed = streams.filter((stream) => stream.key.length > 0 && hasColumns(stream, ...stream.key))
  return [
    {
      name: 'column types',
      explain: 'Every declared attribute has its column, of the type its schema asks for.',
      sql: together(
        all.flatMap(({ name, schema }) =>
          columnsOf(schema).map(
            (column) => `
      SELECT ${said(name, `${literal(`${column.name} is `)} || coalesce(max(data_type), 'missing') || ${literal(`, not ${column.type}`)}`)}
      FROM duckdb_columns() WHERE database_name = current_database() AND table_name = ${literal(name)} AND column_name = ${literal(column.name)}
      HAVING coalesce(max(data_type), '') <> ${literal(column.type === 'TIMESTAMPTZ' ? 'TIMESTAMP WITH TIME ZONE' : column.type)}`,
          ),
        ),
      ),
    },
    {
      name: 'attributes nobody declared',
      explain:
        'What came without being declared is kept; ask for a new version of the connector, or declare it in the catalog.',
      note: true,
      sql: together(
        streams.flatMap(({ name, schema, columns }) => [
          ...undeclaredColumns(name, schema, columns),
          ...collected(name, columns),
        ]),
      ),
    },
    {
      name: 'keys are there',
      explain: 'No attribute of a primary key is null.',
      sql: together(
        keyed.map(
          ({ name, key }) => `
      SELECT ${said(name, keyText(key))} FROM ${quoted(name)} WHERE ${key.map((column) => `${quoted(column)} IS NULL`).join(' OR ')}`,
        ),
      ),
    },
    {
      name: 'keys are unique',
      explain: 'Each primary key has one row.',
      sql: together(
        keyed.map(
          ({ name, key }) => `
      SELECT ${said(name, `${keyText(key)} || ' has ' || count(*) || ' rows'`)}
      FROM ${quoted(name)} GROUP BY ${key.map(quoted).join(', ')} HAVING count(*) > 1`,
        ),
      ),
    },
    {
      name: 'values as they came',
      explain:
        'Each row still has the fingerprint it was written with (_airbyte_raw_id); otherwise a value was changed since.',
      sql: together(
        streams.map(
          (stream) => `
      SELECT ${said(stream.name, stream.key.length === 0 ? '_airbyte_raw_id::VARCHAR' : keyText(stream.key))}
      FROM ${quoted(stream.name)} WHERE _airbyte_raw_id IS DISTINCT FROM ${fingerprint(stream.columns)}`,
        ),
      ),
    },
    {
      name: 'cursors inside their run',
      explain: 'No cursor is null, earlier than the first or later than the last that a load brought.',
      sql: together(
        streams.flatMap(({ name, key, cursor, columns }) => {
          const type = columns.find((column) => column.name === cursor)?.type
          if (cursor === undefined || type === undefined) return []
          const exact = (value: string) => (type === 'TIMESTAMPTZ' ? `date_trunc('millisecond', ${value})` : value)
          return [
            `
      SELECT ${said(name, `${keyText(key)} || ${literal(` has ${cursor} `)} || coalesce(${quoted(cursor)}::VARCHAR, 'null')`)}
      FROM ${quoted(name)}, (
        SELECT min(cursor_from::${type}) AS first, max(cursor_to::${type}) AS last FROM _loads WHERE stream = ${literal(name)})
      WHERE ${quoted(cursor)} IS NULL OR ${quoted(cursor)} < ${exact('first')} OR ${exact(quoted(cursor))} > last`,
          ]
        }),
      ),
    },
    {
      name: 'ratings',
      explain: 'rating, reviewScore and the score of a sentiment are from 0 to 5.',
      sql: together(
        streams.flatMap(({ name, key, columns }) =>
          columns
            .filter((column) => column.type === 'DOUBLE' && ['rating', 'reviewScore', 'score'].includes(column.name))
            .map(
              (column) => `
      SELECT ${said(name, `${keyText(key)} || ${literal(` has ${column.name} `)} || ${quoted(column.name)}`)}
      FROM ${quoted(name)} WHERE NOT ${quoted(column.name)} BETWEEN 0 AND 5`,
            ),
        ),
      ),
    },
  ]
}

const undeclaredColumns = (
  stream: string,
  schema: JsonSchema,
  columns: ReadonlyArray<Column>,
): ReadonlyArray<string> => {
  const declared = new Set(columnsOf(schema).map(({ name }) => name))
  return columns
    .filter(({ name }) => !declared.has(name))
    .map(
      ({ name }) => `
      SELECT ${literal(`${stream}: ${name}`)} AS what`,
    )
}

/** What our own source has collected. */
const collected = (stream: string, columns: ReadonlyArray<Column>): ReadonlyArray<string> =>
  columns.some(({ name, type }) => name === 'unknown_attributes' && type === 'JSON')
    ? [
        `
      SELECT DISTINCT ${said(stream, 'name')} FROM (SELECT unnest(json_keys(unknown_attributes)) AS name FROM ${quoted(stream)})`,
      ]
    : []
