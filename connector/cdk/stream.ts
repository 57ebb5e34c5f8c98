import type { Option } from 'fp-ts/Option'
import * as O from 'fp-ts/Option'
import type * as t from 'io-ts'
import type { Failure } from './failure'
import type { Feed } from './feed'
import { printExactJson } from './json/exact'
import type { LogLevel, Row, SyncMode } from './message'
import { type JsonSchema, toJsonSchema } from './schema'

/** What of an item a stream sends. */
export type Projection<Item> = (item: Item) => ReadonlyArray<Row>

/** A selected stream as its reader sees it: where it stood, and how an item becomes its rows. */
export type StreamRequest<Item> = {
  readonly stream: string
  readonly syncMode: SyncMode
  /** The stream's last state, as it was given to us; none on a first run. */
  readonly state: Option<unknown>
  /** The top-level attributes wanted; none: all of them. */
  readonly attributes: Option<ReadonlySet<string>>
  readonly project: Projection<Item>
}

/**
 * What a reader says, per stream. A checkpoint covers all rows given before it, and none after: its state is only built where it
 * is sent, which may be when the reader has gone on, so it must be made of values of the moment it was given.
 */
export type ReaderEvent =
  | { readonly _tag: 'Rows'; readonly stream: string; readonly rows: ReadonlyArray<Row> }
  | { readonly _tag: 'Checkpoint'; readonly stream: string; readonly state: () => unknown }
  | { readonly _tag: 'Note'; readonly level: LogLevel; readonly message: string }
  /** This stream alone ends here; the others of the pass go on. */
  | { readonly _tag: 'Failed'; readonly stream: string; readonly failure: Failure }

/** One pass over the service that feeds every selected stream of it. `Env`: what it reads from. */
export type Reader<Env, Item> = {
  readonly name: string
  readonly read: (env: Env) => (demands: ReadonlyArray<StreamRequest<Item>>) => Feed<Failure, ReaderEvent>
}

/** A stream whose item type is forgotten, so that lists of streams need no `any`. */
export type Stream<Env> = {
  readonly name: string
  readonly schema: JsonSchema
  readonly primaryKey: ReadonlyArray<string>
  readonly cursor: Option<string>
  readonly syncModes: ReadonlyArray<SyncMode>
  /** Shared by identity: selected streams of one reader are fed by one pass. */
  readonly reader: Reader<Env, unknown>
  readonly projector: () => Projection<unknown>
}

/** Checks keys and cursor against the codec's own type, then forgets it. No cursor: full refresh only. */
export const defineStream = <Env, Item, A>(
  declared: {
    readonly name: string
    readonly codec: t.Type<A, unknown>
    readonly primaryKey: ReadonlyArray<keyof A & string>
    readonly cursor?: keyof A & string
    readonly reader: Reader<Env, Item>
  } & (
    | { readonly project: Projection<Item> }
    /** One that remembers what it has seen is made anew for each run. */
    | { readonly projector: () => Projection<Item> }
  ),
): Stream<Env> => ({
  name: declared.name,
  schema: toJsonSchema(declared.codec),
  primaryKey: declared.primaryKey,
  cursor: O.fromNullable(declared.cursor),
  syncModes: declared.cursor === undefined ? ['full_refresh'] : ['full_refresh', 'incremental'],
  reader: declared.reader as Reader<Env, unknown>,
  projector: ('projector' in declared ? declared.projector : () => declared.project) as () => Projection<unknown>,
})

/** An object as the row of a record; a bigint is printed as an integer. */
export const encodeRow = (value: object): Row => ({ json: Buffer.from(printExactJson(value)) })

/** An object with the selected top-level attributes alone; with all of them if there is no selection. */
export const pickAttributes =
  (attributes: Option<ReadonlySet<string>>) =>
  <A extends object>(value: A): Partial<A> =>
    O.isNone(attributes)
      ? value
      : (Object.fromEntries(Object.entries(value).filter(([name]) => attributes.value.has(name))) as Partial<A>)
