import * as O from 'fp-ts/Option'
import type { CommandIo } from '../../cdk/cli'
import { encodeSinger } from '../../cdk/singer/encode'
import type { SingerSelection } from '../../cdk/singer/selection'
import type { SingerState } from '../../cdk/singer/state'
import { type MessageConsumer, type ReadOutcome, runRead } from '../../run'
import type { ConfiguredSource } from '../../wire'
import type { SingerLogger } from './logger'

/** The streams, beginning with the one an interrupted run was at. */
export const rotateStreams = <A extends { readonly name: string }>(
  all: ReadonlyArray<A>,
  first: O.Option<string>,
): ReadonlyArray<A> => {
  const at = O.isSome(first) ? all.findIndex(({ name }) => name === first.value) : -1
  return at <= 0 ? all : [...all.slice(at), ...all.slice(0, at)]
}

/** Reads what is asked and prints it as Singer messages, a STATE last however it ends. */
export const readAsSinger = async (
  io: CommandIo,
  wired: ConfiguredSource,
  { catalog, schemas }: SingerSelection,
  state: SingerState,
  log: SingerLogger,
): Promise<ReadOutcome> => {
  const face = encodeSinger(schemas, state, Date.now)
  let book = face.initialState
  const print: MessageConsumer = async (message) => {
    const [next, { lines, log: entries }] = face.encodeMessage(book, message)
    book = next
    entries.forEach(log)
    for (const text of lines) await io.print(text)
  }
  const order = rotateStreams(wired.streams, state.currentlySyncing)
  const ending = await runRead(io, wired, { catalog, state: state.bookmarks, order }, [print])
  await io.print(face.finalLine(book))
  return ending
}
