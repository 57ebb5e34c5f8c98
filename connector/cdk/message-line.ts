import * as t from 'io-ts'
import { parseExactJson } from './json/exact'
import { type JsonSpan, readObjectMembers, stringAt } from './json/members'
import type { LossGuard } from './loss-guard'
import type { InputRecord, Row } from './message'
import type { DecodedLine, DecodeOptions, InputLine } from './protocol'

/** A line with a JSON object that has a `type`. The members of its `record` are added as `record.name`. */
export type MessageLine = InputLine & { readonly type: string; readonly members: ReadonlyMap<string, JsonSpan> }

/** The members of an Airbyte or Singer message; undefined if the line is not a message. */
export const readMessageLine = ({ bytes, number }: InputLine): MessageLine | undefined => {
  const members = readObjectMembers(bytes, 'record')
  const type = members && stringAt(bytes, members.get('type'))
  return members === undefined || type === undefined || !endsAfter(bytes, members)
    ? undefined
    : { bytes, number, type, members }
}

/** True if only the object's closing brace follows its members. Two lines joined into one are not a message. */
const endsAfter = (bytes: Buffer, members: ReadonlyMap<string, JsonSpan>): boolean => {
  let end = 0
  for (const span of members.values()) end = Math.max(end, span.to)
  return bytes.toString('latin1', end).trim() === '}'
}

/** A message as a value; integers beyond 2^53 are bigints. */
export type ParsedMessage = { readonly type: string } & InputRecord

/** The message in a line; undefined if the line is not a message. */
const parseMessage = ({ bytes }: InputLine): ParsedMessage | undefined => {
  try {
    const value = parseExactJson(bytes.toString('utf8'))
    return t.UnknownRecord.is(value) && typeof value.type === 'string' ? (value as ParsedMessage) : undefined
  } catch {
    return undefined
  }
}

/** A parsed record. Its text is needed only if it is rejected, and is looked up in its line then. */
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

/** `path`: where the record is in its line, such as `record.data`. */
export const createParsedRow = (value: InputRecord, { bytes }: InputLine, path: string): Row =>
  new ParsedRow(value, bytes, path)

/** How a protocol handles the lines of an input. */
type LineHandlers = {
  /**
   * A RECORD for a destination, which needs the parsed value: parsing the whole line is faster than scanning it first.
   */
  readonly parsedRecord: (line: InputLine, message: ParsedMessage) => DecodedLine
  /** Handlers of the other messages by type, and of records whose text is enough. */
  readonly byType: ReadonlyMap<string, (line: MessageLine) => DecodedLine>
  readonly otherType: (line: MessageLine) => DecodedLine
  readonly noMessage: (line: InputLine) => DecodedLine
}

/** Passes a line to the handler of its type. */
export const dispatchLine =
  ({ purpose }: Pick<DecodeOptions, 'purpose'>, losses: LossGuard, handlers: LineHandlers) =>
  (line: InputLine): DecodedLine => {
    const parsed = purpose === 'deliver' ? parseMessage(line) : undefined
    if (parsed?.type === 'RECORD') return handlers.parsedRecord(line, parsed)
    const message = purpose === 'deliver' && parsed === undefined ? undefined : readMessageLine(line)
    if (message === undefined) return handlers.noMessage(line)
    const decode = handlers.byType.get(message.type)
    if (decode !== undefined) return decode(message)
    return /^record$/i.test(message.type)
      ? losses.rejectLine(line, 'has a type that resembles RECORD')
      : handlers.otherType(message)
  }
