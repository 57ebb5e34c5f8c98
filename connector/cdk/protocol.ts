import type * as E from 'fp-ts/Either'
import type { FindStream } from './catalog'
import type { Failure } from './failure'
import type { OutputText } from './lines'
import type { LogLevel, Message } from './message'
import type { JsonSchema } from './schema'

/** A log entry that a Singer program writes to stderr. */
export type LogEntry = { readonly level: LogLevel; readonly message: string; readonly stream?: string }

/** The output for a message: lines for stdout, and log entries. Airbyte logs on stdout, so its log is empty. */
export type ProtocolOutput = { readonly lines: ReadonlyArray<OutputText>; readonly log: ReadonlyArray<LogEntry> }

export const emptyOutput: ProtocolOutput = { lines: [], log: [] }

export const printLines = (...lines: ReadonlyArray<OutputText>): ProtocolOutput => ({ lines, log: [] })

/** Prints one run. Remembers what it needs of earlier messages. */
export type MessageEncoder = {
  readonly encode: (message: Message) => ProtocolOutput
  /** The last lines of a source's run, however it ended. */
  readonly end: () => ProtocolOutput
}

export type EncodeOptions = {
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** The schema that the caller's catalog declares for a stream, instead of our own. */
  readonly schemas?: ReadonlyMap<string, JsonSchema>
  /** The state given to the run. A protocol whose last state replaces all earlier ones carries it forward. */
  readonly givenState?: Readonly<Record<string, unknown>>
  /**
   * At the end of a full refresh, announce that all other rows of the stream are gone, if the protocol has a message
   * for that.
   */
  readonly tableVersions?: boolean
}

/** The messages of one line; a Left ends the input. */
export type DecodedLine = E.Either<Failure, ReadonlyArray<Message>>

/** Reads one input line by line. Remembers what it needs of earlier lines. */
export type LineDecoder = {
  readonly decode: (line: InputLine) => DecodedLine
  /** The messages that the end of the input implies. */
  readonly end: () => ReadonlyArray<Message>
}

export type DecodeOptions = {
  /**
   * deliver: for a destination. Records are parsed, states are kept unchanged to be printed back, and a wrong line ends
   * the run. store: for a snapshot. Records stay text, states belong to streams, and a wrong line is skipped with a
   * warning.
   */
  readonly purpose: 'deliver' | 'store'
  /** Milliseconds since 1970, for records without an extraction time. */
  readonly now: () => number
  /** Finds a stream in the caller's catalog, for a protocol whose messages do not declare their streams. */
  readonly findStream?: FindStream
  /** A catalog in the input replaces the caller's. */
  readonly acceptsCatalog?: boolean
  /** The failure for a stream that the catalog does not have; it ends the run. */
  readonly missingStreamFailure?: (stream: string) => Failure
}

export type Protocol = {
  readonly name: string
  /** True if a line is one of this protocol's messages. Called until one line of the input is. */
  readonly recognizes: (line: Buffer) => boolean
  readonly createEncoder: (options: EncodeOptions) => MessageEncoder
  readonly createDecoder: (options: DecodeOptions) => LineDecoder
}

/** A line of an input with its unchanged bytes; `number` counts from 1. */
export type InputLine = { readonly bytes: Buffer; readonly number: number }
