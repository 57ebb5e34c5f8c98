import { createTemporaryViews, type Database, quoteLiteral } from '../snapshot/store'
import type { FocusMonth, MonthPair } from './months'
import { createOutcomes, dropOutcomes } from './samples'

const factsCopy = '_report_facts'
const sentimentsCopy = '_report_sentiments'

/**
 * Copies the model that the others read, so that the JSON of a review is parsed only once. Views over `reviews` read
 * the copy too.
 */
export const copyFacts = async (db: Database): Promise<void> => {
  await db.query(`CREATE OR REPLACE TEMP TABLE ${factsCopy} AS FROM review_facts`)
  await db.run(`
    CREATE OR REPLACE TEMP VIEW review_facts AS FROM ${factsCopy};
    CREATE OR REPLACE TEMP VIEW reviews_current AS
      SELECT review_id, mention_time, modified_time, rating, review_score, location_id, location_name,
        provider_id, provider_name, provider_npi, source_id, source_name, task_status, owner_name AS task_owner
      FROM ${factsCopy}`)
}

/** Copies the sentiments of the two months, and creates the samples for judging their changes. */
export const copyMonths = async (db: Database, months: MonthPair, readAt: string): Promise<void> => {
  const list = [months.month, months.previous].map((of) => `${quoteLiteral(`${of}-01`)}::DATE`).join(', ')
  await db.query(`
    CREATE OR REPLACE TEMP TABLE ${sentimentsCopy} AS
    FROM review_sentiments_current WHERE review_id IN (SELECT review_id FROM ${factsCopy} WHERE month IN (${list}))`)
  await db.run(`CREATE OR REPLACE TEMP VIEW review_sentiments_current AS FROM ${sentimentsCopy}`)
  await createOutcomes(db, factsCopy, readAt, months)
}

export const dropCopies = async (db: Database): Promise<void> => {
  await createTemporaryViews(db)
  await dropOutcomes(db)
  await db.run(`
    DROP VIEW IF EXISTS temp.review_facts;
    DROP TABLE IF EXISTS ${factsCopy};
    DROP TABLE IF EXISTS ${sentimentsCopy}`)
}

/** Evaluates the models over the reviews of one month. The model that they read is restricted while `body` runs. */
export const createFocus =
  (db: Database): FocusMonth =>
  async (month, body) => {
    const select = `CREATE OR REPLACE TEMP VIEW review_facts AS FROM ${factsCopy}`
    await db.run(`${select} WHERE month = ${quoteLiteral(`${month}-01`)}::DATE`)
    try {
      return await body()
    } finally {
      await db.run(select)
    }
  }
