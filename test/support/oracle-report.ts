import {
  expectedModels,
  groupBy,
  list,
  type ModelRow,
  mean,
  type OracleInput,
  parse,
  present,
  rounded,
  roundHalves,
  share,
} from './oracle'
import { expectedScorecards } from './oracle-scorecards'

/** What a report must say, computed from the texts of the reviews: shares no code with it. */

type Value = number | null
type Figure = {
  readonly value: Value
  readonly previous: Value
  readonly change: Value
  readonly test?: {
    readonly n: number
    readonly previous_n: number
    readonly p: Value
    readonly mark: string | null
    readonly range?: ReadonlyArray<number>
    readonly previous_range?: ReadonlyArray<number>
  }
}
type Group = { readonly id: string; readonly figures: Readonly<Record<string, Figure>> }

const day = 86_400_000
const milliseconds = (value: ModelRow[string] | undefined): number => Date.parse(String(value))

const choose = (n: number, k: number): bigint => {
  let result = 1n
  for (let i = 1; i <= k; i += 1) result = (result * BigInt(n - k + i)) / BigInt(i)
  return k < 0 || k > n ? 0n : result
}

/** The share of the tables with these sums that are at most as probable as this one, counted in whole numbers. */
export const fisher = (a: number, n: number, b: number, m: number): number => {
  const ways: bigint[] = []
  for (let k = 0; k <= a + b; k += 1) ways.push(choose(n, k) * choose(m, a + b - k))
  const own = ways[a] ?? 0n
  const few = ways.filter((count) => count <= own).reduce((total, count) => total + count, 0n)
  return Number((few * 10n ** 18n) / choose(n + m, a + b)) / 1e18
}

/** The share of Student's distribution beyond ±t, by Simpson's rule over the angle whose tangent is t / √freedom. */
export const student = (t: number, freedom: number): number => {
  const integrate = (from: number): number => {
    const steps = 20_000
    const width = (Math.PI / 2 - from) / steps
    let total = 0
    for (let i = 0; i <= steps; i += 1)
      total += Math.cos(from + i * width) ** (freedom - 1) * (i === 0 || i === steps ? 1 : i % 2 === 1 ? 4 : 2)
    return (total * width) / 3
  }
  return integrate(Math.atan(t / Math.sqrt(freedom))) / integrate(0)
}

const studentTest = (a: ReadonlyArray<number>, b: ReadonlyArray<number>): number => {
  const [first, second] = [mean(a) ?? 0, mean(b) ?? 0]
  if (Math.abs(first - second) < 1e-9) return 1
  const squares = (values: ReadonlyArray<number>, middle: number) =>
    values.reduce((total, value) => total + (value - middle) ** 2, 0)
  const deviation = Math.sqrt((squares(a, first) + squares(b, second)) / (a.length + b.length - 2))
  const t = Math.abs(first - second) / (deviation * Math.sqrt(1 / a.length + 1 / b.length))
  return Number.isFinite(t) ? student(t, a.length + b.length - 2) : 0
}

/** For each review, if it counts; null if unknown. */
type Counted = ReadonlyArray<boolean | null>
const countAt = (counted: Counted, unknown: boolean) => counted.filter((one) => one ?? unknown).length

const subtract = (value: Value, previous: Value): Value =>
  value === null || previous === null ? null : Math.round((value - previous) * 100) / 100

const plain = (value: Value, previous: Value): Figure => ({ value, previous, change: subtract(value, previous) })

