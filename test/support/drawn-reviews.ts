import fc from 'fast-check'
import type { OracleInput } from './oracle'
import type { ServiceContent } from './review-service'

/** What happens to a review from one read to the next; a deletion that comes first leaves nothing but its id. */
const fates = ['kept', 'changed', 'deleted', 'deleted unseen', 'changed and deleted', 'restored', 'added'] as const
type Fate = (typeof fates)[number]

/** The times at which reads find changes; all are in the past of the service. */
const readTimes = ['2026-02-10T00:00:00Z', '2026-05-10T00:00:00Z', '2026-08-10T00:00:00Z'].map((at) => Date.parse(at))
const hour = 3_600_000
const toIso = (time: number): string => new Date(time).toISOString()

/** A member that may be missing or null. */
const maybe = <A>(value: fc.Arbitrary<A>): fc.Arbitrary<A | null | undefined> =>
  fc.oneof({ weight: 8, arbitrary: value }, { weight: 1, arbitrary: fc.constantFrom(null, undefined) })
/** An integer beyond 2^53 is text with a mark, which `toText` takes away. */
const bigIntegers = ['#9007199254740993', '#9223372036854775807']
const ids = (count: number) => fc.constantFrom<number | string>(...Array.from({ length: count }, (_, i) => i + 1))

/** Mostly within three years, often at the turn of a month; sometimes a time that no review can have. */
const mentionOf = (modified: number): fc.Arbitrary<string> =>
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.integer({ min: Date.UTC(2024, 0), max: modified }).map(toIso),
    },
    {
      weight: 4,
      arbitrary: fc
        .tuple(fc.integer({ min: 0, max: 24 }), fc.integer({ min: -14 * hour, max: 14 * hour }))
        .map(([month, offset]) => toIso(Date.UTC(2024, month) + offset)),
    },
    {
      weight: 2,
      arbitrary: fc.constantFrom(
        '0001-01-01T00:00:00.000Z',
        '1899-12-31T23:00:00.000Z',
        '1989-12-31T23:59:59.999Z',
        '1990-01-01T00:00:00.000Z',
        '9999-12-31T23:59:59.999Z',
        '2025-03-01T00:30:00.000+02:00',
        '2025-02-28T19:00:00-0500',
        'yesterday',
        '',
        toIso(modified + 24 * hour),
        toIso(modified + 24 * hour + 1),
      ),
    },
  )

const scale = fc.oneof(
  { weight: 5, arbitrary: fc.integer({ min: 0, max: 10 }).map((half) => half / 2) },
  { weight: 2, arbitrary: fc.double({ min: 0, max: 5, noNaN: true }).map((value) => Math.round(value * 1000) / 1000) },
  { weight: 1, arbitrary: fc.constantFrom(0, 1.5, 2, 2.499, 2.5, 3.999, 4, 5, -1, 5.001, 7, 100) },
)
const listOf = <A>(item: fc.Arbitrary<A>, maxLength: number) => maybe(fc.array(item, { maxLength }))
const word = (...words: ReadonlyArray<string>) => fc.constantFrom(...words)
const named = (count: number, names: ReadonlyArray<string>) =>
  maybe(
    fc.record({
      id: maybe(fc.oneof({ weight: 9, arbitrary: ids(count) }, { weight: 1, arbitrary: word(...bigIntegers) })),
      name: maybe(word(...names)),
    }),
  )
export const locationNames = ['Oak Hill', ' oak hill', 'Søndre Klinik', 'Über "Quer" 7', 'a\\b\n😀', "O'Hara", '', ' ']

