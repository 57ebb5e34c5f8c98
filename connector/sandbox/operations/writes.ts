import {
  type Location,
  type LocationSyncResult,
  toInstant,
  toMillis,
  type VisitRecord,
  type VisitRecordResult,
} from '../../api'
import { printExactJson } from '../../cdk'
import type { Database } from '../../snapshot/store'
import { type Picker, phraseForRating, reviewIdAt, selectReviews, wordCount } from '../data/generate'
import { patchOriginal } from '../data/review-tables'
import { operatorAnswers, reviewSources } from '../data/vocabulary'

const hasText = (text: string | null | undefined): boolean => typeof text === 'string' && text.trim() !== ''

/**
 * The record has the required attributes and the code of a location in `codes`. The specification names no other
 * errors.
 */
const isValidVisit =
  (codes: ReadonlySet<string>) =>
  (record: VisitRecord): boolean =>
    (hasText(record.name) || (hasText(record.firstName) && hasText(record.lastName))) &&
    hasText(record.email) &&
    /^[^\s@]+@[^\s@]+$/.test(record.email ?? '') &&
    codes.has(record.locationCode ?? '') &&
    hasText(record.npi) &&
    (record.visitTime === undefined || record.visitTime === null || !Number.isNaN(toMillis(record.visitTime)))

/** Operation 4. A record with an existing visitRecordId is reported as Success and changes nothing. */
export const saveVisitRecords = async (
  database: Database,
  now: number,
  nonce: number,
  records: ReadonlyArray<VisitRecord>,
): Promise<VisitRecordResult> => {
  const codes = new Set(
    (await database.query('SELECT code FROM location WHERE active')).map(({ code }) => String(code)),
  )
  const results = records.map((record, index) => ({
    id: hasText(record.visitRecordId) ? String(record.visitRecordId) : `generated-${nonce}-${index}`,
    record,
    accepted: isValidVisit(codes)(record),
  }))
  const rows = results
    .filter(({ accepted }) => accepted)
    .map(({ id, record }) => ({ id, code: record.locationCode, npi: record.npi, record: JSON.stringify(record) }))
  if (rows.length > 0)
    await database.run(
      `INSERT INTO visit
       SELECT row.id, epoch_ms(${now}), row.code, row.npi, row.record, false
       FROM (
         SELECT unnest(from_json(
           $rows, '[{"id":"VARCHAR","code":"VARCHAR","npi":"VARCHAR","record":"VARCHAR"}]')) AS row
       )
       QUALIFY row_number() OVER (PARTITION BY row.id) = 1
       ON CONFLICT DO NOTHING`,
      { rows: JSON.stringify(rows) },
    )
  const failures = results.filter(({ accepted }) => !accepted).length
  return {
    status: { code: 200, message: failures === 0 ? 'Success' : `${failures} of ${records.length} records failed` },
    records: Object.fromEntries(results.map(({ id, accepted }) => [id, accepted ? 'Success' : 'Error'])),
  }
}

/** Locations whose code begins with this cannot be synced, so that a test can cause a partial success. */
const unsyncablePrefix = 'NOSYNC'

const isSyncable = ({ code, active }: Location): boolean =>
  typeof code === 'string' && code.trim() !== '' && !code.startsWith(unsyncablePrefix) && typeof active === 'boolean'

/** The last item of each code, since one statement may change a row only once. */
const lastByCode = (items: ReadonlyArray<Location>): ReadonlyArray<Location> => [
  ...new Map(items.map((item) => [item.code, item])).values(),
]

const locationRows = `SELECT row.* FROM (SELECT unnest(from_json($rows,
  '[{"code":"VARCHAR","codeType":"VARCHAR","name":"VARCHAR","active":"BOOLEAN","details":"VARCHAR"}]')) AS row)`

