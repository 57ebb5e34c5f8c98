import type { Database } from '../snapshot/database'
import { type Picker, reviewIdAt, selectReviews } from './generate'
import { reviewSources } from './names'

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
