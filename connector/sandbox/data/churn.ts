import { toInstant } from '../../api'
import type { Database } from '../../snapshot/store'
import { type Picker, phraseForRating, reviewIdAt, selectReviews, wordCount } from './generate'
import { patchOriginal } from './tables'
import { operatorAnswers, reviewSources } from './vocabulary'

/** Half of the visits bring a review; the first arrivals after a visit are of those that wait. */
const assignVisits = (arrivals: string): string => `
UPDATE review SET source_id = ${reviewSources[0]?.[0]}, location_id = place, provider_id = person, visit_record_id = visit,
  survey_bar_code = coalesce(survey_bar_code, 'SV' || target)
FROM (
  SELECT arrived.id AS target, waiting.id AS visit, l.id AS place, p.id AS person
  FROM (SELECT id, row_number() OVER (ORDER BY id) AS place FROM (${arrivals})) arrived
  JOIN (SELECT *, row_number() OVER (ORDER BY received, id) AS place FROM visit WHERE NOT reviewed AND hash(id) % 2 = 0) waiting
    ON waiting.place = arrived.place
  JOIN location l ON l.code = waiting.code
  LEFT JOIN provider p ON p.npi = waiting.npi
) WHERE review.id = target;
UPDATE visit SET reviewed = true WHERE id IN (SELECT visit_record_id FROM review WHERE id IN (${arrivals}))`

/** A choice among the ids that there are now. */
const createIdPool = async (database: Database, of: string, what: string): Promise<(pick: Picker) => string> => {
  const count = Number(await database.scalar(`SELECT count(*) FROM ${of}`))
  return (pick) => (count === 0 ? 'NULL' : `(SELECT list(id ORDER BY id) FROM ${of})[1 + ${pick(what, count)}]`)
}

/** So many reviews arrive at the time `now`, at locations that are active. */
export const addReviews = async (database: Database, count: number, now: number): Promise<void> => {
  const settings = new Map(
    (await database.query('SELECT * FROM setting')).map(({ name, value }) => [name, Number(value)]),
  )
  const given = (name: string): number => settings.get(name) ?? 0
  const [from, to] = [given('next'), given('next') + count]
  const pools = {
    location: await createIdPool(database, 'location WHERE active', 'location'),
    provider: await createIdPool(database, 'provider', 'provider'),
  }
  const times = { arrived: String(now), modified: String(now) }
  await database.transaction(async () => {
    await database.run(`INSERT INTO review ${selectReviews(given('seed'), from, to, times, pools)}`)
    await database.run(`UPDATE setting SET value = ${to} WHERE name = 'next'`)
    await database.run(assignVisits(`SELECT ${reviewIdAt('i')} AS id FROM range(${from}, ${to}) AS t(i)`))
  })
}

/** How many reviews change, are deleted, arrive and come back from the deleted ones in one step. */
export type Churn = {
  readonly change: number
  readonly delete: number
  readonly add: number
  readonly restore: number
}

export const noChurn: Churn = { change: 0, delete: 0, add: 0, restore: 0 }

const selectReviewIds = (count: number, nonce: number): string =>
  `(SELECT id FROM review ORDER BY hash(id + ${nonce * 104729}) LIMIT ${count})`

/** Half of the changed reviews are rewritten, others get their task closed, a task, or an answer. */
const changeReviews = (count: number, nonce: number, now: number): string => `
UPDATE review SET modified = epoch_ms(${now}),
  original = ${patchOriginal(`'{"modifiedTime":"${toInstant(now)}","rating":' || CASE WHEN kind < 4 THEN stars ELSE coalesce(rating, 0) END || '}'`)},
  rating = CASE WHEN kind < 4 THEN stars ELSE rating END,
  first_phrase = CASE WHEN kind < 4 THEN one ELSE first_phrase END,
  second_phrase = CASE WHEN kind < 4 THEN NULL ELSE second_phrase END,
  third_phrase = CASE WHEN kind < 4 THEN NULL ELSE third_phrase END,
  words = CASE WHEN kind < 4 THEN ${wordCount('one')} ELSE words END,
  liability = CASE WHEN kind < 4 THEN NULL ELSE liability END,
  task_status = CASE WHEN kind BETWEEN 4 AND 5 THEN CASE WHEN task_id IS NULL THEN 'pending' ELSE 'completed' END ELSE task_status END,
  task_owner = CASE WHEN kind BETWEEN 4 AND 5 THEN coalesce(task_owner, roll % 40) ELSE task_owner END,
  task_id = CASE WHEN kind BETWEEN 4 AND 5 THEN coalesce(task_id, ${now} + roll % 1000) ELSE task_id END,
  answer = CASE WHEN kind > 5 THEN roll % ${operatorAnswers.length} ELSE answer END,
  answered = CASE WHEN kind > 5 THEN epoch_ms(${now}) ELSE answered END
FROM (
  SELECT id AS picked, roll, roll % 8 AS kind, stars, ${phraseForRating('stars', 'roll')} AS one
  FROM (SELECT id, (hash(id * 3 + ${nonce}) % 1000003)::BIGINT AS roll, 1 + (hash(id * 5 + ${nonce}) % 5)::BIGINT AS stars FROM ${selectReviewIds(count, nonce)})
) WHERE id = picked`

const deleteReviews = (count: number, nonce: number, now: number): string => `
INSERT INTO buried SELECT * FROM review WHERE id IN ${selectReviewIds(count, nonce + 1)};
INSERT INTO deleted SELECT id, source_id, epoch_ms(${now}) FROM review WHERE id IN ${selectReviewIds(count, nonce + 1)};
DELETE FROM review WHERE id IN ${selectReviewIds(count, nonce + 1)}`

/** A review that a source shows again is modified by that; its deletion stays told. */
const restoreReviews = (count: number, nonce: number, now: number): string => `
CREATE OR REPLACE TEMP TABLE risen AS SELECT id FROM buried ORDER BY hash(id + ${nonce * 15485863}) LIMIT ${count};
INSERT INTO review SELECT * REPLACE (epoch_ms(${now}) AS modified, ${patchOriginal(`'{"modifiedTime":"${toInstant(now)}"}'`)} AS original)
  FROM buried WHERE id IN (SELECT id FROM risen);
DELETE FROM buried WHERE id IN (SELECT id FROM risen)`

/** One step of life at the time `now`; the same `nonce` on the same data does the same. */
export const applyChurn = async (database: Database, step: Churn, nonce: number, now: number): Promise<void> => {
  if (step.change > 0) await database.run(changeReviews(step.change, nonce, now))
  if (step.delete > 0) await database.run(deleteReviews(step.delete, nonce, now))
  if (step.restore > 0) await database.run(restoreReviews(step.restore, nonce, now))
  if (step.add > 0) await addReviews(database, step.add, now)
}
