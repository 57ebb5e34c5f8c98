import { skipValue } from './skip'
import { COMMA, decodeString, QUOTE, skipColon, skipSpace, skipString } from './token'
import { createCutState } from './walk'

/** Leaves the wanted top-level attributes of a record, as they came; for the text of an object as it leaves a cutter. */
export const pickRecordAttributes =
  (wanted: ReadonlySet<string>) =>
  (json: Uint8Array): Uint8Array => {
    const bytes = Buffer.from(json.buffer, json.byteOffset, json.byteLength)
    const walk = createCutState(bytes, { undeclared: 'keep', list: '' }, 0, new Set())
    const members: string[] = []
    let p = skipSpace(walk, 1)
    while (bytes[p] === QUOTE) {
      const end = skipString(walk, p + 1)
      const next = skipValue(walk, skipColon(walk, end), 0)
      if (wanted.has(decodeString(walk, p, end))) members.push(bytes.toString('latin1', p, next))
      p = skipSpace(walk, next)
      if (bytes[p] === COMMA) p = skipSpace(walk, p + 1)
    }
    return Buffer.from(`{${members.join(',')}}`, 'latin1')
  }
