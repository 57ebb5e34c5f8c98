import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COMMA,
  colon,
  number,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  space,
  string,
  textOf,
  word,
} from './token'
import type { Walk } from './walk'

/**
 * A record that repeats keys, printed anew with the last of each, as JSON.parse reads it; latin1, as `Edit.text`.
 * Of an attribute under both of its names the declared one stays, unless it is null. Only for text already walked.
 */
export const distinct = (walk: Walk, at: number, rename: Readonly<Record<string, string>>): string => {
  const [members] = membersOf(walk, at)
  for (const [from, to] of Object.entries(rename)) {
    const declared = members.get(to)
    if (declared !== undefined && members.has(from)) members.delete(declared === 'null' ? to : from)
  }
  return printed(members)
}

type Members = Map<string, string>

const printed = (members: Members): string =>
  `{${[...members].map(([key, text]) => `${Buffer.from(JSON.stringify(key)).toString('latin1')}:${text}`).join(',')}}`

const membersOf = (walk: Walk, at: number): readonly [Members, number] => {
  const members: Members = new Map()
  let p = space(walk, at + 1)
  while (walk.bytes[p] !== CLOSE_OBJECT) {
    const end = string(walk, p + 1)
    const [text, next] = printedAt(walk, colon(walk, end))
    members.set(textOf(walk, p, end), text)
    p = afterComma(walk, next)
  }
  return [members, p + 1]
}

const printedAt = (walk: Walk, at: number): readonly [string, number] => {
  switch (walk.bytes[at]) {
    case OPEN_OBJECT: {
      const [members, end] = membersOf(walk, at)
      return [printed(members), end]
    }
    case OPEN_ARRAY: {
      const texts: string[] = []
      let p = space(walk, at + 1)
      while (walk.bytes[p] !== CLOSE_ARRAY) {
        const [text, next] = printedAt(walk, p)
        texts.push(text)
        p = afterComma(walk, next)
      }
      return [`[${texts.join(',')}]`, p + 1]
    }
    case QUOTE:
      return spanned(walk, at, string(walk, at + 1))
    case 0x66:
    case 0x6e:
    case 0x74:
      return spanned(walk, at, word(walk, at))
    default:
      return spanned(walk, at, number(walk, at))
  }
}

const spanned = ({ bytes }: Walk, from: number, to: number): readonly [string, number] => [
  bytes.toString('latin1', from, to),
  to,
]

const afterComma = (walk: Walk, at: number): number => {
  const p = space(walk, at)
  return walk.bytes[p] === COMMA ? space(walk, p + 1) : p
}
