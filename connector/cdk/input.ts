import * as E from 'fp-ts/Either'
import { type Failure, transientFailure } from './failure'
import type { Feed } from './feed'
import { splitLines } from './lines'
import { isCutMessage } from './loss-guard'
import type { Message, Row } from './message'
import type { DecodeOptions, LineDecoder, Protocol } from './protocol'

/** The messages of an input, grouped by the chunk in which they arrived. */
export type MessageFeed = Feed<Failure, ReadonlyArray<Message>>

/** Decodes all lines of an input with one protocol. Empty lines are ignored. */
export const decodeInput = (protocol: Protocol, options: DecodeOptions) => decodeMixedInput([protocol], options)

/**
 * Decodes all lines of an input with the protocol that recognizes its first message, or with the first of `protocols`
 * if none does.
 */
export const decodeMixedInput = (protocols: ReadonlyArray<Protocol>, options: DecodeOptions) =>
  async function* (input: AsyncIterable<Uint8Array>): MessageFeed {
    const decoders = protocols.map(({ recognizes, createDecoder }) => ({
      recognizes,
      decoder: createDecoder(options),
    }))
    let chosen: LineDecoder | undefined
    const [fallback] = decoders
    const choose = (bytes: Buffer): LineDecoder | undefined => {
      if (decoders.length === 1) chosen = fallback?.decoder
      chosen ??= decoders.find(({ recognizes }) => recognizes(bytes))?.decoder
      return chosen ?? fallback?.decoder
    }
    let number = 0
    for await (const { lines, isCut } of splitLines(input)) {
      const messages: Array<Message> = []
      for (const bytes of lines) {
        number += 1
        if (bytes.length === 0) continue
        if (isCut && options.purpose === 'deliver' && isCutMessage(bytes)) {
          yield E.right([cutInput(number)])
          break
        }
        const decoded = (chosen ?? choose(bytes))?.decode({ bytes, number }) ?? E.right([])
        if (E.isLeft(decoded)) {
          yield E.right(groupRecords(messages))
          yield decoded
          return
        }
        for (const message of decoded.right) messages.push(message)
      }
      yield E.right(groupRecords(messages))
    }
    yield E.right(chosen?.end() ?? [])
  }

export const continueAfterInput = 'Records covered by its states are written. Run again to continue from there.'

/** The source or a program in between was stopped in the middle of a line. The line itself is not wrong. */
const cutInput = (line: number): Message => ({
  _tag: 'Failed',
  failure: transientFailure(`The input ended within line ${line}. ${continueAfterInput}`),
})

/** Merges consecutive records of one stream and time into one message. */
const groupRecords = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const grouped: Array<Message> = []
  let last: (Extract<Message, { _tag: 'Records' }> & { readonly rows: Array<Row> }) | undefined
  for (const message of messages) {
    if (message._tag !== 'Records') {
      last = undefined
      grouped.push(message)
    } else if (message.stream === last?.stream && message.at === last.at) {
      for (const row of message.rows) last.rows.push(row)
    } else {
      last = { ...message, rows: [...message.rows] }
      grouped.push(last)
    }
  }
  return grouped
}
