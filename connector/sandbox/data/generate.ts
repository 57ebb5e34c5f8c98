import { type Database, quoteLiteral } from '../../snapshot/store'
import { indexDefinitions, tableDefinitions } from './review-tables'
import {
  brandNames,
  firstNames,
  lastNames,
  liabilities,
  locationKinds,
  operatorAnswers,
  ownerCount,
  phrases,
  regionNames,
  reviewSources,
  townNames,
} from './vocabulary'

/** Numbers of generated locations and providers. */
type DimensionCounts = { readonly locations: number; readonly providers: number }

type DimensionValue = string | number | boolean

const insertRows = (table: string, values: ReadonlyArray<ReadonlyArray<DimensionValue | null>>): string =>
  values.length === 0
    ? ''
    : `INSERT INTO ${table} VALUES ${values
        .map(
          (row) =>
            `(${row.map((field) => (typeof field === 'string' ? quoteLiteral(field) : String(field))).join(', ')})`,
        )
        .join(', ')};`

const itemAt = <A>(list: ReadonlyArray<A>, index: number): A => {
  const item = list[index % list.length]
  if (item === undefined) throw new Error('the list is empty')
  return item
}

const indexRange = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, index) => index)

const locationValues = (n: number): ReadonlyArray<DimensionValue | null> => {
  const [kind, avatarType] = itemAt(locationKinds, n + Math.floor(n / townNames.length))
  const repetition = Math.floor(n / (townNames.length * locationKinds.length))
  const name = `${itemAt(townNames, n)} ${kind}${repetition === 0 ? '' : ` ${repetition + 1}`}`
  return [
    1001 + n,
    `LOC-${1001 + n}`,
    'INTERNAL',
    name,
    true,
    80_001 + n,
    avatarType,
    10 + (n % regionNames.length),
    60 + (n % brandNames.length),
    null,
  ]
}

const providerValues = (n: number): ReadonlyArray<DimensionValue> => [
  500_001 + n,
  `${itemAt(firstNames, n)} ${itemAt(lastNames, n * 7 + Math.floor(n / firstNames.length))}, ` +
    (n % 5 === 0 ? 'NP' : 'MD'),
  String(1_234_567_893 + n * 101),
]

/** Inserts the sources, regions and brands, which are always the same. */
export const seedConstants = (database: Database): Promise<void> =>
  database.run(
    [
      insertRows('source', reviewSources),
      insertRows(
        'region',
        regionNames.map((name, n) => [10 + n, name]),
      ),
      insertRows(
        'brand',
        brandNames.map((name, n) => [60 + n, name]),
      ),
    ].join('\n'),
  )

/** Inserts sources, regions, brands, and so many locations and providers; the same counts give the same rows. */
const seedDimensions = async (database: Database, counts: DimensionCounts): Promise<void> => {
  await seedConstants(database)
  await database.run(insertRows('location', indexRange(counts.locations).map(locationValues)))
  await database.run(insertRows('provider', indexRange(counts.providers).map(providerValues)))
}

const surveySourceId = reviewSources[0]?.[0] ?? 0

/** SQL for the number of a phrase with this tonality, chosen by a hash. */
const tonalityPhrase = (tonality: string, hash: string): string =>
  `${phrases.findIndex((phrase) => phrase.tonality === tonality)} + ${hash} ` +
  `% ${phrases.filter((phrase) => phrase.tonality === tonality).length}`

/** SQL for the number of a phrase that suits a rating of 1 to 5. */
export const phraseForRating = (rating: string, hash: string): string => `(CASE
    WHEN ${rating} >= 4 THEN ${tonalityPhrase('positive', hash)}
    WHEN ${rating} = 3 THEN ${tonalityPhrase('neutral', hash)}
    ELSE ${tonalityPhrase('negative', hash)} END)::INTEGER`

/** SQL for the number of words in the phrases with these numbers; null counts 0 words. */
export const wordCount = (...numbers: ReadonlyArray<string>): string => {
  const lengths = phrases.map((phrase) => phrase.sentence.split(' ').length).join(', ')
  return numbers.map((number) => `coalesce([${lengths}][1 + ${number}], 0)`).join(' + ')
}

