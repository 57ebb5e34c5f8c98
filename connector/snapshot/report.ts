import { basename } from 'node:path'
import { type Health, readHealth } from './report/health'
import { type Liabilities, readLiabilities } from './report/liabilities'
import { type Location, readLocations } from './report/locations'
import { type Responses, readResponses } from './report/responses'
import { type Reviews, readReviews } from './report/reviews'
import { readSentiments, type Sentiments } from './report/sentiments'
import type { Snapshot } from './snapshot'
import { allTables } from './table'
import { createTemporaryViews } from './views'

/** What the report tells, as plain data; times in ISO 8601, UTC. Null: the file has no stream that could tell it. */
export type Report = {
  readonly file: string
  readonly madeAt: string
  readonly reviews: Reviews | null
  readonly sentiments: Sentiments | null
  /** The best first. */
  readonly locations: ReadonlyArray<Location> | null
  readonly liabilities: Liabilities | null
  readonly responses: Responses | null
  readonly health: Health
}

/** Asks a snapshot for all that its report tells; changes nothing. `now`: milliseconds since 1970. */
export const readReport = async (snapshot: Snapshot, now: number): Promise<Report> => {
  const { db } = snapshot
  const tables = await allTables(db)
  const reviews = (await createTemporaryViews(db)) ? await readReviews(db) : null
  return {
    file: basename(db.path),
    madeAt: new Date(now).toISOString(),
    reviews,
    sentiments: await readSentiments(db, tables),
    locations: reviews && (await readLocations(db, reviews)),
    liabilities: reviews && (await readLiabilities(db)),
    responses: reviews && (await readResponses(db)),
    health: await readHealth(snapshot),
  }
}