const compareShares = (value: Counted, previous: Counted, better: 'higher' | 'lower', isJudged: boolean): Figure => {
  const [low, high] = [countAt(value, false), countAt(value, true)]
  const [lowBefore, highBefore] = [countAt(previous, false), countAt(previous, true)]
  const [n, m] = [value.length, previous.length]
  const shares = [low / n, high / n, lowBefore / m, highBefore / m] as const
  const isLower = shares[1] < shares[2]
  const isHigher = shares[0] > shares[3]
  const chance = isLower ? fisher(high, n, lowBefore, m) : isHigher ? fisher(low, n, highBefore, m) : 1
  const p = isJudged && n >= 10 && m >= 10 ? chance : null
  const figure = plain(low === high ? share(low, n) : null, lowBefore === highBefore ? share(lowBefore, m) : null)
  const digits = (number: number) => roundHalves(number, 2)
  return {
    ...figure,
    test: {
      ...{ n, previous_n: m, p },
      mark: p === null || figure.change === 0 ? null : isHigher === (better === 'higher') ? 'better' : 'worse',
      ...(low === high ? {} : { range: [digits(shares[0]), digits(shares[1])] }),
      ...(lowBefore === highBefore ? {} : { previous_range: [digits(shares[2]), digits(shares[3])] }),
    },
  }
}

const compareAverages = (value: ReadonlyArray<number>, previous: ReadonlyArray<number>, isJudged: boolean): Figure => {
  const figure = plain(rounded(mean(value), 2), rounded(mean(previous), 2))
  const p = isJudged && value.length >= 10 && previous.length >= 10 ? studentTest(value, previous) : null
  const isBetter = (mean(value) ?? 0) > (mean(previous) ?? 0)
  const mark = p === null || figure.change === 0 ? null : isBetter ? 'better' : 'worse'
  return { ...figure, test: { n: value.length, previous_n: previous.length, p, mark } }
}

/** When each task was first closed, and if it was known before, from all versions that were read. */
const closings = (versions: ReadonlyArray<string>) => {
  const known = new Map<string, { first: number; closed: number }>()
  for (const json of versions) {
    const review = parse(json)
    const at = Date.parse(String(review.modifiedTime))
    const { status } = (review.taskDetails ?? {}) as { readonly status?: unknown }
    const isClosed = typeof status === 'string' && status.replace(/^ +| +$/g, '').toLowerCase() === 'completed'
    const one = known.get(String(review.id)) ?? { first: Number.POSITIVE_INFINITY, closed: Number.POSITIVE_INFINITY }
    known.set(String(review.id), {
      first: Math.min(one.first, at),
      closed: isClosed ? Math.min(one.closed, at) : one.closed,
    })
  }
  return known
}

type Options = {
  readonly month: string
  readonly previous: string
  /** When the reviews were read. */
  readonly readAt: string
  readonly isOver: boolean
  readonly hasRegions: boolean
}

/** The judged figures of some reviews of the month, and of some of the month before. */
const createJudge = (input: OracleInput, { readAt, isOver }: Options) => {
  const known = closings([...input.earlier, ...input.reviews].map(({ json }) => json))
  const had = (days: number) => (row: ModelRow) => milliseconds(row.mention_time) + days * day <= Date.parse(readAt)
  const wasAnswered = (days: number) => (row: ModelRow) =>
    row.first_response_time !== null &&
    milliseconds(row.first_response_time) <= milliseconds(row.mention_time) + days * day
  const wasClosed = (days: number) => (row: ModelRow) => {
    const { first = 0, closed = Number.POSITIVE_INFINITY } = known.get(String(row.review_id)) ?? {}
    if (closed === Number.POSITIVE_INFINITY) return false
    if (closed <= milliseconds(row.mention_time) + days * day) return true
    return first < closed ? false : null
  }
  const judges: Readonly<Record<string, (rows: ReadonlyArray<ModelRow>, before: ReadonlyArray<ModelRow>) => Figure>> = {
    average_rating: (rows, before) => {
      const ratings = (of: ReadonlyArray<ModelRow>) => present(of.map(({ rating }) => rating as Value))
      return compareAverages(ratings(rows), ratings(before), isOver)
    },
    share_negative: (rows, before) => {
      const count = (of: ReadonlyArray<ModelRow>) =>
        of.filter(({ sentiment }) => sentiment !== null).map(({ sentiment }) => sentiment === 'negative')
      return compareShares(count(rows), count(before), 'lower', isOver)
    },
    ...Object.fromEntries(
      [7, 30].flatMap((days) => [
        [
          `share_answered_${days}`,
          (rows: ReadonlyArray<ModelRow>, before: ReadonlyArray<ModelRow>) => {
            const count = (of: ReadonlyArray<ModelRow>) => of.filter(had(days)).map(wasAnswered(days))
            return compareShares(count(rows), count(before), 'higher', isOver)
          },
        ],
        [
          `share_closed_${days}`,
          (rows: ReadonlyArray<ModelRow>, before: ReadonlyArray<ModelRow>) => {
            const count = (of: ReadonlyArray<ModelRow>) =>
              of.filter((row) => row.task === 1 && had(days)(row)).map(wasClosed(days))
            return compareShares(count(rows), count(before), 'higher', isOver)
          },
        ],
      ]),
    ),
  }
  return (names: ReadonlyArray<string>, rows: ReadonlyArray<ModelRow>, before: ReadonlyArray<ModelRow>) =>
    Object.fromEntries(
      names.flatMap((name) => (judges[name] === undefined ? [] : [[name, judges[name](rows, before)]])),
    )
}