/** SQL for the id of the review at a position. Every fifth id is beyond 2^53, where a double is not exact. */
export const reviewIdAt = (position: string): string =>
  `(CASE WHEN ${position} % 5 = 0 THEN 9007199254740993 ELSE 700000001 END + 15 * ${position})::BIGINT`

/** Makes SQL for a number from 0 to n-1 that depends on the seed, a name and the review's position `i`. */
const createPicker =
  (seed: number) =>
  (name: string, n: number): string =>
    `(hash(xor(i, ${nameHash(`${seed} ${name}`)})) % ${n})::BIGINT`

/** FNV-1a hash of a name in 50 bits; DuckDB's hashes of several columns are not independent of each other. */
export const nameHash = (text: string): bigint =>
  [...text].reduce(
    (hash, letter) => ((hash ^ BigInt(letter.codePointAt(0) ?? 0)) * 1_099_511_628_211n) & ((1n << 50n) - 1n),
    14_695_981_039n,
  )

/**
 * When the review at position `i` arrived and when it was modified: SQL expressions in milliseconds; `modified` may use
 * `arrived`.
 */
type ReviewTimes = { readonly arrived: string; readonly modified: string }

/** Makes SQL for a number from 0 to n-1 that is independent for each name. */
export type Picker = ReturnType<typeof createPicker>

/** SQL that chooses the id of a location, and of a provider. */
type IdPools = { readonly location: (pick: Picker) => string; readonly provider: (pick: Picker) => string }

const createIdPools = ({ locations, providers }: DimensionCounts): IdPools => ({
  location: (pick) => `1001 + ${pick('location', locations)}`,
  provider: (pick) => `500001 + ${pick('provider', providers)}`,
})

/**
 * SQL for the reviews at positions `from` to `to` - 1, with the columns of the table `review`. The same seed,
 * positions, times and pools give the same rows.
 */
export const selectReviews = (seed: number, from: number, to: number, times: ReviewTimes, pools: IdPools): string => {
  const pick = createPicker(seed)
  return `
WITH arrival AS (
  SELECT i, (${times.arrived})::BIGINT AS arrived FROM range(${from}, ${to}) AS t(i)
), choice AS (
  SELECT i, arrived, (${times.modified})::BIGINT AS modified,
    [${reviewSources.map(([id]) => id).join(', ')}][1 + ${pick('source', reviewSources.length)}] AS source_id,
    [5, 5, 5, 4, 4, 3, 2, 1, 1][1 + ${pick('rating', 9)}] AS stars,
    ${pick('phrases', 4)} AS phrases, ${pick('task', 12)} AS task, ${pick('answer', 6)} AS answer_number
  FROM arrival
), written AS (
  SELECT *, source_id = ${surveySourceId} AS is_survey, task = 0 OR (stars < 3 AND task < 6) AS has_task,
    CASE WHEN phrases > 0 THEN ${phraseForRating('stars', pick('first', 1 << 20))} END AS one,
    CASE WHEN phrases > 1 THEN ${phraseForRating('stars', pick('second', 1 << 20))} END AS two,
    CASE WHEN phrases > 2 THEN ${pick('third', phrases.length)}::INTEGER END AS three
  FROM choice
)
SELECT
  ${reviewIdAt('i')} AS id,
  CASE WHEN is_survey THEN 'SB' || (1000000003 + 7 * i) END AS survey_bar_code,
  source_id,
  ${pools.location(pick)} AS location_id,
  CASE WHEN ${pick('provided', 8)} > 0 THEN ${pools.provider(pick)} END AS provider_id,
  epoch_ms(arrived - 1000 * ${pick('lag', 86_400)}) AS mention,
  epoch_ms(modified) AS modified,
  CASE WHEN ${pick('rated', 20)} = 0 THEN 0 ELSE stars END AS rating,
  CASE WHEN is_survey THEN greatest(1, stars - ${pick('staff', 2)}) END AS staff_rating,
  CASE WHEN is_survey THEN least(5, stars + ${pick('access', 2)}) END AS access_rating,
  one AS first_phrase, two AS second_phrase, three AS third_phrase,
  ${wordCount('one', 'two', 'three')} AS words,
  CASE WHEN stars < 3 AND phrases > 0 AND ${pick('liable', 3)} = 0
    THEN ${pick('liability', liabilities.length)} END AS liability,
  CASE WHEN has_task THEN 3000001 + i END AS task_id,
  CASE WHEN has_task THEN ['pending', 'completed'][1 + ${pick('closed', 2)}] END AS task_status,
  CASE WHEN has_task THEN ${pick('owner', ownerCount)} END AS task_owner,
  CASE WHEN answer_number = 0 THEN ${pick('words', operatorAnswers.length)} END AS answer,
  CASE WHEN answer_number = 0
    THEN epoch_ms(greatest(arrived, modified - 60000 * ${pick('answered', 60)})) END AS answered,
  CASE WHEN is_survey AND ${pick('visit', 3)} > 0 THEN 'VR-' || (20000001 + i) ELSE '' END AS visit_record_id,
  NULL AS original, NULL AS original_brand, NULL AS original_comment
FROM written`
}

