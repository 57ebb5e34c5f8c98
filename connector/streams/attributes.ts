import * as O from 'fp-ts/Option'
import type { Row } from '../cdk'
import { pickRecordAttributes } from '../export'

/** Keeps only the selected top-level attributes of a row; without a selection, all of them. */
export const selectAttributes = (attributes: O.Option<ReadonlySet<string>>): ((row: Row) => Row) => {
  if (O.isNone(attributes)) return (row) => row
  const selected = attributes.value
  const pickAttributes = pickRecordAttributes(selected)
  return ({ json, changes = [] }) => {
    const selectedChanges = changes.filter(({ field }) => selected.has(field.split('.')[0] ?? ''))
    return { json: pickAttributes(json), ...(selectedChanges.length === 0 ? {} : { changes: selectedChanges }) }
  }
}
