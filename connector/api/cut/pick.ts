import { skip } from './skip'
import { COMMA, colon, QUOTE, space, string, textOf } from './token'
import { walkOf } from './walk'

/** Leaves the wanted top-level attributes of a record, as they came; for the text of an object as it leaves a cutter. */
export const pick =
  (wanted: ReadonlySet<string>) =>
  (json: Uint8Array): Uint8Array => {
    const bytes = Buffer.from(json.buffer, json.byteOffset, json.byteLength)
    const walk = walkOf(bytes, { undeclared: 'keep', list: '' }, 0, new Set())
    const members: string[] = []
    let p = space(walk, 1)
    while (bytes[p] === QUOTE) {
      const end = string(walk, p + 1)
      const next = skip(walk, colon(walk, end), 0)
      if (wanted.has(textOf(walk, p, end))) members.push(bytes.toString('latin1', p, next))
      p = space(walk, next)
      if (bytes[p] === COMMA) p = space(walk, p + 1)
    }
    return Buffer.from(`{${members.join(',')}}`, 'latin1')
  }
