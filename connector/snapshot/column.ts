import type { JsonSchema } from '../cdk/schema'
import { literal, quoted } from './database'

export type ColumnType = 'BIGINT' | 'DOUBLE' | 'BOOLEAN' | 'VARCHAR' | 'DATE' | 'TIMESTAMPTZ' | 'JSON'
export type Column = { readonly name: string; readonly type: ColumnType }

/** The columns every stream's table ends with, under the names Airbyte's destinations give them. */
export const metaColumns = [
  ['_airbyte_raw_id', 'UUID'],
  ['_airbyte_extracted_at', 'TIMESTAMPTZ'],
  ['_airbyte_meta', 'JSON'],
  ['_airbyte_generation_id', 'BIGINT'],
] as const

const scalars: Readonly<Record<string, ColumnType>> = { integer: 'BIGINT', number: 'DOUBLE', boolean: 'BOOLEAN' }
const formats: Readonly<Record<string, ColumnType>> = { 'date-time': 'TIMESTAMPTZ', date: 'DATE' }

/** Objects, arrays and what has no single type stay JSON, so that no nested attribute is lost and no integer rounded. */
export const columnType = ({ type, format }: JsonSchema): ColumnType => {
  const [only, ...others] = [type].flat().filter((name) => name !== 'null')
  if (typeof only !== 'string' || others.length > 0) return 'JSON'
  if (only === 'string') return formats[String(format)] ?? 'VARCHAR'
  return scalars[only] ?? 'JSON'
}

/** The declared attributes in the schema's order. */
export const columnsOf = (schema: JsonSchema): ReadonlyArray<Column> =>
  Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>).map(([name, property]) => ({
    name,
    type: columnType(property),
  }))

/** The attribute as text that does not depend on the session: what the fingerprint of a row is made of. */
const canonical = ({ name, type }: Column): string =>
  type === 'TIMESTAMPTZ' ? `epoch_us(${quoted(name)})` : `${quoted(name)}::VARCHAR`

/** `_airbyte_raw_id`: a fingerprint of the row's own values; nulls do not count, so a new column leaves it as it was. */
export const fingerprint = (columns: ReadonlyArray<Column>): string =>
  `md5(concat_ws(chr(31), ''${columns.map((column) => `, ${literal(`${column.name}=`)} || ${canonical(column)}`).join('')}))::UUID`