/** Operation 5: creates, updates and deactivates locations. A location's new name modifies its reviews at `now`. */
export const saveLocations = async (
  database: Database,
  now: number,
  items: ReadonlyArray<Location>,
): Promise<LocationSyncResult> => {
  const accepted = items.filter(isSyncable)
  const rows = JSON.stringify(
    lastByCode(accepted).map(({ code, codeType, name, active, ...details }) => ({
      code,
      codeType: codeType ?? null,
      name: name ?? null,
      active,
      details: printExactJson({ ...details, modifiedTime: toInstant(now) }),
    })),
  )
  await database.transaction(async () => {
    await database.run(
      `UPDATE review SET modified = epoch_ms(${now}), original = ${patchOriginal(
        `'{"modifiedTime":"${toInstant(now)}","location":{"name":' || to_json(renamed.name) || '}}'`,
      )}
       FROM (SELECT l.id, row.name FROM location l JOIN (${locationRows}) row USING (code)
         WHERE row.active AND row.name IS NOT NULL AND row.name IS DISTINCT FROM l.name) renamed
       WHERE review.location_id = renamed.id`,
      { rows },
    )
    await database.run(
      `UPDATE location SET active = row.active, name = coalesce(CASE WHEN row.active THEN row.name END, location.name),
         code_type = coalesce(row."codeType", code_type), details = row.details
       FROM (${locationRows}) row WHERE row.code = location.code`,
      { rows },
    )
    await database.run(
      `INSERT INTO location
       SELECT last + n, code, "codeType", coalesce(name, code), true, 79000 + last + n, 'Location',
         (SELECT min(id) + (last + n) % count(*) FROM region), (SELECT min(id) FROM brand), details
       FROM (
         SELECT row.*, row_number() OVER (ORDER BY code) AS n,
           (SELECT coalesce(max(id), 1000) FROM location) AS last
         FROM (${locationRows}) row WHERE row.active AND row.code NOT IN (SELECT code FROM location)
       )`,
      { rows },
    )
  })
  const rejected = items.filter((item) => !isSyncable(item))
  return {
    status: rejected.length === 0 ? 'SUCCESS' : 'PARTIAL_SUCCESS',
    message: rejected.length === 0 ? 'All locations were accepted' : 'Some locations could not be processed',
    nonSyncableList: rejected,
    totalRequests: items.length,
    successfulRequests: accepted.length,
    failedRequests: rejected.length,
  }
}

/**
 * Half of the visits get a review: new reviews are assigned, in the order of their ids, to the visits that have waited
 * longest.
 */
const assignVisits = (arrivals: string): string => `
UPDATE review SET
  source_id = ${reviewSources[0]?.[0]}, location_id = visit_location_id, provider_id = visit_provider_id,
  visit_record_id = visit_id, survey_bar_code = coalesce(survey_bar_code, 'SV' || review_id)
FROM (
  SELECT arrival.id AS review_id, waiting.id AS visit_id, l.id AS visit_location_id, p.id AS visit_provider_id
  FROM (SELECT id, row_number() OVER (ORDER BY id) AS position FROM (${arrivals})) arrival
  JOIN (
    SELECT *, row_number() OVER (ORDER BY received, id) AS position FROM visit
    WHERE NOT reviewed AND hash(id) % 2 = 0
  ) waiting ON waiting.position = arrival.position
  JOIN location l ON l.code = waiting.code
  LEFT JOIN provider p ON p.npi = waiting.npi
) WHERE review.id = review_id;
UPDATE visit SET reviewed = true WHERE id IN (SELECT visit_record_id FROM review WHERE id IN (${arrivals}))`

/** SQL that chooses among the ids that are in a table now. `name` makes choices independent of each other. */
const createIdPool = async (database: Database, table: string, name: string): Promise<(pick: Picker) => string> => {
  const count = Number(await database.scalar(`SELECT count(*) FROM ${table}`))
  return (pick) => (count === 0 ? 'NULL' : `(SELECT list(id ORDER BY id) FROM ${table})[1 + ${pick(name, count)}]`)
}

/** Adds `count` reviews of active locations; they arrive at `now`, in milliseconds. */
const addReviews = async (database: Database, count: number, now: number): Promise<void> => {
  const settings = new Map(
    (await database.query('SELECT * FROM setting')).map(({ name, value }) => [name, Number(value)]),
  )
  const [seed, from] = [settings.get('seed') ?? 0, settings.get('next') ?? 0]
  const to = from + count
  const pools = {
    location: await createIdPool(database, 'location WHERE active', 'location'),
    provider: await createIdPool(database, 'provider', 'provider'),
  }
  const times = { arrived: String(now), modified: String(now) }
  await database.transaction(async () => {
    await database.run(`INSERT INTO review ${selectReviews(seed, from, to, times, pools)}`)
    await database.run(`UPDATE setting SET value = ${to} WHERE name = 'next'`)
    await database.run(assignVisits(`SELECT ${reviewIdAt('i')} AS id FROM range(${from}, ${to}) AS t(i)`))
  })
}

