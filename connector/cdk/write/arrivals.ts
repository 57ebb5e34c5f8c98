import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import type { Failure } from '../failure'
import type { Feed } from '../feed'
import { membersOf } from '../json-span'
import { linesOf } from '../lines-of'
import type { Arrival } from './arrival'

/** What a destination is told, those of one piece of the input together. */
export type Arrivals = Feed<Failure, ReadonlyArray<Arrival>>

/** A line of the input, its bytes as they came, counted from 1. */
export type Line = { readonly bytes: Buffer; readonly number: number }

/** A JSON text as a value; throws on anything else. */
export type Parse = (text: string) => unknown

/** A message of either protocol. */
export type Message = { readonly type: string } & Readonly<Record<string, unknown>>

const isMessage = (value: unknown): value is Message => t.UnknownRecord.is(value) && typeof value.type === 'string'

const messageIn = (parse: Parse, bytes: Buffer): Message | undefined => {
  try {
    const value = parse(bytes.toString('utf8'))
    return isMessage(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** What the lines of an input mean: each is told by `meaning`, undefined where it means nothing; `message`: undefined where it is none. */
export async function* arrivals(
  input: AsyncIterable<Uint8Array>,
  parse: Parse,
  meaning: (message: Message | undefined, line: Line) => E.Either<Failure, Arrival> | undefined,
): Arrivals {
  let number = 0
  for await (const lines of linesOf(input)) {
    const told: Array<Arrival> = []
    for (const bytes of lines) {
      number += 1
      const said = bytes.length === 0 ? undefined : meaning(messageIn(parse, bytes), { bytes, number })
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
export const bytesOf = ({ bytes }: Line, inside: string, path: string): Buffer => {
  const span = membersOf(bytes, inside)?.get(path)
  return span === undefined ? Buffer.alloc(0) : bytes.subarray(span.start, span.end)
}
