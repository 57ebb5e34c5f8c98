import type { Database } from '../../snapshot/store'
import { nameHash, phraseForRating, type SeedOptions, wordCount } from './generate'
import { operatorAnswers } from './vocabulary'

/**
 * What makes the months of generated reviews differ. `none`: nothing but chance and time. `planted`: the last full
 * month also has the changes of `plantedChanges`.
 */
export const trends = ['none', 'planted'] as const
export type Trend = (typeof trends)[number]

type TrendOptions = Pick<SeedOptions, 'seed' | 'until'> & { readonly trend: Trend }

/** What changes in the planted month, and at which location or source. */
export const plantedChanges = {
  /** Ratings fall at one location and rise at another. */
  worseLocation: 1001,
  betterLocation: 1002,
  /** The tasks of one source are closed late; the reviews of another are answered late. */
  lateClosings: 202,
  lateAnswers: 203,
} as const

const dayMs = 86_400_000

/** SQL that is true for the reviews of the last full month before a time, in UTC. */
const isOfLastMonth = (until: number): string => {
  const date = new Date(until)
  const [from, to] = [-1, 0].map((months) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months))
  return `(epoch_ms(mention) >= ${from} AND epoch_ms(mention) < ${to})`
}

/** Makes SQL for a number between 0 and 1 that depends on the seed, a name and the review. */
const createUniform =
  (seed: number) =>
  (name: string): string =>
    `((hash(xor(id, ${nameHash(`${seed} ${name}`)})) % 1000000 + 0.5) / 1000000)`

/**
 * Makes answers and closings come a random time after the mention, the same in every month. Those after `until` have
 * not happened yet. A review was modified when the last of them happened.
 */
const eventsSql = ({ seed, until, trend }: TrendOptions): string => {
  const uniform = createUniform(seed)
  const isPlanted = trend === 'planted' ? isOfLastMonth(until) : 'false'
  const later = (name: string, lateSource: number) => {
    const meanDays = `if(source_id = ${lateSource} AND ${isPlanted}, 40, 3)`
    return `epoch_ms(mention) - (ln(${uniform(name)}) * ${meanDays} * ${dayMs})::BIGINT`
  }
  return `
    UPDATE review SET
      modified = epoch_ms(greatest(arrived, answered_at, closed_at)),
      answer = if(answered_at IS NULL, NULL, floor(${uniform('words')} * ${operatorAnswers.length})::INTEGER),
      answered = epoch_ms(answered_at),
      task_status = if(task_id IS NULL, NULL, if(closed_at IS NULL, 'pending', 'completed'))
    FROM (
      SELECT id AS event_id, arrived, if(answered_at <= ${until}, answered_at, NULL) AS answered_at,
        if(closed_at <= ${until}, closed_at, NULL) AS closed_at
      FROM (
        SELECT id, least(${until}, epoch_ms(mention) + (${uniform('arrived')} * ${dayMs})::BIGINT) AS arrived,
          if(${uniform('is answered')} < 0.6, ${later('answered', plantedChanges.lateAnswers)}, NULL) AS answered_at,
          if(task_id IS NOT NULL AND ${uniform('is closed')} < 0.9,
            ${later('closed', plantedChanges.lateClosings)}, NULL) AS closed_at
        FROM review)
    ) AS event
    WHERE event_id = id`
}

/** Gives the planted month's reviews of one location different ratings, and words that suit them. */
const ratingsSql = (location: number, stars: ReadonlyArray<number>, { seed, until }: TrendOptions): string => {
  const uniform = createUniform(seed)
  const hash = (name: string) => `floor(${uniform(name)} * 1000000)::BIGINT`
  return `
    UPDATE review SET
      rating = if(rating = 0, 0, stars),
      first_phrase = if(first_phrase IS NULL, NULL, ${phraseForRating('stars', hash('first'))}),
      second_phrase = if(second_phrase IS NULL, NULL, ${phraseForRating('stars', hash('second'))}),
      third_phrase = NULL
    FROM (
      SELECT id AS drawn_id, [${stars.join(', ')}][1 + floor(${uniform('stars')} * ${stars.length})::BIGINT] AS stars
      FROM review
    ) AS drawn
    WHERE drawn_id = id AND location_id = ${location} AND ${isOfLastMonth(until)};
    UPDATE review SET words = ${wordCount('first_phrase', 'second_phrase', 'third_phrase')}
    WHERE location_id = ${location} AND ${isOfLastMonth(until)}`
}

/** Changes generated reviews so that they have this trend. */
export const applyTrend = async (database: Database, options: TrendOptions): Promise<void> => {
  await database.run(eventsSql(options))
  if (options.trend === 'none') return
  await database.run(ratingsSql(plantedChanges.worseLocation, [1, 1, 1, 1, 2, 2, 3, 4], options))
  await database.run(ratingsSql(plantedChanges.betterLocation, [5, 5, 5, 5, 5, 5, 5, 4], options))
}