const sentiment = fc.record({
  id: maybe(ids(50)),
  score: maybe(scale),
  category: maybe(word('Access', ' Access ', 'Billing', '', ' ')),
  subCategory: maybe(word('Waiting', '', 'Price')),
  tonality: maybe(word('positive', 'Negative', ' neutral ', 'mixed')),
})
const liability = fc.record({
  liabilityId: maybe(ids(50)),
  severity: maybe(
    fc.record({
      level: maybe(fc.constantFrom(0, 1, 2, 3, 4)),
      name: maybe(word('low', 'Medium', ' HIGH ', 'severe')),
    }),
  ),
  categoryName: maybe(word('Negligence', 'Fraud')),
})
/** Questions, most with answers that fit. Some share a code with a question of another type. */
const questions: ReadonlyArray<readonly [code: string | null, question: string | null, type: string | null]> = [
  ['NPS', 'Recommend?', 'Promoter (Radio)'],
  ['NPS', 'Would you recommend us?', ' promoter question (RADIO) '],
  ['NPS2', 'Recommend <us>?', 'Promoter (Radio)'],
  [null, 'How was it > really?', 'Single Choice (Rating)'],
  ['STARS', 'Stars', 'Free Form (Rating)'],
  ['SLIDE', 'From bad to good', 'Single Choice (Slider)'],
  ['SCHOOL', 'Grade', 'Single Choice (Radio)'],
  ['STARS', 'Stars', 'State (Select)'],
  [null, null, 'Completion Date (Date Field)'],
  ['WHEN', '', 'Job Hire Date (Text Field)'],
  [' ', 'Tell us', 'Free Form (Text Area)'],
  ['ODD', 'Odd', 'Hologram'],
  [null, null, null],
]
const answer = fc.oneof(
  { weight: 12, arbitrary: fc.integer({ min: 1, max: 5 }).map(String) },
  { weight: 4, arbitrary: fc.integer({ min: -1, max: 11 }).map(String) },
  {
    weight: 1,
    arbitrary: word(
      ...['', ' ', ' 4 ', '4.0', '4.5', '-0', '007', '+4', '4,5', '4/5', '5 stars', '1e1', 'Infinity', '4\n', 'a text'],
      ...['2026-02-28', '2025-02-29', '2024-02-29T23:59:59.999Z', '2026-1-2', '03/04/2026', '2026-02-28 or so'],
      ...['1234567890123456', '0.12345678901234567', 'NaN', 'Yes > no'],
    ),
  },
)
/** A question of the first ones answers on its scale in many draws, so that figures have something to count. */
const asked = fc.nat({ max: 99 }).chain((n) => {
  const [code, question, type] = questions[n % (n < 60 ? 4 : questions.length)] ?? [null, null, null]
  const response = n < 60 ? fc.integer({ min: 1, max: n % 4 === 3 ? 5 : 10 }).map(String) : maybe(answer)
  const base = { questionCode: code, question, questionType: type }
  return response.map((text) => ({ ...base, response: text }))
})
const content = fc
  .tuple(
    asked,
    fc.record({
      id: maybe(ids(9)),
      sentiments: listOf(sentiment, 3),
      liabilities: listOf(liability, 2),
    }),
  )
  .map(([one, other]) => ({ ...one, ...other }))
const task = fc.record({
  id: maybe(ids(1000)),
  status: maybe(word('pending', 'completed', ' Completed ', 'COMPLETED', 'completed\t', 'in progress', '')),
  ownerName: maybe(word('Ada', 'Bo', ' Ada ', '', '  ')),
  ownerEmail: maybe(word('ada@example.org', 'bo@example.org', 'bo@example.org ', '')),
})
/** Some engagements are earlier than their review, or have no time. */
const engagementOf = (mention: string | null | undefined, modified: number) =>
  fc.record({
    engagement: maybe(word('Thank you')),
    engagementTime: maybe(
      fc
        .integer({ min: -20 * hour, max: 900 * hour })
        .map((after) =>
          toIso((mention?.startsWith('202') ? Date.parse(mention) : modified) + (after % 7 === 0 ? 0 : after)),
        ),
    ),
  })

/** One version of a review, as JSON with an `id` to be put in. */
const versionOf = (modified: number): fc.Arbitrary<Readonly<Record<string, unknown>>> =>
  maybe(mentionOf(modified)).chain((mentionTime) => {
    const engagements = listOf(engagementOf(mentionTime, modified), 3)
    return fc
      .tuple(
        fc.record({
          modifiedTime: fc.constant(toIso(modified)),
          mentionTime: fc.constant(mentionTime),
          rating: maybe(scale),
          reviewScore: maybe(scale),
          location: named(4, locationNames),
          provider: fc
            .tuple(named(3, ['Dr. A', 'Dr. B', ' Dr. B', '']), maybe(word('1000000001', '1000000002')))
            .map(([provider, npi]) => (provider == null ? provider : { ...provider, npi })),
          source: named(3, ['Survey', 'Search engine', '']),
          contents: listOf(content, 3),
          taskDetails: maybe(fc.oneof({ weight: 9, arbitrary: task }, { weight: 1, arbitrary: fc.constant({}) })),
          visitRecordId: maybe(word('', 'v1')),
        }),
        engagements,
        fc.constantFrom('engagement', 'engagements'),
      )
      .map(([review, list, name]) => ({ ...review, [name]: list }))
  })

const toText = (version: object): string => JSON.stringify(version).replace(/"#(\d+)"/g, '$1')

