import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import type { FindStream } from './catalog'
import { configFailure, type Failure, transientFailure } from './failure'
import type { Feed } from './feed'
import { type JsonSpan, parseExactJson, parseJson, readObjectMembers, stringAt } from './json/decode'
import { type OutputText, splitLines } from './lines'
import type { JsonSchema } from './schema'
import type { InputRecord, LogLevel, Message, Row } from './stream'

/** An entry of the log that a program of Singer writes to stderr. */
export type LogEntry = { readonly level: LogLevel; readonly message: string; readonly stream?: string }

/** What a message becomes: lines for stdout, and entries for the log. Airbyte logs on stdout, so its log is empty. */
export type ProtocolOutput = { readonly lines: ReadonlyArray<OutputText>; readonly log: ReadonlyArray<LogEntry> }

export const emptyOutput: ProtocolOutput = { lines: [], log: [] }

/** Prints one run; it remembers what it needs of earlier messages. */
export type MessageEncoder = {
  readonly encode: (message: Message) => ProtocolOutput
  /** The last lines of a source's run, however it ended. */
  readonly end: () => ProtocolOutput
}

export type EncodeOptions = {
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** What the caller's catalog declares for a stream, in place of our own schema. */
  readonly schemas?: ReadonlyMap<string, JsonSchema>
  /** The state that the run was given; a protocol whose last state replaces all before it carries it forward. */
  readonly givenState?: Readonly<Record<string, unknown>>
  /** Tell the consumer at the end of a full refresh that all other rows of the stream are gone, where the protocol has a message for it. */
  readonly tableVersions?: boolean
}

/** A line of an input, its bytes as they came; `number` counts from 1. */
export type InputLine = { readonly bytes: Buffer; readonly number: number }

/** The messages of one line; a Left ends the input. */
export type DecodedLine = E.Either<Failure, ReadonlyArray<Message>>

/** Reads one input, line by line; it remembers what it needs of earlier lines. */
export type LineDecoder = {
  readonly decode: (line: InputLine) => DecodedLine
  /** What the end of the input means. */
  readonly end: () => ReadonlyArray<Message>
}

export type DecodeOptions = {
  /**
   * deliver: for a destination. Records are parsed, states are kept as they came to be printed back, and a wrong line ends the
   * run. store: for a snapshot. Records stay text, states belong to streams, and a wrong line is skipped with a warning.
   */
  readonly purpose: 'deliver' | 'store'
  /** Milliseconds since 1970, for records that do not say when they were extracted. */
  readonly now: () => number
  /** The caller's catalog, for a protocol whose messages do not declare their streams. */
  readonly findStream?: FindStream
  /** Whether a catalog that comes in the input replaces the caller's. */
  readonly acceptsCatalog?: boolean
  /** Why a stream that the catalog does not have ends the run. */
  readonly missingStreamFailure?: (stream: string) => Failure
}

export type Protocol = {
  readonly name: string
  /** Whether a line is one of its messages; asked until a line of an input is. */
  readonly recognizes: (line: Buffer) => boolean
  readonly createEncoder: (options: EncodeOptions) => MessageEncoder
  readonly createDecoder: (options: DecodeOptions) => LineDecoder
}

/** The messages of an input, those of one piece of it together. */
export type MessageFeed = Feed<Failure, ReadonlyArray<Message>>

/** Decodes all lines of an input with one protocol. Empty lines are ignored. */
export const decodeInput = (protocol: Protocol, options: DecodeOptions) => decodeMixedInput([protocol], options)

/** Decodes all lines of an input with the protocol that recognizes its first message; the first of `protocols` if none does. */
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

/** A line that is a JSON object with a `type`; the members of its member `record` stand beside the others as `record.name`. */
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

/** A line that is skipped with a warning, and why. */
export const skipLine = ({ number }: InputLine, problem: string): DecodedLine =>
  E.right([{ _tag: 'Log', level: 'warn', message: `Line ${number} of the input ${problem} and is skipped.` }])

/** A line that ends the run, and why. */
export const refuseLine = (
  { number }: InputLine,
  problem: string,
  remedy = 'The program that wrote it is at fault, or something else writes to its output.',
): DecodedLine => E.left(configFailure(`Line ${number} of the input ${problem}. ${remedy}`))

/** What a decoder does with lines that lose records: a destination ends, a snapshot goes on without them and keeps no later state. */
export type LossGuard = {
  /** A wrong line that was a record. */
  readonly rejectLine: (line: InputLine, problem: string) => DecodedLine
  /** A line that is no message: rejected if it may be a broken record, skipped if it is other text. */
  readonly passLine: (line: InputLine) => DecodedLine
  /** A right line that shows that records before it are missing. */
  readonly reportLoss: (line: InputLine, problem: string) => DecodedLine
  /** Whether a record was lost. */
  readonly hasLoss: () => boolean
  /** In place of a state after a loss. */
  readonly omitState: () => DecodedLine
}

export const createLossGuard = ({ purpose }: Pick<DecodeOptions, 'purpose'>): LossGuard => {
  let lossyLine = 0
  let isTold = false
  const rejectLine = (line: InputLine, problem: string, skipped = problem): DecodedLine => {
    if (purpose === 'deliver') return refuseLine(line, problem)
    lossyLine ||= line.number
    return skipLine(line, skipped)
  }
  return {
    rejectLine,
    passLine: (line) =>
      mayHoldRecord(line)
        ? rejectLine(line, 'is no message, and may be a broken record', 'is no message')
        : skipLine(line, 'is no message'),
    reportLoss: (line, problem) => {
      const failure = transientFailure(
        `Line ${line.number} of the input ${problem}. Neither it nor a later state is kept: see that nothing drops records on the way, and run again.`,
      )
      if (purpose === 'deliver') return E.left(failure)
      lossyLine ||= line.number
      isTold = true
      return warnOf(failure.message)
    },
    hasLoss: () => lossyLine > 0,
    omitState: () => {
      if (isTold) return E.right([])
      isTold = true
      return warnOf(`No state after line ${lossyLine} of the input is kept, since that line may have been a record.`)
    },
  }
}

const warnOf = (message: string): DecodedLine => E.right([{ _tag: 'Log', level: 'warn', message }])

/** The beginning of a message that was cut: what may be a record and is no JSON. */
const isCutMessage = (bytes: Buffer): boolean => {
  const text = bytes.toString('utf8')
  return looksLikeRecord(text) && E.isLeft(parseJson(text))
}

const looksLikeRecord = (text: string): boolean => /^\s*\{|"RECORD"|"(record|emitted_at)"\s*:/.test(text)

const RecordLike = t.union([
  t.type({ record: t.union([t.type({ data: t.UnknownRecord }), t.type({ stream: t.string })]) }),
  t.type({ stream: t.string, record: t.UnknownRecord }),
])
const isRecordLike = (value: unknown): boolean =>
  Array.isArray(value)
    ? value.some(isRecordLike)
    : RecordLike.is(value) || (t.UnknownRecord.is(value) && /^\s*record\s*$/i.test(String(value.type)))

/**
 * Whether a line that is no message may have been a record: a JSON object that was cut, joined with another or changed, or a record
 * with other text around it. Other text and complete JSON, such as a log line, are none.
 */
const mayHoldRecord = ({ bytes }: InputLine): boolean => {
  const text = bytes.toString('utf8').replace(/^\ufeff/, '')
  try {
    return isRecordLike(JSON.parse(text))
  } catch {
    return looksLikeRecord(text)
  }
}
