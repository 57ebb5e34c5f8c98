import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import type { Failure } from '../failure'
import type { Feed } from '../feed'
import { readObjectMembers } from '../json-span'
import { splitLines } from '../lines-of'
import type { InputMessage } from './arrival'

/** What a destination is told, those of one piece of the input together. */
export type InputFeed = Feed<Failure, ReadonlyArray<InputMessage>>

/** A line of the input, its bytes as they came, counted from 1. */
export type InputLine = { readonly bytes: Buffer; readonly number: number }

/** A JSON text as a value; throws on anything else. */
export type ParseJson = (text: string) => unknown

/** A message of either protocol. */
export type ProtocolMessage = { readonly type: string } & Readonly<Record<string, unknown>>

const isProtocolMessage = (value: unknown): value is ProtocolMessage =>
  t.UnknownRecord.is(value) && typeof value.type === 'string'

const parseMessage = (parse: ParseJson, bytes: Buffer): ProtocolMessage | undefined => {
  try {
    const value = parse(bytes.toString('utf8'))
    return isProtocolMessage(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** What the lines of an input mean: each is told by `meaning`, undefined where it means nothing; `message`: undefined where it is none. */
export async function* decodeLines(
  input: AsyncIterable<Uint8Array>,
  parse: ParseJson,
  meaning: (message: ProtocolMessage | undefined, line: InputLine) => E.Either<Failure, InputMessage> | undefined,
): InputFeed {
  let number = 0
  for await (const lines of splitLines(input)) {
    const told: Array<InputMessage> = []
    for (const bytes of lines) {
      number += 1
      const said = bytes.length === 0 ? undefined : meaning(parseMessage(parse, bytes), { bytes, number })
      if (said === undefined) continue
      if (E.isLeft(said)) {
        yield E.right(told)
        yield said
        return
      }
      told.push(said.right)
    }
    yield E.right(told)
  }
}

/** The bytes of a member of a line, or of a member of the member `inside`, as `inside.name`. */
export const extractMember = ({ bytes }: InputLine, inside: string, path: string): Buffer => {
  const span = readObjectMembers(bytes, inside)?.get(path)
  return span === undefined ? Buffer.alloc(0) : bytes.subarray(span.start, span.end)
}
