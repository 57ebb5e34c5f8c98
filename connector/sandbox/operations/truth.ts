import { toInstant } from '../../cdk'
import type { CellValue, Database } from '../../snapshot/store'
import { readReviewRows } from '../data/review-tables'
import { reviewText } from '../data/review-text'

type ReviewVersion = { readonly id: string; readonly modifiedTime: string }

/**
 * The data of the service, in the order of ids: the version of each review, the deletions, the locations and the
 * visits.
 */
export type TruthSummary = {
  readonly reviews: ReadonlyArray<ReviewVersion>
  readonly deleted: ReadonlyArray<ReviewVersion>
  readonly locations: ReadonlyArray<{
    readonly id: number
    readonly code: string
    readonly name: string
    readonly active: boolean
  }>
  readonly visits: ReadonlyArray<{ readonly id: string; readonly received: string; readonly reviewed: boolean }>
}

/** The data of the service with the JSON text of each review, which has all additional fields. */
export type Truth = Omit<TruthSummary, 'reviews'> & {
  readonly reviews: ReadonlyArray<ReviewVersion & { readonly json: string }>
}

const formatTime = (millis: CellValue | undefined): string => toInstant(Number(millis))
const readVersions = async (database: Database, table: string): Promise<ReadonlyArray<ReviewVersion>> =>
  (
    await database.query(
      `SELECT t.id::VARCHAR AS id, epoch_ms(modified) AS modified FROM ${table} t ORDER BY t.id, t.modified`,
    )
  ).map(({ id, modified }) => ({ id: String(id), modifiedTime: formatTime(modified) }))

export const readTruthSummary = async (database: Database): Promise<TruthSummary> => {
  const locations = await database.query('SELECT id, code, name, active FROM location ORDER BY id')
  const visits = await database.query('SELECT id, epoch_ms(received) AS received, reviewed FROM visit ORDER BY id')
  return {
    reviews: await readVersions(database, 'review'),
    deleted: await readVersions(database, 'deleted'),
    locations: locations.map(({ id, code, name, active }) => ({
      id: Number(id),
      code: String(code),
      name: String(name),
      active: active === true,
    })),
    visits: visits.map(({ id, received, reviewed }) => ({
      id: String(id),
      received: formatTime(received),
      reviewed: reviewed === true,
    })),
  }
}

export const readTruth = async (database: Database): Promise<Truth> => {
  const rows = await readReviewRows(database, 'ORDER BY r.id')
  return {
    ...(await readTruthSummary(database)),
    reviews: rows.map((row) => ({
      id: row.id,
      modifiedTime: toInstant(Number(row.modified)),
      json: reviewText(row, ['brand', 'visitRecordId']),
    })),
  }
}
