import type { CommandIo } from '../../cdk/cli'
import type { Message } from '../../cdk/message'
import { encodeSinger } from '../../cdk/singer/encode'
import type { SingerSelection } from '../../cdk/singer/selection'
import type { SingerState } from '../../cdk/singer/state'
import { type MessageConsumer, runRead } from '../../run'
import type { ConfiguredSource } from '../../wire'
import type { SingerLogger } from './logger'

const keepFirstRow = (message: Message): Message =>
  message._tag === 'Records' ? { ...message, rows: message.rows.slice(0, 1) } : message

/** Prints the first record of each stream asked for, without going on from any state or moving it; answers whether all could be read. */
export const readFirstRecords = async (
  io: CommandIo,
  wired: ConfiguredSource,
  { catalog, schemas }: SingerSelection,
  state: SingerState,
  log: SingerLogger,
): Promise<boolean> => {
  let good = true
  for (const selection of catalog) {
    const enough = new AbortController()
    const stop = AbortSignal.any([io.stop, enough.signal])
    const face = encodeSinger(schemas, state, Date.now)
    let book = face.initialState
    const print: MessageConsumer = async (message) => {
      if (message._tag === 'Checkpoint' || enough.signal.aborted) return
      const [next, { lines, log: entries }] = face.encodeMessage(book, keepFirstRow(message))
      book = next
      entries.forEach(log)
      for (const text of lines) await io.print(text)
      if (message._tag === 'Records') enough.abort()
    }
    const ending = await runRead({ ...io, stop }, wired, { catalog: [selection], state: {}, order: wired.streams }, [
      print,
    ])
    good = good && ending !== 'failed'
  }
  return good
}
