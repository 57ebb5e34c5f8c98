import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { describeAttribute, optionalAttributes } from '../api'
import type { Row } from '../cdk'
import { pickRecordAttributes } from '../export'

/** What undeclared attributes of a record are collected in. */
export const UnknownAttributes = optionalAttributes({
  unknown_attributes: describeAttribute('Attributes the service sent that this version does not know, as they came')(
    t.UnknownRecord,
  ),
})

/** Leaves only the wanted top-level attributes of a row; all of them where none are named. */
export const selectAttributes = (attributes: O.Option<ReadonlySet<string>>): ((row: Row) => Row) => {
  if (O.isNone(attributes)) return (row) => row
  const wanted = attributes.value
  const picked = pickRecordAttributes(wanted)
  return ({ json, changes }) => {
    const left = changes?.filter(({ field }) => wanted.has(field.split('.')[0] ?? ''))
    return { json: picked(json), ...(left === undefined || left.length === 0 ? {} : { changes: left }) }
  }
}