const responses = ['share_answered_7', 'share_answered_30', 'share_closed_7', 'share_closed_30']
const allJudged = ['average_rating', 'share_negative', ...responses]

const allFigures = [
  ...['reviews', 'rated', 'average_rating', 'average_score', 'positive', 'neutral', 'negative', 'share_negative'],
  ...['tasks', 'open_tasks', 'closed_tasks', 'share_closed', 'answered', 'share_answered', 'median_hours_to_answer'],
  ...['open_liabilities', 'oldest_open_days'],
]

/** The columns of the models that are not figures. */
const names = ['scope', 'key', 'name', 'month', 'region', 'location_id', 'location_name', 'source_id', 'source_name']
const otherNames = ['owner_name', 'owner_email', 'provider_id', 'provider_name', 'provider_npi', 'category']
const isFigure = (column: string): boolean => ![...names, ...otherNames, 'sub_category'].includes(column)

type Section = {
  readonly rows: ReadonlyArray<ModelRow>
  readonly before: ReadonlyArray<ModelRow>
  readonly identify: (row: ModelRow) => string
  /** What the samples of a group are counted from. */
  readonly counted: ReadonlyArray<ModelRow>
  readonly judged: ReadonlyArray<string>
}

/** Benjamini and Hochberg, from the greatest probability down. */
const findLimit = (probabilities: ReadonlyArray<number>): number => {
  const sorted = probabilities.toSorted((a, b) => b - a)
  return sorted.find((p, i) => p * sorted.length <= 0.05 * (sorted.length - i)) ?? -1
}

type Models = ReturnType<typeof expectedModels>

/** The inputs of the sections; `own` and `before`: the models over the reviews of a single month. */
const listSections = (
  [month, previous]: readonly [string, string],
  { models, own, before, remarks }: { models: Models; own: Models; before: Models; remarks: ReadonlyArray<ModelRow> },
): Readonly<Record<string, Section>> => {
  const facts = models.review_facts ?? []
  const monthly = (name: string, identify: Section['identify'], judged = allJudged, counted = facts): Section => ({
    rows: (models[name] ?? []).filter((row) => row.month === month),
    before: (models[name] ?? []).filter((row) => row.month === previous),
    ...{ identify, judged, counted },
  })
  const focused = (name: string, identify: Section['identify'], judged: ReadonlyArray<string>): Section => ({
    rows: own[name] ?? [],
    before: before[name] ?? [],
    ...{ identify, judged, counted: facts },
  })
  const category = (row: ModelRow) => JSON.stringify([row.category, row.sub_category])
  return {
    regions: monthly('region_monthly', (row) => String(row.region)),
    owners: {
      ...focused('owner_scorecard', (row) => JSON.stringify([row.owner_name, row.owner_email]), responses),
      counted: facts.filter(({ task }) => task === 1),
    },
    locations: monthly('location_monthly', (row) => String(row.location_id)),
    sources: monthly('source_monthly', (row) => String(row.source_id)),
    providers: focused('provider_scorecard', (row) => String(row.provider_id), ['average_rating', 'share_negative']),
    categories: monthly('sentiment_by_category_monthly', category, ['share_negative'], remarks),
    deleted_reviews: monthly('deleted_reviews_by_source', (row) => String(row.source_id), []),
  }
}