/** How many reviews a step changes, deletes, adds and restores. */
export type Churn = {
  readonly change: number
  readonly delete: number
  readonly add: number
  readonly restore: number
}

export const noChurn: Churn = { change: 0, delete: 0, add: 0, restore: 0 }

const selectReviewIds = (count: number, nonce: number): string =>
  `(SELECT id FROM review ORDER BY hash(id + ${nonce * 104729}) LIMIT ${count})`

/** Half of the changed reviews get a new rating and text, a quarter a task or a completed task, a quarter an answer. */
const changeReviews = (count: number, nonce: number, now: number): string => `
UPDATE review SET modified = epoch_ms(${now}),
  original = ${patchOriginal(
    `'{"modifiedTime":"${toInstant(now)}","rating":' || CASE ` +
      `WHEN kind < 4 THEN stars ELSE coalesce(rating, 0) END || '}'`,
  )},
  rating = CASE WHEN kind < 4 THEN stars ELSE rating END,
  first_phrase = CASE WHEN kind < 4 THEN phrase ELSE first_phrase END,
  second_phrase = CASE WHEN kind < 4 THEN NULL ELSE second_phrase END,
  third_phrase = CASE WHEN kind < 4 THEN NULL ELSE third_phrase END,
  words = CASE WHEN kind < 4 THEN ${wordCount('phrase')} ELSE words END,
  liability = CASE WHEN kind < 4 THEN NULL ELSE liability END,
  task_status = CASE
    WHEN kind NOT BETWEEN 4 AND 5 THEN task_status
    WHEN task_id IS NULL THEN 'pending'
    ELSE 'completed'
  END,
  task_owner = CASE WHEN kind BETWEEN 4 AND 5 THEN coalesce(task_owner, number % 40) ELSE task_owner END,
  task_id = CASE WHEN kind BETWEEN 4 AND 5 THEN coalesce(task_id, ${now} + number % 1000) ELSE task_id END,
  answer = CASE WHEN kind > 5 THEN number % ${operatorAnswers.length} ELSE answer END,
  answered = CASE WHEN kind > 5 THEN epoch_ms(${now}) ELSE answered END
FROM (
  SELECT id AS changed_id, number, number % 8 AS kind, stars, ${phraseForRating('stars', 'number')} AS phrase
  FROM (
    SELECT id, (hash(id * 3 + ${nonce}) % 1000003)::BIGINT AS number, 1 + (hash(id * 5 + ${nonce}) % 5)::BIGINT AS stars
    FROM ${selectReviewIds(count, nonce)}
  )
) WHERE id = changed_id`

/** Deletes reviews and keeps their rows in the table `restorable`, so that they can be restored. */
const deleteReviews = (count: number, nonce: number, now: number): string => `
INSERT INTO restorable SELECT * FROM review WHERE id IN ${selectReviewIds(count, nonce + 1)};
INSERT INTO deleted SELECT id, source_id, epoch_ms(${now}) FROM review WHERE id IN ${selectReviewIds(count, nonce + 1)};
DELETE FROM review WHERE id IN ${selectReviewIds(count, nonce + 1)}`

/** Restores deleted reviews with `now` as their modification time; the export of deleted reviews keeps them. */
const restoreReviews = (count: number, nonce: number, now: number): string => `
CREATE OR REPLACE TEMP TABLE restored AS
  SELECT id FROM restorable ORDER BY hash(id + ${nonce * 15485863}) LIMIT ${count};
INSERT INTO review
  SELECT * REPLACE (
    epoch_ms(${now}) AS modified,
    ${patchOriginal(`'{"modifiedTime":"${toInstant(now)}"}'`)} AS original
  )
  FROM restorable WHERE id IN (SELECT id FROM restored);
DELETE FROM restorable WHERE id IN (SELECT id FROM restored)`

/** Applies one step of changes at `now`, in milliseconds. The same `nonce` on the same data gives the same result. */
export const applyChurn = async (database: Database, step: Churn, nonce: number, now: number): Promise<void> => {
  if (step.change > 0) await database.run(changeReviews(step.change, nonce, now))
  if (step.delete > 0) await database.run(deleteReviews(step.delete, nonce, now))
  if (step.restore > 0) await database.run(restoreReviews(step.restore, nonce, now))
  if (step.add > 0) await addReviews(database, step.add, now)
}
