import { createHash } from 'node:crypto'
import * as t from 'io-ts'
import type { Cut } from '../page'

/** Rows already sent that the next filter will serve again: `[id, modifiedTime in milliseconds, digest of the text as it left]`. */
export const Recent = t.readonlyArray(t.tuple([t.string, t.number, t.string]))
export type Recent = t.TypeOf<typeof Recent>

const most = 1000

/** Of what left: what privacy withholds must not be found out from a state. */
const digest = (json: Uint8Array): string => createHash('sha256').update(json).digest('base64url').slice(0, 11)

/** Was this very row, to the byte, sent by the run that left `recent`? */
export const holds = (recent: Recent): ((row: Cut) => boolean) => {
  const byId = new Map(recent.map(([id, modifiedTime, hash]) => [id, { modifiedTime, hash }]))
  return (row) => {
    const held = byId.get(row.id)
    return held !== undefined && held.modifiedTime === row.modifiedTime && held.hash === digest(row.json)
  }
}

type Held = { readonly modifiedTime: number; readonly text: string | Uint8Array }

/** `recent` in the making. Nothing is known of rows modified at `horizon` or before. */
export type Gathering = { readonly horizon: number; readonly rows: ReadonlyMap<string, Held> }

export const nothing: Gathering = { horizon: Number.NEGATIVE_INFINITY, rows: new Map() }

const hashed = ({ modifiedTime, text }: Held): Held => ({
  modifiedTime,
  text: typeof text === 'string' ? text : digest(text),
})

/**
 * Adds a page. `from`: what the next filter would be by now. Rows of this page are copied, lest they hold all of it, and
 * hashed with the next one, since in a backfill most are outrun by then; more than 1,000 are given up together.
 */
export const gather = (gathered: Gathering, page: ReadonlyArray<Cut>, from: number): Gathering => {
  const { horizon, rows } = gathered
  const old = [...rows].filter(([, { modifiedTime }]) => modifiedTime >= from)
  const young = page.filter(({ id, modifiedTime }) => {
    const held = rows.get(id)
    return modifiedTime >= from && modifiedTime > horizon && !(held !== undefined && held.modifiedTime >= modifiedTime)
  })
  if (old.length + young.length <= most)
    return {
      horizon,
      rows: new Map([
        ...old.map(([id, held]) => [id, hashed(held)] as const),
        ...young.map(({ id, modifiedTime, json }) => [id, { modifiedTime, text: Buffer.from(json) }] as const),
      ]),
    }
  const times = [...old.map(([, held]) => held.modifiedTime), ...young.map(({ modifiedTime }) => modifiedTime)]
  return { horizon: times.reduce((a, b) => Math.max(a, b), horizon), rows: new Map() }
}

/** The rows the filter `from` will serve again; none if not all of them are known. */
export const recentSince = ({ horizon, rows }: Gathering, from: number): Recent =>
  horizon >= from
    ? []
    : [...rows]
        .filter(([, { modifiedTime }]) => modifiedTime >= from)
        .map(([id, { modifiedTime, text }]) => [id, modifiedTime, typeof text === 'string' ? text : digest(text)])

/** What was gathered, from its parts in a marker. */
export const gathered = (horizon: number, rows: Recent): Gathering => ({
  horizon,
  rows: new Map(rows.map(([id, modifiedTime, text]) => [id, { modifiedTime, text }])),
})
