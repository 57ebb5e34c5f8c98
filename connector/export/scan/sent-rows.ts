import { createHash } from 'node:crypto'
import * as t from 'io-ts'
import type { CutRecord } from '../cut/record'

/** Rows already sent that the next filter serves again: `[id, modifiedTime in milliseconds, digest of the text as it left]`. */
export const SentRows = t.readonlyArray(t.tuple([t.string, t.number, t.string]))
export type SentRows = t.TypeOf<typeof SentRows>

const maxSentRows = 1000

/** Of the text as it leaves: a state must not reveal what privacy removes. */
const digestRow = (json: Uint8Array): string => createHash('sha256').update(json).digest('base64url').slice(0, 11)

/** Whether the run that left `sentRows` has sent this row with exactly these bytes. */
export const matchesSentRow = (sentRows: SentRows): ((row: CutRecord) => boolean) => {
  const byId = new Map(sentRows.map(([id, modifiedTime, hash]) => [id, { modifiedTime, hash }]))
  return (row) => {
    const sent = byId.get(row.id)
    return sent !== undefined && sent.modifiedTime === row.modifiedTime && sent.hash === digestRow(row.json)
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
  const newRows = page.filter(({ id, modifiedTime }) => {
    const sent = rows.get(id)
    return modifiedTime >= from && modifiedTime > horizon && !(sent !== undefined && sent.modifiedTime >= modifiedTime)
  })
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
