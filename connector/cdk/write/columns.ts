import * as O from 'fp-ts/Option'
import * as t from 'io-ts'

/** The top-level attributes of a JSON schema; none where it names none. */
export const declaredColumns = (schema: unknown): O.Option<ReadonlySet<string>> => {
  const properties = t.UnknownRecord.is(schema) && t.UnknownRecord.is(schema.properties) ? schema.properties : {}
  const names = Object.keys(properties)
  return names.length === 0 ? O.none : O.some(new Set(names))
}
