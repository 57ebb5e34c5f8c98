import * as E from 'fp-ts/Either'
import type { Failure } from '../failure'
import type { Feed } from '../feed'
import { linesOf } from '../lines-of'
import type { Arrival } from './arrival'

/** What a destination is told, those of one piece of the input together. */
export type Arrivals = Feed<Failure, ReadonlyArray<Arrival>>

/** What each line means, told by `meaning`, to whom lines are counted from 1; nothing where it means nothing. */
export async function* arrivals(
  input: AsyncIterable<Uint8Array>,
  meaning: (line: Buffer, number: number) => E.Either<Failure, Arrival> | undefined,
): Arrivals {
  let number = 0
  for await (const lines of linesOf(input)) {
    const told: Array<Arrival> = []
    for (const line of lines) {
      number += 1
      const said = line.length === 0 ? undefined : meaning(line, number)
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
