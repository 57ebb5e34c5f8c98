import type * as E from 'fp-ts/Either'
import type { FindStream } from './catalog'
import type { Failure } from './failure'
import type { OutputText } from './lines'
import type { LogLevel, Message } from './message'
import type { JsonSchema } from './schema'

/** An entry of the log that a program of Singer writes to stderr. */
export type LogEntry = { readonly level: LogLevel; readonly message: string; readonly stream?: string }

/** What a message becomes: lines for stdout, and entries for the log. Airbyte logs on stdout, so its log is empty. */
export type ProtocolOutput = { readonly lines: ReadonlyArray<OutputText>; readonly log: ReadonlyArray<LogEntry> }

export const emptyOutput: ProtocolOutput = { lines: [], log: [] }

export const printLines = (...lines: ReadonlyArray<OutputText>): ProtocolOutput => ({ lines, log: [] })

/** Prints one run; it remembers what it needs of earlier messages. */
export type MessageEncoder = {
  readonly encode: (message: Message) => ProtocolOutput
  /** The last lines of a source's run, however it ended. */
  readonly end: () => ProtocolOutput
}

export type EncodeOptions = {
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** What the caller's catalog declares for a stream, instead of our own schema. */
  readonly schemas?: ReadonlyMap<string, JsonSchema>
  /** The state that the run was given; a protocol whose last state replaces all before it carries it forward. */
  readonly givenState?: Readonly<Record<string, unknown>>
  /**
   * Say at the end of a full refresh that all other rows of the stream are gone, where the protocol has a message for
   * that.
   */
  readonly tableVersions?: boolean
}

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
   * deliver: for a destination. Records are parsed, states are kept as they came to be printed back, and a wrong line
   * ends the run. store: for a snapshot. Records stay text, states belong to streams, and a wrong line is skipped with
   * a warning.
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

/** A line of an input, its bytes as they came; `number` counts from 1. */
export type InputLine = { readonly bytes: Buffer; readonly number: number }
