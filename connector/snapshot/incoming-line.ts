import type { JsonSpan } from '../cdk/json-span'
import type { Message, RecordChange } from '../cdk/message'

/** Singer's way to replace a table: what follows is of this version; once `active`, rows of older ones go. */
export type TableVersion = {
  readonly _tag: 'Version'
  readonly stream: string
  readonly version: number
  readonly active: boolean
}

/** What comes in: what a run says, and what only foreign taps do. */
export type LoadMessage = Message | TableVersion

/** What one line of a protocol says. Records stay single here; `incoming` puts those that follow one another together. */
export type DecodedMessage =
  | LoadMessage
  | {
      readonly _tag: 'Record'
      readonly stream: string
      readonly json: Uint8Array
      /** Milliseconds since 1970. */
      readonly at: number
      readonly changes?: ReadonlyArray<RecordChange>
    }

/** A line whose members are known; those of `record` as `record.name`. */
export type MessageLine = { readonly bytes: Buffer; readonly members: ReadonlyMap<string, JsonSpan> }

/** A protocol being read: how it understands each type of line, and what the end of the input says. */
export type LineDecoder = {
  readonly decoders: Readonly<Record<string, (line: MessageLine) => ReadonlyArray<DecodedMessage>>>
  readonly end: () => ReadonlyArray<DecodedMessage>
}

export const warningMessage = (message: string): DecodedMessage => ({ _tag: 'Log', level: 'warn', message })