const isCount = (name: string): boolean => !/^(average|share|median|oldest|rating)_/.test(name)

/** The groups of a section; without a row a count is 0, and anything else is not known. */
const readGroups = (
  { rows, before, identify, counted, judged }: Section,
  [month, previous]: readonly [string, string],
  judge: ReturnType<typeof createJudge>,
): ReadonlyArray<Group> => {
  const columns = Object.keys(rows[0] ?? before[0] ?? {}).filter(isFigure)
  return [...new Set([...rows, ...before].map(identify))].map((id) => {
    const [row, rowBefore] = [rows, before].map((all) => all.find((one) => identify(one) === id))
    const read = (from: ModelRow | undefined, name: string) =>
      from === undefined ? (isCount(name) ? 0 : null) : (from[name] as Value)
    const ofGroup = (of: string) => counted.filter((one) => one.month === of && identify(one) === id)
    const figures = columns.map((name) => [name, plain(read(row, name), read(rowBefore, name))] as const)
    return { id, figures: { ...Object.fromEntries(figures), ...judge(judged, ofGroup(month), ofGroup(previous)) } }
  })
}

/** A figure for all reviews. In the first month of the data, nothing is known about the month before. */
const compareAll = (models: Models, [month, previous]: readonly [string, string], metric: string): Figure => {
  const rowOf = (of: string) =>
    (models.month_over_month ?? []).find((row) => row.scope === 'all' && row.month === of && row.metric === metric)
  const none = isCount(metric) ? 0 : null
  const [row, rowBefore] = [rowOf(month), rowOf(previous)]
  if (row !== undefined) return plain(row.value as Value, row.previous_value as Value)
  return plain(none, rowBefore === undefined ? none : (rowBefore.value as Value))
}

/** Takes the mark of every change that is not outside chance. */
const markAll = (own: Group['figures'], limit: number): Group['figures'] =>
  Object.fromEntries(
    Object.entries(own).map(([name, figure]) => {
      const isOutside = figure.test?.p != null && figure.test.p <= limit
      return [
        name,
        figure.test === undefined || isOutside ? figure : { ...figure, test: { ...figure.test, mark: null } },
      ]
    }),
  )

