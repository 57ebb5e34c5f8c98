import type { Span } from '../cdk/json-span'
import type { Change, Message } from '../cdk/message'

/** Singer's way to replace a table: what follows is of this version; once `active`, rows of older ones go. */
export type Version = {
  readonly _tag: 'Version'
  readonly stream: string
  readonly version: number
  readonly active: boolean
}

/** What comes in: what a run says, and what only foreign taps do. */
export type Incoming = Message | Version

/** What one line of a protocol says. Records stay single here; `incoming` puts those that follow one another together. */
export type Said =
  | Incoming
  | {
      readonly _tag: 'Record'
      readonly stream: string
      readonly json: Uint8Array
      /** Milliseconds since 1970. */
      readonly at: number
      readonly changes?: ReadonlyArray<Change>
    }

/** A line whose members are known; those of `record` as `record.name`. */
export type Line = { readonly bytes: Buffer; readonly members: ReadonlyMap<string, Span> }

/** A protocol being read: how it understands each type of line, and what the end of the input says. */
export type Protocol = {
  readonly read: Readonly<Record<string, (line: Line) => ReadonlyArray<Said>>>
  readonly end: () => ReadonlyArray<Said>
}

export const warning = (message: string): Said => ({ _tag: 'Log', level: 'warn', message })
