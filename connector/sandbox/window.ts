import { toInstant, toMillis } from '../api/model/scalar'

export type Times = {
  readonly days?: number
  readonly fromDate?: string | null
  readonly toDate?: string | null
}

/** The window of mention time a request means: fromDate with toDate, which take precedence over days (Endpoints 2). */
export type Window = {
  readonly from: number
  readonly to: number
  /** Null where the pair of dates decides. */
  readonly days: number | null
}

const day = 86_400_000

export const windowOf = ({ days = 365, fromDate, toDate }: Times, now: number): Window =>
  typeof fromDate === 'string' && typeof toDate === 'string'
    ? { from: toMillis(fromDate), to: toMillis(toDate), days: null }
    : { from: now - days * day, to: now, days }

/** Both ends belong to it. */
export const within = ({ from, to }: Window): string => `mention BETWEEN ${literalTime(from)} AND ${literalTime(to)}`

// Times before 1970 and after 9999 are written as text by neither JavaScript nor DuckDB.
const literalTime = (millis: number): string => `epoch_ms(${Math.max(-62e12, Math.min(253e12, Math.round(millis)))})`

export const periodOf = ({ from, to }: Window): { readonly from: string; readonly to: string } => ({
  from: toInstant(from),
  to: toInstant(to),
})