/** The figures of all reviews and of the groups of each section, and the lists and curves. */
export const expectedReport = (input: OracleInput, options: Options) => {
  const months = [`${options.month}-01`, `${options.previous}-01`] as const
  const models = expectedModels(input)
  const facts = models.review_facts ?? []
  const monthById = new Map(facts.map((row) => [String(row.review_id), row.month]))
  const focus = (of: string) =>
    expectedModels({
      ...input,
      reviews: input.reviews.filter(({ json }) => monthById.get(String(parse(json).id)) === of),
    })
  const judge = createJudge(input, options)
  const inMonth = (of: string) => facts.filter((row) => row.month === of)
  const figures: Group['figures'] = {
    ...Object.fromEntries(allFigures.map((metric) => [metric, compareAll(models, months, metric)])),
    ...judge(allJudged, inMonth(months[0]), inMonth(months[1])),
  }
  const given = { models, own: focus(months[0]), before: focus(months[1]), remarks: listRemarks(input, facts) }
  const groups = Object.entries(listSections(months, given)).map(
    ([name, section]) => [name, readGroups(section, months, judge)] as const,
  )
  const isJudged = (name: string) => name !== 'regions' || options.hasRegions
  const judged = groups.flatMap(([name, rows]) => (isJudged(name) ? rows : []))
  const probabilities = [figures, ...judged.map((group) => group.figures)].flatMap((own) =>
    present(Object.values(own).map(({ test }) => test?.p ?? null)),
  )
  const limit = findLimit(probabilities)
  return {
    figures: markAll(figures, limit),
    compared: probabilities.length,
    groups: Object.fromEntries(
      groups.map(([name, rows]) => [
        name,
        rows.map(({ id, figures: own }) => ({ id, figures: isJudged(name) ? markAll(own, limit) : own })),
      ]),
    ),
    ...expectedLists(models, months, monthById),
    ...expectedCounts(input, options, facts),
    trend: groupBy(
      facts.filter((row) => row.month !== null && String(row.month) <= months[0]),
      (row) => [row.month ?? null],
    ).map((rows) => ({
      month: String(rows[0]?.month).slice(0, 7),
      reviews: rows.length,
      average_rating: rounded(mean(rows.map(({ rating }) => rating as Value)), 2),
      share_answered_7: judge(['share_answered_7'], rows, []).share_answered_7?.value ?? null,
    })),
  }
}

/** The ids of alerts and open tasks, in their order. */
const expectedLists = (
  models: Models,
  [month]: readonly [string, string],
  monthById: ReadonlyMap<string, ModelRow[string] | undefined>,
) => {
  const alerts = (models.critical_alerts ?? []).map(
    (row): ModelRow => ({
      ...row,
      month: monthById.get(String(row.review_id)) ?? null,
    }),
  )
  return {
    alerts: {
      total: alerts.length,
      listed: sortAlerts(alerts.filter((row) => row.month === month)),
      backlog: sortAlerts(alerts.filter((row) => row.month !== month)),
    },
    open_tasks: (models.review_tasks_open ?? [])
      .toSorted((a, b) => Number(b.age_days ?? -1) - Number(a.age_days ?? -1) || compareIds(a.review_id, b.review_id))
      .map((row) => String(row.review_id)),
  }
}

/** What the charts show, and the ratings of locations. */
const expectedCounts = (input: OracleInput, options: Options, facts: ReadonlyArray<ModelRow>) => {
  const scorecards = expectedScorecards(input)
  const countBoth = (test: (row: ModelRow) => boolean) =>
    [options.month, options.previous].map((of) => facts.filter((row) => row.month === `${of}-01` && test(row)).length)
  return {
    ratings: ['5', '4', '3', '2', '1'].map((star) => [
      star,
      ...countBoth(({ rating }) => rating !== null && toStar(Number(rating)) === star),
    ]),
    response_times: responseBounds.map(([name, from, to]) => [
      name,
      ...countBoth((row) => isWithin7Days(row, options.readAt) && isAnsweredBetween(row, from, to)),
    ]),
    location_estimates: (scorecards.location_scorecard ?? [])
      .toSorted(
        (a, b) =>
          Number(b.rating_low ?? -1) - Number(a.rating_low ?? -1) ||
          Number(b.reviews) - Number(a.reviews) ||
          compareIds(a.location_id, b.location_id),
      )
      .map((row) => [
        ...[String(row.location_id), row.location_name, row.reviews, row.rated, row.average_rating],
        ...[row.rating_estimate, row.rating_low, row.rating_high],
      ]),
    open_liabilities: countLiabilities(scorecards.open_liabilities ?? []),
  }
}

const compareIds = (a: ModelRow[string] | undefined, b: ModelRow[string] | undefined): number =>
  BigInt(String(a)) < BigInt(String(b)) ? -1 : 1

