import { createHash } from 'node:crypto'
import * as t from 'io-ts'
import type { CutRecord } from '../export-page'

/** Rows already sent that the next filter will serve again: `[id, modifiedTime in milliseconds, digest of the text as it left]`. */
export const SentRows = t.readonlyArray(t.tuple([t.string, t.number, t.string]))
export type SentRows = t.TypeOf<typeof SentRows>

const maxSentRows = 1000

/** Of what left: what privacy withholds must not be found out from a state. */
const digestRow = (json: Uint8Array): string => createHash('sha256').update(json).digest('base64url').slice(0, 11)

/** Was this very row, to the byte, sent by the run that left `recent`? */
export const matchesSentRow = (recent: SentRows): ((row: CutRecord) => boolean) => {
  const byId = new Map(recent.map(([id, modifiedTime, hash]) => [id, { modifiedTime, hash }]))
  return (row) => {
    const held = byId.get(row.id)
    return held !== undefined && held.modifiedTime === row.modifiedTime && held.hash === digestRow(row.json)
  }
}

type SentRow = { readonly modifiedTime: number; readonly text: string | Uint8Array }

/** `recent` in the making. Nothing is known of rows modified at `horizon` or before. */
export type SentRowCollector = { readonly horizon: number; readonly rows: ReadonlyMap<string, SentRow> }

export const emptyCollector: SentRowCollector = { horizon: Number.NEGATIVE_INFINITY, rows: new Map() }

const hashSentRow = ({ modifiedTime, text }: SentRow): SentRow => ({
  modifiedTime,
  text: typeof text === 'string' ? text : digestRow(text),
})

/**
 * Adds a page. `from`: what the next filter would be by now. Rows of this page are copied, lest they hold all of it, and
 * hashed with the next one, since in a backfill most are outrun by then; more than 1,000 are given up together.
 */
export const collectSentRows = (
  gathered: SentRowCollector,
  page: ReadonlyArray<CutRecord>,
  from: number,
): SentRowCollector => {
  const { horizon, rows } = gathered
  const old = [...rows].filter(([, { modifiedTime }]) => modifiedTime >= from)
  const young = page.filter(({ id, modifiedTime }) => {
    const held = rows.get(id)
    return modifiedTime >= from && modifiedTime > horizon && !(held !== undefined && held.modifiedTime >= modifiedTime)
  })
  if (old.length + young.length <= maxSentRows)
    return {
      horizon,
      rows: new Map([
        ...old.map(([id, held]) => [id, hashSentRow(held)] as const),
        ...young.map(({ id, modifiedTime, json }) => [id, { modifiedTime, text: Buffer.from(json) }] as const),
      ]),
    }
  const times = [...old.map(([, held]) => held.modifiedTime), ...young.map(({ modifiedTime }) => modifiedTime)]
  return { horizon: times.reduce((a, b) => Math.max(a, b), horizon), rows: new Map() }
}

/** The rows the filter `from` will serve again; none if not all of them are known. */
export const sentRowsSince = ({ horizon, rows }: SentRowCollector, from: number): SentRows =>
  horizon >= from
    ? []
    : [...rows]
        .filter(([, { modifiedTime }]) => modifiedTime >= from)
        .map(([id, { modifiedTime, text }]) => [id, modifiedTime, typeof text === 'string' ? text : digestRow(text)])

/** What was gathered, from its parts in a marker. */
export const restoreCollector = (horizon: number, rows: SentRows): SentRowCollector => ({
  horizon,
  rows: new Map(rows.map(([id, modifiedTime, text]) => [id, { modifiedTime, text }])),
})
