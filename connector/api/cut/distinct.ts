import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COMMA,
  decodeString,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipColon,
  skipLiteral,
  skipNumber,
  skipSpace,
  skipString,
} from './token'
import type { CutState } from './walk'

/**
 * A record that repeats keys, printed anew with the last of each, as JSON.parse reads it; latin1, as `Edit.text`.
 * Of an attribute under both of its names the declared one stays, unless it is null. Only for text already walked.
 */
export const removeDuplicateKeys = (walk: CutState, at: number, rename: Readonly<Record<string, string>>): string => {
  const [members] = readMembers(walk, at)
  for (const [from, to] of Object.entries(rename)) {
    const declared = members.get(to)
    if (declared !== undefined && members.has(from)) members.delete(declared === 'null' ? to : from)
  }
  return printMembers(members)
}

type PrintedMembers = Map<string, string>

const printMembers = (members: PrintedMembers): string =>
  `{${[...members].map(([key, text]) => `${Buffer.from(JSON.stringify(key)).toString('latin1')}:${text}`).join(',')}}`

const readMembers = (walk: CutState, at: number): readonly [PrintedMembers, number] => {
  const members: PrintedMembers = new Map()
  let p = skipSpace(walk, at + 1)
  while (walk.bytes[p] !== CLOSE_OBJECT) {
    const end = skipString(walk, p + 1)
    const [text, next] = printValueAt(walk, skipColon(walk, end))
    members.set(decodeString(walk, p, end), text)
    p = skipComma(walk, next)
  }
  return [members, p + 1]
}

const printValueAt = (walk: CutState, at: number): readonly [string, number] => {
  switch (walk.bytes[at]) {
    case OPEN_OBJECT: {
      const [members, end] = readMembers(walk, at)
      return [printMembers(members), end]
    }
    case OPEN_ARRAY: {
      const texts: string[] = []
      let p = skipSpace(walk, at + 1)
      while (walk.bytes[p] !== CLOSE_ARRAY) {
        const [text, next] = printValueAt(walk, p)
        texts.push(text)
        p = skipComma(walk, next)
      }
      return [`[${texts.join(',')}]`, p + 1]
    }
    case QUOTE:
      return readSpan(walk, at, skipString(walk, at + 1))
    case 0x66:
    case 0x6e:
    case 0x74:
      return readSpan(walk, at, skipLiteral(walk, at))
    default:
      return readSpan(walk, at, skipNumber(walk, at))
  }
}

const readSpan = ({ bytes }: CutState, from: number, to: number): readonly [string, number] => [
  bytes.toString('latin1', from, to),
  to,
]

const skipComma = (walk: CutState, at: number): number => {
  const p = skipSpace(walk, at)
  return walk.bytes[p] === COMMA ? skipSpace(walk, p + 1) : p
}