type DrawnReview = {
  readonly fate: Fate
  /** A version for each read. */
  readonly versions: ReadonlyArray<Readonly<Record<string, unknown>>>
}
const drawnReview: fc.Arbitrary<DrawnReview> = fc
  .record({
    fate: fc.oneof(
      { weight: 5, arbitrary: fc.constant<Fate>('kept') },
      { weight: 5, arbitrary: fc.constantFrom(...fates) },
    ),
    // Few different hours, so that reviews often change at the same instant.
    before: fc.tuple(...readTimes.map(() => fc.integer({ min: 1, max: 24 }))),
  })
  .chain(({ fate, before }) =>
    fc
      .tuple(...readTimes.map((time, i) => versionOf(time - (before[i] ?? 1) * hour)))
      .map((versions) => ({ fate, versions })),
  )

/** What the service has of a review at each of the reads, and when it was deleted. */
const historyOf = ({ fate, versions }: DrawnReview) => {
  const at = (read: number) => versions[read]
  const deletion = (read: number) => toIso((readTimes[read] ?? 0) - hour / 2)
  const none = undefined
  return {
    kept: { held: [at(0), at(0), at(0)], deletions: [[], [], []] },
    changed: { held: [at(0), at(1), at(2)], deletions: [[], [], []] },
    deleted: { held: [at(0), at(0), none], deletions: [[], [], [deletion(2)]] },
    'deleted unseen': { held: [none, none, none], deletions: [[deletion(0)], [deletion(0)], [deletion(0)]] },
    'changed and deleted': { held: [at(0), at(1), none], deletions: [[], [], [deletion(2)]] },
    restored: { held: [at(0), none, at(2)], deletions: [[], [deletion(1)], [deletion(1)]] },
    added: { held: [none, none, at(2)], deletions: [[], [], []] },
  }[fate]
}

const pickUnique = <A>(rows: ReadonlyArray<A>, keyOf: (row: A) => string | undefined): ReadonlyArray<A> => [
  ...new Map(rows.map((row, i) => [keyOf(row) ?? `#${i}`, row])).values(),
]
const regions = fc
  .array(
    fc.record({
      location_id: fc.constantFrom(null, '1', '2', '9007199254740993', '77'),
      location_name: fc.constantFrom(null, ...locationNames, 'OAK HILL '),
      region: fc.constantFrom('North', 'South', ' West'),
    }),
    { maxLength: 4 },
  )
  .map((rows) => {
    const byId = pickUnique(
      rows.filter((row) => row.location_id !== null || row.location_name !== null),
      (row) => row.location_id ?? undefined,
    )
    return pickUnique(byId, (row) => row.location_name?.trim().toLowerCase())
  })

/** Reviews as a service has them at three reads, and what the models count with. */
export type DrawnCase = Required<Omit<OracleInput, 'reviews' | 'deletions' | 'earlier'>> & {
  readonly reads: ReadonlyArray<ServiceContent>
}

export const drawnCase = (maxReviews: number): fc.Arbitrary<DrawnCase> =>
  fc
    .record({
      reviews: fc.oneof(
        {
          weight: 3,
          arbitrary: fc.array(drawnReview, { minLength: maxReviews / 2, maxLength: maxReviews, size: 'max' }),
        },
        { weight: 1, arbitrary: fc.array(drawnReview, { maxLength: 5 }) },
      ),
      // A service numbers its reviews from anywhere.
      firstId: fc.constantFrom(1n, 1_000_000n, 9_007_199_254_740_993n),
      regions,
      asOf: fc.constantFrom('2026-09-01T00:00:00Z', '2026-03-08T07:30:00Z', '2027-01-01T00:00:00Z'),
      timeZone: fc.constantFrom('UTC', 'America/New_York', 'Asia/Kolkata', 'Pacific/Auckland'),
      openDays: fc.constantFrom(0, 14, 400),
      lowScore: fc.constantFrom(1.5, 2.5),
      minReviews: fc.constantFrom(1, 5),
      minAnswers: fc.constantFrom(1, 3, 10),
      scales: fc.subarray([
        { question_id: 'SLIDE', lowest: -1, highest: 11, best: null },
        { question_id: ' SCHOOL', lowest: 1, highest: 6, best: 1 },
        { question_id: 'NPS2', lowest: 1, highest: 10, best: null },
        { question_id: 'STARS', lowest: -100, highest: 100, best: 5 },
        { question_id: 'Unknown', lowest: 0, highest: 1, best: null },
      ]),
    })
    .map(({ reviews, firstId, asOf, ...settings }) => {
      const histories = reviews.map((review, i) => ({ id: firstId + BigInt(i), ...historyOf(review) }))
      const reads = readTimes.map((_, read) => ({
        reviews: histories.flatMap(({ id, held }) =>
          held[read] === undefined ? [] : [toText({ id: `#${id}`, ...held[read] })],
        ),
        deletions: histories.flatMap(({ id, deletions }) =>
          (deletions[read] ?? []).map((modifiedTime) => ({ id: String(id), modifiedTime })),
        ),
      }))
      return { reads, asOf: Date.parse(asOf), ...settings }
    })
