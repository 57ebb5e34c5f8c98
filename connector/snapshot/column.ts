import type { JsonSchema } from '../cdk/schema'
import { type ColumnType, chooseColumnType } from './column-type'
import { quoteIdentifier, quoteLiteral } from './database'

export type { ColumnType } from './column-type'

export type Column = { readonly name: string; readonly type: ColumnType }

/** The columns every stream's table ends with, under the names Airbyte's destinations give them. */
export const metaColumns = [
  ['_airbyte_raw_id', 'UUID'],
  ['_airbyte_extracted_at', 'TIMESTAMPTZ'],
  ['_airbyte_meta', 'JSON'],
  ['_airbyte_generation_id', 'BIGINT'],
] as const

/** The declared attributes in the schema's order. */
export const columnsFromSchema = (schema: JsonSchema): ReadonlyArray<Column> =>
  Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>).map(([name, property]) => ({
    name,
    type: chooseColumnType(property, schema),
  }))

/** The attribute as text that does not depend on the session: what the fingerprint of a row is made of. */
const canonicalSql = ({ name, type }: Column): string =>
  type === 'TIMESTAMPTZ' ? `epoch_us(${quoteIdentifier(name)})` : `${quoteIdentifier(name)}::VARCHAR`

/** `_airbyte_raw_id`: a fingerprint of the row's own values; nulls do not count, so a new column leaves it as it was. */
export const fingerprintSql = (columns: ReadonlyArray<Column>): string =>
  `md5(concat_ws(chr(31), ''${columns.map((column) => `, ${quoteLiteral(`${column.name}=`)} || ${canonicalSql(column)}`).join('')}))::UUID`
