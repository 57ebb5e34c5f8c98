import * as O from 'fp-ts/Option'
import { parseJson, printJson } from '../api/json-text'
import type { Row } from '../cdk/message'

/** Leaves only the wanted top-level attributes of a row; all of them where none are named. */
export const selecting = (attributes: O.Option<ReadonlySet<string>>): ((row: Row) => Row) => {
  if (O.isNone(attributes)) return (row) => row
  const wanted = attributes.value
  return ({ json, changes }) => {
    const kept = Object.entries(parseJson(Buffer.from(json).toString()) as object).filter(([key]) => wanted.has(key))
    const left = changes?.filter(({ field }) => wanted.has(field.split('.')[0] ?? ''))
    return {
      json: Buffer.from(printJson(Object.fromEntries(kept))),
      ...(left === undefined || left.length === 0 ? {} : { changes: left }),
    }
  }
}
