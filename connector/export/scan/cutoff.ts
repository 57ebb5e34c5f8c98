import { createHash } from 'node:crypto'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { toInstant } from '../../api'
import type { LogLevel } from '../../cdk'
import type { CutRecord } from '../cut/record'
import { putNewestLast } from './history'

const second = 1000

/** The start of the second that a time lies in; milliseconds. */
export const floorToSecond = (time: number): number => Math.floor(time / second) * second

/** The first whole second at or after a time; milliseconds. */
export const ceilToSecond = (time: number): number => Math.ceil(time / second) * second

/**
 * The `modifiedTimeFrom` of a run, milliseconds: `lookback` before the cursor but not before the start date, and one second
 * earlier, so that a service that compares with `>` serves the same rows as one that compares with `>=`.
 */
export const filterFrom = (startDate: number, cursor: O.Option<number>, lookback: number): number =>
  floorToSecond(O.isNone(cursor) ? startDate : Math.max(startDate, cursor.value - lookback)) - second

/** The cursor after a complete scan whose newest row has the time `reached`: never earlier than before, the same if nothing was read. */
export const nextCursor = (cursor: O.Option<number>, reached: O.Option<number>): O.Option<number> => {
  if (O.isNone(cursor)) return reached
  return O.isNone(reached) ? cursor : O.some(Math.max(cursor.value, reached.value))
}

/**
 * How much further than the lookback the next run must read back, milliseconds. A row that changes during a long pass can move the
 * cursor past other rows that changed behind the reader, where `Date` is ahead of the clock that stamps rows. The lookback is for
 * rows that become visible late and stays whole, so none of this is taken out of it. Where nothing is certain, it reaches to the start
 * date: a single row, which may be dated in the future, does not tell how far the clock is that stamps rows.
 */
export const cursorSlack = (cursor: O.Option<number>, certain: O.Option<number>, startDate: number): number =>
  O.isSome(cursor) ? Math.max(0, cursor.value - O.getOrElse(() => startDate)(certain)) : 0

export type RunNote = { readonly level: LogLevel; readonly message: string }

export const warningNote = (message: string): RunNote => ({ level: 'warn', message })
export const infoNote = (message: string): RunNote => ({ level: 'info', message })

const cutoffMargin = 5_000
const cutoffMarginWithoutDate = 300_000
const maxClockSkew = 60_000

/** The time up to which a run reads: from the `Date` of the first answer (milliseconds), from the local clock only without one. */
export const chooseCutoff = (
  servedAt: number | undefined,
  now: number,
): readonly [time: number, notes: readonly RunNote[]] => {
  if (servedAt === undefined)
    return [
      now - cutoffMarginWithoutDate,
      [
        warningNote(
          'The service does not tell its time (no Date header): changes of the last 5 minutes are left for the next run.',
        ),
      ],
    ]
  const skew = now - servedAt
  return [
    servedAt - cutoffMargin,
    Math.abs(skew) <= maxClockSkew
      ? []
      : [
          warningNote(
            `The clock here is ${Math.round(Math.abs(skew) / 1000)} s ${skew > 0 ? 'ahead of' : 'behind'} the service's (${toInstant(servedAt)}). The service's is used; set the clock of this machine.`,
          ),
        ],
  ]
}

/** Rows already sent that the next filter serves again: `[id, modifiedTime in milliseconds, digest of the text as it left]`. */
export const SentRows = t.readonlyArray(t.tuple([t.string, t.number, t.string]))
export type SentRows = t.TypeOf<typeof SentRows>

const maxSentRows = 1000

/** Of the text as it leaves: a state must not reveal what privacy removes. */
const digestRow = (json: Uint8Array): string => createHash('sha256').update(json).digest('base64url').slice(0, 11)

/**
 * Whether this row need not be sent, since the run that left `sentRows` has sent exactly these bytes. Of an id that the service lists in several versions,
 * an older one that comes now would be the last: it is left out behind the version that was sent, and that one is sent again behind an older one. An older
 * version alone is what the service has now, whatever its clocks say.
 */
export const matchesSentRow = (sentRows: SentRows): ((row: CutRecord) => boolean) => {
  const byId = new Map(
    sentRows.map(([id, modifiedTime, hash]) => [id, { modifiedTime, hash, isMet: false, hasOlder: false }]),
  )
  return (row) => {
    const sent = byId.get(row.id)
    if (sent === undefined || sent.modifiedTime < row.modifiedTime) return false
    if (sent.modifiedTime > row.modifiedTime) {
      sent.hasOlder ||= !sent.isMet
      return sent.isMet
    }
    sent.isMet = true
    return !sent.hasOlder && sent.hash === digestRow(row.json)
  }
}

/** `text`: the digest, or the bytes until the next page is added. */
type SentRow = { readonly modifiedTime: number; readonly text: string | Uint8Array }

/** `SentRows` while a scan reads. Rows with a modifiedTime of `horizon` or earlier are not known. */
export type SentRowCollector = { readonly horizon: number; readonly rows: ReadonlyMap<string, SentRow> }

export const emptyCollector: SentRowCollector = { horizon: Number.NEGATIVE_INFINITY, rows: new Map() }

const hashSentRow = ({ modifiedTime, text }: SentRow): SentRow => ({
  modifiedTime,
  text: typeof text === 'string' ? text : digestRow(text),
})

/**
 * Adds a page. `from`: the next run's filter if the scan ended now, milliseconds. Rows are copied, because a view would keep the
 * whole page in memory, and hashed only when the next page is added, because a backfill drops most of them by then. More than
 * 1,000 rows are dropped together.
 */
export const collectSentRows = (
  collector: SentRowCollector,
  page: ReadonlyArray<CutRecord>,
  from: number,
): SentRowCollector => {
  const { horizon, rows } = collector
  const oldRows = [...rows].filter(([, { modifiedTime }]) => modifiedTime >= from)
  const newRows = putNewestLast(
    page.filter(({ id, modifiedTime }) => {
      const sent = rows.get(id)
      return (
        modifiedTime >= from && modifiedTime > horizon && !(sent !== undefined && sent.modifiedTime >= modifiedTime)
      )
    }),
  )
  if (oldRows.length + newRows.length <= maxSentRows)
    return {
      horizon,
      rows: new Map([
        ...oldRows.map(([id, row]) => [id, hashSentRow(row)] as const),
        ...newRows.map(({ id, modifiedTime, json }) => [id, { modifiedTime, text: Buffer.from(json) }] as const),
      ]),
    }
  const times = [...oldRows.map(([, row]) => row.modifiedTime), ...newRows.map(({ modifiedTime }) => modifiedTime)]
  return { horizon: times.reduce((a, b) => Math.max(a, b), horizon), rows: new Map() }
}

/** The rows that the filter `from` serves again; empty if not all of them are known. */
export const sentRowsSince = ({ horizon, rows }: SentRowCollector, from: number): SentRows =>
  horizon >= from
    ? []
    : [...rows]
        .filter(([, { modifiedTime }]) => modifiedTime >= from)
        .map(([id, { modifiedTime, text }]) => [id, modifiedTime, typeof text === 'string' ? text : digestRow(text)])

/** The collector that a resume token describes. */
export const restoreCollector = (horizon: number, rows: SentRows): SentRowCollector => ({
  horizon,
  rows: new Map(rows.map(([id, modifiedTime, text]) => [id, { modifiedTime, text }])),
})
