import { toInstant } from '../api/model/scalar'
import type { Cell, Database } from '../snapshot/database'
import { reviewRows } from './review-rows'
import { reviewText } from './review-text'

type Version = { readonly id: string; readonly modifiedTime: string }

/** What the service holds, in the order of ids: which reviews in which version, what was deleted when, the rest. */
export type Held = {
  readonly reviews: ReadonlyArray<Version>
  readonly deleted: ReadonlyArray<Version>
  readonly locations: ReadonlyArray<{
    readonly id: number
    readonly code: string
    readonly name: string
    readonly active: boolean
  }>
  readonly visits: ReadonlyArray<{ readonly id: string; readonly received: string; readonly reviewed: boolean }>
}

/** The same with each review's text, all additional fields in it. */
export type Truth = Omit<Held, 'reviews'> & {
  readonly reviews: ReadonlyArray<Version & { readonly json: string }>
}

const timeOf = (millis: Cell | undefined): string => toInstant(Number(millis))

const versions = async (database: Database, table: string): Promise<ReadonlyArray<Version>> =>
  (
    await database.query(
      `SELECT t.id::VARCHAR AS id, epoch_ms(modified) AS modified FROM ${table} t ORDER BY t.id, t.modified`,
    )
  ).map(({ id, modified }) => ({ id: String(id), modifiedTime: timeOf(modified) }))

export const held = async (database: Database): Promise<Held> => {
  const locations = await database.query('SELECT id, code, name, active FROM location ORDER BY id')
  const visits = await database.query('SELECT id, epoch_ms(received) AS received, reviewed FROM visit ORDER BY id')
  return {
    reviews: await versions(database, 'review'),
    deleted: await versions(database, 'deleted'),
    locations: locations.map(({ id, code, name, active }) => ({
      id: Number(id),
      code: String(code),
      name: String(name),
      active: active === true,
    })),
    visits: visits.map(({ id, received, reviewed }) => ({
      id: String(id),
      received: timeOf(received),
      reviewed: reviewed === true,
    })),
  }
}

export const truth = async (database: Database): Promise<Truth> => {
  const rows = await reviewRows(database, 'ORDER BY r.id')
  return {
    ...(await held(database)),
    reviews: rows.map((row) => ({
      id: row.id,
      modifiedTime: toInstant(Number(row.modified)),
      json: reviewText(row, ['brand', 'visitRecordId']),
    })),
  }
}
