import { toInstant, toMillis } from '../api/model/scalar'

export type WindowFilter = {
  readonly days?: number
  readonly fromDate?: string | null
  readonly toDate?: string | null
}

/** The window of mention time a request means: fromDate with toDate, which take precedence over days (Endpoints 2). */
export type FilterWindow = {
  readonly from: number
  readonly to: number
  /** Null where the pair of dates decides. */
  readonly days: number | null
}

const dayMs = 86_400_000

export const filterWindow = ({ days = 365, fromDate, toDate }: WindowFilter, now: number): FilterWindow =>
  typeof fromDate === 'string' && typeof toDate === 'string'
    ? { from: toMillis(fromDate), to: toMillis(toDate), days: null }
    : { from: now - days * dayMs, to: now, days }

/** Both ends belong to it. */
export const windowCondition = ({ from, to }: FilterWindow): string =>
  `mention BETWEEN ${timeLiteral(from)} AND ${timeLiteral(to)}`

// Times before 1970 and after 9999 are written as text by neither JavaScript nor DuckDB.
const timeLiteral = (millis: number): string => `epoch_ms(${Math.max(-62e12, Math.min(253e12, Math.round(millis)))})`

export const windowPeriod = ({ from, to }: FilterWindow): { readonly from: string; readonly to: string } => ({
  from: toInstant(from),
  to: toInstant(to),
})