/** How to generate the data; the same values give the same data. */
export type SeedOptions = DimensionCounts & {
  readonly reviews: number
  readonly seed: number
  /**
   * How many successive reviews a bulk change modifies at once. A quarter of the reviews belong to such a group with
   * the same modifiedTime.
   */
  readonly batch: number
  /** How many years the reviews cover. */
  readonly years: number
  /** The newest time in the data, in milliseconds since 1970. */
  readonly until: number
}

const yearMs = 365.25 * 86_400_000

/** Creates all tables and fills them with generated data in a few set operations. */
export const seedDatabase = async (database: Database, data: SeedOptions): Promise<void> => {
  await database.run(tableDefinitions)
  await seedDimensions(database, data)
  // The rows of a page are stored together, since the exports are read in the order of this time.
  const reviews = selectReviews(data.seed, 0, data.reviews, createReviewTimes(data), createIdPools(data))
  await database.run(`INSERT INTO review ${reviews} ORDER BY modified, id`)
  await database.run(`INSERT INTO deleted ${selectDeletions(data)}`)
  await database.run(`INSERT INTO setting VALUES ('seed', ${data.seed}), ('next', ${data.reviews})`)
  await database.run(indexDefinitions)
}

/** Reviews arrive evenly over the years; they are modified soon after, much later, or in bulk. */
const createReviewTimes = ({ reviews, seed, batch, years, until }: SeedOptions) => {
  const pick = createPicker(seed)
  const start = until - years * yearMs
  const gap = (years * yearMs) / Math.max(1, reviews)
  const group = `(i // ${batch})`
  return {
    arrived: `${start} + (i + ${pick('jitter', 1000)} / 1000.0) * ${gap}`,
    modified: `CASE
      WHEN hash(${group} + ${seed * 7919}) % 4 = 0 THEN least(${until}, ${start} + (${group} + 1) * ${batch} * ${gap})
      WHEN ${pick('late', 10)} < 6 THEN least(${until}, arrived + 1000 * ${pick('soon', 3_600)})
      ELSE arrived + (${until} - arrived) * (${pick('when', 1_000_000)} / 1000000.0) END`,
  }
}

/** SQL for the deleted reviews, one for every fifty reviews. Each has an id between two ids in use. */
const selectDeletions = ({ reviews, seed, years, until }: SeedOptions): string => {
  const pick = createPicker(seed)
  const count = Math.floor(reviews / 50)
  const gap = (years * yearMs) / Math.max(1, count)
  const sourceIds = reviewSources.map(([id]) => id).join(', ')
  return `
    SELECT
      ${reviewIdAt('(50 * i)')} + 7,
      [${sourceIds}][1 + ${pick('deleted', reviewSources.length)}],
      epoch_ms((${until - years * yearMs} + (i + ${pick('deletion', 1000)} / 1000.0) * ${gap})::BIGINT)
    FROM range(${count}) AS t(i)`
}
