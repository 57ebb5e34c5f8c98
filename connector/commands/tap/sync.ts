import * as O from 'fp-ts/Option'
import type { Io } from '../../cdk/cli'
import { singer } from '../../cdk/singer/encode'
import type { Asked } from '../../cdk/singer/selection'
import type { SingerState } from '../../cdk/singer/state'
import { type Consumer, type Ending, runRead } from '../../run'
import type { Wired } from '../../wire'
import type { Logger } from './logger'

/** The streams, beginning with the one an interrupted run was at. */
export const rotated = <A extends { readonly name: string }>(
  all: ReadonlyArray<A>,
  first: O.Option<string>,
): ReadonlyArray<A> => {
  const at = O.isSome(first) ? all.findIndex(({ name }) => name === first.value) : -1
  return at <= 0 ? all : [...all.slice(at), ...all.slice(0, at)]
}

/** Reads what is asked and prints it as Singer messages, a STATE last however it ends. */
export const sync = async (
  io: Io,
  wired: Wired,
  { catalog, schemas }: Asked,
  state: SingerState,
  log: Logger,
): Promise<Ending> => {
  const face = singer(schemas, state, Date.now)
  let book = face.start
  const print: Consumer = async (message) => {
    const [next, { lines, log: entries }] = face.step(book, message)
    book = next
    entries.forEach(log)
    for (const text of lines) await io.print(text)
  }
  const order = rotated(wired.streams, state.syncing)
  const ending = await runRead(io, wired, { catalog, state: state.bookmarks, order }, [print])
  await io.print(face.end(book))
  return ending
}