const toStar = (rating: number): string => String(Math.min(5, Math.max(1, roundHalves(rating, 0))))

/** The hours from which, and up to which, an answer counts. */
const responseBounds: ReadonlyArray<readonly [name: string, from: number, to: number]> = [
  ['< 1 h', Number.NEGATIVE_INFINITY, 1],
  ['1–4 h', 1, 4],
  ['4–24 h', 4, 24],
  ['1–3 d', 24, 72],
  ['3–7 d', 72, 168],
  ['later or never', 168, Number.POSITIVE_INFINITY],
]

const isWithin7Days = (row: ModelRow, readAt: string): boolean =>
  milliseconds(row.mention_time) + 7 * day <= Date.parse(readAt)

const isAnsweredBetween = (row: ModelRow, from: number, to: number): boolean => {
  if (row.first_response_time === null) return to === Number.POSITIVE_INFINITY
  const hours = (milliseconds(row.first_response_time) - milliseconds(row.mention_time)) / 3_600_000
  return hours >= from && hours < to
}

/** Open liabilities by category, each with how many are high, medium, low and of another severity. */
const countLiabilities = (
  rows: ReadonlyArray<ModelRow>,
): ReadonlyArray<ReadonlyArray<ModelRow[string] | undefined>> => {
  const levels = ['high', 'medium', 'low']
  const gradeOf = ({ severity_level, severity }: ModelRow) => {
    const word = String(severity ?? '').toLowerCase()
    const grade = levels.findIndex((name, i) => severity_level === 3 - i || word === name)
    return levels[grade] ?? 'other'
  }
  const clean = ({ category }: ModelRow) => String(category ?? '').replace(/^ +| +$/g, '') || null
  return groupBy(rows, (row) => [clean(row)])
    .map((group) => {
      const count = (grade: string) => group.filter((row) => gradeOf(row) === grade).length
      const [first] = group
      return [first === undefined ? null : clean(first), ...[...levels, 'other'].map(count)]
    })
    .toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
}

/** One row for each category of each review, saying if the review is negative about it. */
const listRemarks = (input: OracleInput, facts: ReadonlyArray<ModelRow>): ReadonlyArray<ModelRow> => {
  const factsById = new Map(facts.map((row) => [String(row.review_id), row]))
  const clean = (value: unknown) =>
    value === undefined || value === null ? null : String(value).replace(/^ +| +$/g, '') || null
  const remarks = input.reviews.flatMap(({ json }) => {
    const review = parse(json)
    return list(review.contents).flatMap((content) =>
      list(content.sentiments).map((sentiment) => ({
        month: factsById.get(String(review.id))?.month ?? null,
        review_id: String(review.id),
        category: clean(sentiment.category),
        sub_category: clean(sentiment.subCategory),
        tonality: clean(sentiment.tonality)?.toLowerCase() ?? null,
      })),
    )
  })
  return groupBy(remarks, (row) => [row.month, row.review_id, row.category, row.sub_category]).map((rows) => ({
    ...rows[0],
    sentiment: rows.some(({ tonality }) => tonality === 'negative') ? 'negative' : 'other',
  })) as ReadonlyArray<ModelRow>
}

/** The newest first; those without a month last. */
const sortAlerts = (rows: ReadonlyArray<ModelRow>): ReadonlyArray<string> =>
  rows
    .toSorted((a, b) => {
      const [first, second] = [a, b].map((row) => (row.month === null ? 1 : 0)) as [number, number]
      const [time, other] = [a, b].map((row) =>
        row.mention_time === null ? Number.NEGATIVE_INFINITY : milliseconds(row.mention_time),
      ) as [number, number]
      const [id, otherId] = [a, b].map((row) => BigInt(String(row.review_id))) as [bigint, bigint]
      return first - second || (time === other ? 0 : other - time) || (id < otherId ? -1 : 1)
    })
    .map((row) => String(row.review_id))
