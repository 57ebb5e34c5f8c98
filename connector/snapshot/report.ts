import { basename } from 'node:path'
import { type DataHealth, readDataHealth } from './report/health'
import { type LiabilityStatistics, readLiabilityStatistics } from './report/liabilities'
import { type LocationStatistics, readLocationStatistics } from './report/locations'
import { type ResponseStatistics, readResponseStatistics } from './report/responses'
import { type ReviewStatistics, readReviewStatistics } from './report/reviews'
import { readSentimentStatistics, type SentimentStatistics } from './report/sentiments'
import type { Snapshot } from './snapshot'
import { listStreamTables } from './table'
import { createTemporaryViews } from './views'

/** What the report tells, as plain data; times in ISO 8601, UTC. Null: the file has no stream that could tell it. */
export type Report = {
  readonly file: string
  readonly madeAt: string
  readonly reviews: ReviewStatistics | null
  readonly sentiments: SentimentStatistics | null
  /** The best first. */
  readonly locations: ReadonlyArray<LocationStatistics> | null
  readonly liabilities: LiabilityStatistics | null
  readonly responses: ResponseStatistics | null
  readonly health: DataHealth
}

/** Asks a snapshot for all that its report tells; changes nothing. `now`: milliseconds since 1970. */
export const readReport = async (snapshot: Snapshot, now: number): Promise<Report> => {
  const { db } = snapshot
  const tables = await listStreamTables(db)
  const reviews = (await createTemporaryViews(db)) ? await readReviewStatistics(db) : null
  return {
    file: basename(db.path),
    madeAt: new Date(now).toISOString(),
    reviews,
    sentiments: await readSentimentStatistics(db, tables),
    locations: reviews && (await readLocationStatistics(db, reviews)),
    liabilities: reviews && (await readLiabilityStatistics(db)),
    responses: reviews && (await readResponseStatistics(db)),
    health: await readDataHealth(snapshot),
  }
}
