import type { State } from '../catalog'
import type { Failure } from '../failure'
import { line, type Text, wrap } from '../lines'
import type { Message, Row } from '../message'
import type { JsonSchema } from '../schema'
import { type Entry, metric } from './log'
import { toSingerSchema } from './schema'
import { type SingerState, withBookmarks } from './state'

type Open = {
  readonly name: string
  readonly since: number
  /** Records since the last count was logged, and whether one was. */
  readonly uncounted: number
  readonly counted: boolean
}

/** What the face remembers between two messages. */
export type Book = {
  readonly bookmarks: State
  /** Streams under way, the first of them named as `currently_syncing`. */
  readonly open: ReadonlyArray<Open>
  /** Attributes already logged as left out, such as `reviews.rating`. */
  readonly nulled: ReadonlySet<string>
}

/** Lines for stdout, and what goes to the log. */
export type Said = { readonly lines: ReadonlyArray<Text>; readonly log: ReadonlyArray<Entry> }

export type Face = {
  readonly start: Book
  readonly step: (book: Book, message: Message) => readonly [Book, Said]
  /** The last line of a run: a STATE, however it ended. */
  readonly end: (book: Book) => string
}

const nothing: Said = { lines: [], log: [] }

/**
 * The Singer face. `schemas`: what the caller's catalog says of a stream, over our own. `given`: carried forward in every
 * STATE, since whoever keeps it overwrites. `now`: milliseconds.
 */
export const singer = (
  schemas: ReadonlyMap<string, JsonSchema>,
  given: Pick<SingerState, 'whole'>,
  now: () => number,
): Face => {
  const stateLine = ({ bookmarks, open }: Book): string =>
    line({ type: 'STATE', value: withBookmarks(given.whole, bookmarks, open[0]?.name) })
  const close = (book: Book, name: string, status: 'succeeded' | 'failed'): readonly [Book, ReadonlyArray<Entry>] => {
    const { since = now(), uncounted = 0, counted = false } = book.open.find((each) => each.name === name) ?? {}
    return [
      { ...book, open: book.open.filter((each) => each.name !== name) },
      [
        ...(counted && uncounted === 0 ? [] : [metric('counter', 'record_count', uncounted, { stream: name })]),
        metric('timer', 'sync_duration', (now() - since) / 1000, { stream: name, status }),
      ],
    ]
  }
  const change = (book: Book, name: string, f: (open: Open) => Open): Book => ({
    ...book,
    open: book.open.map((each) => (each.name === name ? f(each) : each)),
  })

  const step: Face['step'] = (book, message) => {
    switch (message._tag) {
      case 'Started': {
        const { name, schema, primaryKey, cursor } = message.stream
        const next = { ...book, open: [...book.open, { name, since: now(), uncounted: 0, counted: false }] }
        const schemaLine = line({
          type: 'SCHEMA',
          stream: name,
          schema: schemas.get(name) ?? toSingerSchema(schema),
          key_properties: primaryKey,
          ...(cursor._tag === 'Some' ? { bookmark_properties: [cursor.value] } : {}),
        })
        return [next, { lines: book.open.length === 0 ? [schemaLine, stateLine(next)] : [schemaLine], log: [] }]
      }
      case 'Running':
        return [book, nothing]
      case 'Records': {
        const { stream, rows, at } = message
        const [nulled, log] = left(book.nulled, stream, rows)
        const lines = wrap(
          rows,
          `{"type":"RECORD","stream":${JSON.stringify(stream)},"record":`,
          () => `,"time_extracted":"${new Date(at).toISOString()}"}`,
        )
        const next = change({ ...book, nulled }, stream, (open) => ({
          ...open,
          uncounted: open.uncounted + rows.length,
        }))
        return [next, { lines: [lines], log }]
      }
      case 'Checkpoint': {
        const { stream, state } = message
        const { uncounted = 0 } = book.open.find(({ name }) => name === stream) ?? {}
        const next = change({ ...book, bookmarks: { ...book.bookmarks, [stream]: state } }, stream, (open) => ({
          ...open,
          uncounted: 0,
          counted: open.counted || uncounted > 0,
        }))
        return [
          next,
          {
            lines: [stateLine(next)],
            log: uncounted === 0 ? [] : [metric('counter', 'record_count', uncounted, { stream })],
          },
        ]
      }
      case 'Finished': {
        const [next, log] = close(book, message.stream, 'succeeded')
        return [next, { lines: [], log }]
      }
      case 'Failed': {
        const { stream, failure } = message
        if (stream === undefined) return [book, { lines: [], log: logFailure(failure) }]
        const [next, log] = close(book, stream, 'failed')
        return [next, { lines: [], log: [...logFailure(failure, stream), ...log] }]
      }
      case 'Waiting': {
        const text = `The service makes ${message.stream} wait until ${new Date(message.until).toISOString()}.`
        return [book, { lines: [], log: [{ level: 'info', message: text, stream: message.stream }] }]
      }
      case 'Log':
        return [book, { lines: [], log: [{ level: message.level, message: message.message }] }]
    }
  }
  return { start: { bookmarks: {}, open: [], nulled: new Set() }, step, end: stateLine }
}

/** Why something ended, for the log: what to do first, then what helps us. */
export const logFailure = ({ message, detail }: Failure, stream?: string): ReadonlyArray<Entry> => {
  const where = stream === undefined ? {} : { stream }
  return [
    { level: 'error', message: stream === undefined ? message : `${stream}: ${message}`, ...where },
    ...(detail === undefined ? [] : [{ level: 'error' as const, message: detail, ...where }]),
  ]
}

/** A record has no place to say that a value had to be left out: each attribute is logged once a run. */
const left = (
  known: ReadonlySet<string>,
  stream: string,
  rows: ReadonlyArray<Row>,
): readonly [ReadonlySet<string>, ReadonlyArray<Entry>] => {
  const fields = rows.flatMap(({ changes = [] }) => changes.map(({ field }) => `${stream}.${field}`))
  const fresh = [...new Set(fields)].filter((field) => !known.has(field))
  return [
    fresh.length === 0 ? known : new Set([...known, ...fresh]),
    fresh.map((field) => ({
      level: 'warn',
      message: `${field} has values of another type than declared; they are sent as null.`,
      stream,
    })),
  ]
}
