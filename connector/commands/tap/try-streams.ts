import type { Io } from '../../cdk/cli'
import type { Message } from '../../cdk/message'
import { singer } from '../../cdk/singer/encode'
import type { Asked } from '../../cdk/singer/selection'
import type { SingerState } from '../../cdk/singer/state'
import { type Consumer, runRead } from '../../run'
import type { Wired } from '../../wire'
import type { Logger } from './logger'

const first = (message: Message): Message =>
  message._tag === 'Records' ? { ...message, rows: message.rows.slice(0, 1) } : message

/** Prints the first record of each stream asked for, without going on from any state or moving it; answers whether all could be read. */
export const tryStreams = async (
  io: Io,
  wired: Wired,
  { catalog, schemas }: Asked,
  state: SingerState,
  log: Logger,
): Promise<boolean> => {
  let good = true
  for (const selection of catalog) {
    const enough = new AbortController()
    const stop = AbortSignal.any([io.stop, enough.signal])
    const face = singer(schemas, state, Date.now)
    let book = face.start
    const print: Consumer = async (message) => {
      if (message._tag === 'Checkpoint' || enough.signal.aborted) return
      const [next, { lines, log: entries }] = face.step(book, first(message))
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
