import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import { type Failure, transientFailure } from './failure'
import type { Feed } from './feed'
import { parseExactJson } from './json/exact'
import { type JsonSpan, readObjectMembers, stringAt } from './json/members'
import { splitLines } from './lines'
import { isCutMessage } from './loss-guard'
import type { InputRecord, Message, Row } from './message'
import type { DecodeOptions, InputLine, LineDecoder, Protocol } from './protocol'

/** The messages of an input, those of one piece of it together. */
export type MessageFeed = Feed<Failure, ReadonlyArray<Message>>

/** Decodes all lines of an input with one protocol. Empty lines are ignored. */
export const decodeInput = (protocol: Protocol, options: DecodeOptions) => decodeMixedInput([protocol], options)

/**
 * Decodes all lines of an input with the protocol that recognizes its first message; the first of `protocols` if none
 * does.
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

/** The source or what is between was stopped while it wrote, which is no mistake in the line. */
const cutInput = (line: number): Message => ({
  _tag: 'Failed',
  failure: transientFailure(
    `The input ended within line ${line}. What its states cover is written; run again to go on from there.`,
  ),
})

/** Records of one stream and time that follow one another become one message. */
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

/**
 * A line that is a JSON object with a `type`; the members of its member `record` stand beside the others as
 * `record.name`.
 */
export type MessageLine = InputLine & { readonly type: string; readonly members: ReadonlyMap<string, JsonSpan> }

/** The members of a line that is a message of Airbyte or Singer; undefined if it is none. */
export const readMessageLine = ({ bytes, number }: InputLine): MessageLine | undefined => {
  const members = readObjectMembers(bytes, 'record')
  const type = members && stringAt(bytes, members.get('type'))
  return members === undefined || type === undefined || !endsAfter(bytes, members)
    ? undefined
    : { bytes, number, type, members }
}

/** Whether only the object's closing brace follows its members: two lines that were joined into one are no message. */
const endsAfter = (bytes: Buffer, members: ReadonlyMap<string, JsonSpan>): boolean => {
  let end = 0
  for (const span of members.values()) end = Math.max(end, span.to)
  return bytes.toString('latin1', end).trim() === '}'
}

/** A message as a value; integers beyond 2^53 are bigints. */
export type ParsedMessage = { readonly type: string } & InputRecord

/** The message that a line is; undefined if it is none. */
export const parseMessage = ({ bytes }: InputLine): ParsedMessage | undefined => {
  try {
    const value = parseExactJson(bytes.toString('utf8'))
    return t.UnknownRecord.is(value) && typeof value.type === 'string' ? (value as ParsedMessage) : undefined
  } catch {
    return undefined
  }
}

/** A parsed record whose text is looked up in its line when it is needed, which is only if the record is rejected. */
class ParsedRow implements Row {
  constructor(
    readonly value: InputRecord,
    private readonly line: Buffer,
    private readonly path: string,
  ) {}

  get lineLength(): number {
    return this.line.length
  }

  get json(): Uint8Array {
    const span = readObjectMembers(this.line, 'record')?.get(this.path)
    return span === undefined ? Buffer.alloc(0) : this.line.subarray(span.from, span.to)
  }
}

/** `path`: where the record stands in its line, such as `record.data`. */
export const createParsedRow = (value: InputRecord, { bytes }: InputLine, path: string): Row =>
  new ParsedRow(value, bytes, path)
