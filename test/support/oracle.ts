/** What the models must say, computed from the texts of the reviews in plain TypeScript: shares no SQL with them. */

type Cell = string | number | boolean | null
export type ModelRow = Readonly<Record<string, Cell>>
export type ModelRows = Readonly<Record<string, ReadonlyArray<ModelRow>>>

type Json = { readonly [name: string]: unknown }
type ReviewText = { readonly json: string }

export type OracleInput = {
  /** The reviews that the service has. */
  readonly reviews: ReadonlyArray<ReviewText>
  /** Every deletion that the service reports. A review may have several, and may exist again. */
  readonly deletions: ReadonlyArray<{ readonly id: string; readonly modifiedTime: string }>
  /** Reviews as they were at an earlier run, from which the sources of deleted ones are known. */
  readonly earlier: ReadonlyArray<ReviewText>
  readonly regions: ReadonlyArray<{
    readonly location_id: string | null
    readonly location_name: string | null
    readonly region: string
  }>
  readonly scales?: ReadonlyArray<{
    readonly question_id: string
    readonly lowest: number
    readonly highest: number
    readonly best: number | null
  }>
  readonly minAnswers?: number
  readonly asOf: number
  readonly timeZone: string
  readonly openDays: number
  readonly lowScore: number
  readonly minReviews: number
}

/** Integers beyond 2^53 as texts. No text of the sandbox looks like one. */
export const parse = (text: string): Json => JSON.parse(text.replace(/([:,[])(\d{16,})(?=[,}\]])/g, '$1"$2"'))

export const object = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {})
/** The objects of a list. Anything else in it is ignored. */
export const list = (value: unknown): ReadonlyArray<Json> =>
  Array.isArray(value) ? value.filter((item) => typeof item === 'object' && item !== null) : []
export const text = (value: unknown): string | null => (value === undefined || value === null ? null : String(value))
export const number = (value: unknown): number | null => (value === undefined || value === null ? null : Number(value))
export const id = (value: unknown): number | string | null => {
  const digits = text(value)
  return digits === null ? null : Number.isSafeInteger(Number(digits)) ? Number(digits) : digits
}
const time = (value: unknown): string | null =>
  typeof value === 'string' && !Number.isNaN(Date.parse(value)) ? new Date(value).toISOString() : null
/** Without spaces at both ends, in lower case. */
const fold = (value: unknown): string | undefined => trimSpaces(text(value))?.toLowerCase()
const trimSpaces = (value: string | null): string | undefined => value?.replace(/^ +| +$/g, '')
/** A trimmed name; an empty one counts as missing. */
const nameOf = (value: unknown): string | null => trimSpaces(text(value)) || null
/** A number within a scale; any other counts as none. */
const within = (value: number | null, isValid: (number: number) => boolean): number | null =>
  value !== null && isValid(value) ? value : null
const isScore = (score: number) => score >= 0 && score <= 5

/**
 * When a review was posted, if a review can have this time: from 1990 on, and at most a day after its `last` change.
 */
const postedTime = (mention: string | null, last: string | null, tolerance = 86_400_000): string | null =>
  mention !== null &&
  last !== null &&
  Date.parse(mention) >= Date.UTC(1990) &&
  Date.parse(mention) <= Date.parse(last) + tolerance
    ? mention
    : null

/** Halves away from zero, after a cut to nine digits. */
export const roundHalves = (value: number, digits: number): number => {
  const ninth = BigInt(value.toFixed(9).replace('.', ''))
  const unit = 10n ** BigInt(9 - digits)
  const magnitude = ninth < 0n ? -ninth : ninth
  const rounded = Number((magnitude + unit / 2n) / unit) / 10 ** digits
  return ninth < 0n && rounded !== 0 ? -rounded : rounded
}
export const rounded = (value: number | null, digits: number) => (value === null ? null : roundHalves(value, digits))

export const present = <A>(values: ReadonlyArray<A | null>): ReadonlyArray<A> =>
  values.filter((value): value is A => value !== null)
const sum = (values: ReadonlyArray<number>): number => values.reduce((total, value) => total + value, 0)
export const mean = (values: ReadonlyArray<number | null>): number | null => {
  const known = present(values)
  return known.length === 0 ? null : sum(known) / known.length
}
export const median = (values: ReadonlyArray<number | null>): number | null => {
  const sorted = [...present(values)].sort((a, b) => a - b)
  const [low, high] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted[Math.ceil((sorted.length - 1) / 2)]]
  return low === undefined || high === undefined ? null : (low + high) / 2
}
const greatest = (values: ReadonlyArray<number | null>): number | null => {
  const known = present(values)
  return known.length === 0 ? null : Math.max(...known)
}
export const share = (part: number, whole: number): number | null => (whole === 0 ? null : roundHalves(part / whole, 2))

export const groupBy = <A>(
  items: ReadonlyArray<A>,
  keyOf: (item: A) => ReadonlyArray<Cell>,
): ReadonlyArray<ReadonlyArray<A>> => {
  const groups = new Map<string, Array<A>>()
  for (const item of items) {
    const key = JSON.stringify(keyOf(item))
    groups.set(key, [...(groups.get(key) ?? []), item])
  }
  return [...groups.values()]
}

const monthIn = (timeZone: string): ((at: string) => string) => {
  const format = new Intl.DateTimeFormat('en', { timeZone, year: 'numeric', month: '2-digit' })
  return (at) => {
    const parts = Object.fromEntries(format.formatToParts(Date.parse(at)).map(({ type, value }) => [type, value]))
    return `${parts.year}-${parts.month}-01`
  }
}
const nextMonth = (month: string): string => {
  const [year = 0, number = 0] = month.split('-').map(Number)
  return new Date(Date.UTC(year, number, 1)).toISOString().slice(0, 10)
}

const severityLevel = (liability: Json): number => {
  const { level, name } = object(liability.severity)
  const word = fold(name)
  return level === 3 || word === 'high'
    ? 3
    : level === 2 || word === 'medium'
      ? 2
      : level === 1 || word === 'low'
        ? 1
        : 0
}
const severityNames = ['other', 'low', 'medium', 'high']

/** A review as the models see it; `sentiments` are those found in its text. */
type Facts = ReturnType<typeof readFacts>
const readFacts = ({ json }: ReviewText, input: OracleInput, monthOf: (at: string) => string) => {
  const review = parse(json)
  const mention = time(review.mentionTime)
  const posted = postedTime(mention, time(review.modifiedTime))
  const task = review.taskDetails === undefined || review.taskDetails === null ? undefined : object(review.taskDetails)
  const isClosed = fold(task?.status) === 'completed'
  const [location, source, provider] = [object(review.location), object(review.source), object(review.provider)]
  const answers = list(review.engagements ?? review.engagement)
  const times = [...present(answers.map(({ engagementTime }) => time(engagementTime)))].sort()
  const contents = list(review.contents)
  const liabilities = contents.flatMap((content) => list(content.liabilities))
  const grade = liabilities.length === 0 ? null : Math.max(...liabilities.map(severityLevel))
  const score = within(number(review.reviewScore), isScore)
  const folded = fold(location.name)
  const region =
    input.regions.find((row) => row.location_id !== null && row.location_id === text(location.id)) ??
    input.regions.find((row) => row.location_name !== null && fold(row.location_name) === folded)
  const facts = {
    review_id: id(review.id),
    month: posted === null ? null : monthOf(posted),
    mention_time: mention,
    modified_time: time(review.modifiedTime),
    region: region?.region ?? '(unknown)',
    location_id: id(location.id),
    location_name: nameOf(location.name),
    source_id: id(source.id),
    source_name: nameOf(source.name),
    provider_id: id(provider.id),
    provider_name: nameOf(provider.name),
    provider_npi: nameOf(provider.npi),
    task_id: id(task?.id),
    task_status: text(task?.status),
    owner_name: nameOf(task?.ownerName),
    owner_email: nameOf(task?.ownerEmail),
    task: task === undefined ? 0 : 1,
    open_task: task !== undefined && !isClosed ? 1 : 0,
    closed_task: task !== undefined && isClosed ? 1 : 0,
    age_days:
      posted === null || Date.parse(posted) > input.asOf
        ? null
        : Math.floor((input.asOf - Date.parse(posted)) / 86_400_000),
    rating: within(number(review.rating), (rating) => rating > 0 && rating <= 5),
    review_score: score,
    sentiment: score === null ? null : score >= 4 ? 'positive' : score >= 2.5 ? 'neutral' : 'negative',
    liabilities: liabilities.length,
    open_liabilities: isClosed ? 0 : liabilities.length,
    severity_level: grade === 0 ? null : grade,
    severity: grade === null ? null : (severityNames[grade] ?? null),
    engagements: answers.length,
    first_response_time: times[0] ?? null,
    last_engagement_time: times.at(-1) ?? null,
    hours_to_answer:
      times[0] === undefined || posted === null || times[0] < posted
        ? null
        : roundHalves((Date.parse(times[0]) - Date.parse(posted)) / 3_600_000, 1),
  }
  return { facts, sentiments: contents.flatMap((content) => list(content.sentiments)) }
}

const pick = (row: ModelRow, names: ReadonlyArray<string>): ModelRow =>
  Object.fromEntries(names.map((name) => [name, row[name] ?? null]))

const taskColumns = [
  'review_id',
  'task_id',
  'task_status',
  'owner_name',
  'owner_email',
  'region',
  'location_id',
  'location_name',
  'source_id',
  'source_name',
  'provider_id',
  'provider_name',
  'mention_time',
  'age_days',
  'rating',
  'review_score',
  'sentiment',
  'liabilities',
  'severity_level',
  'severity',
  'engagements',
  'last_engagement_time',
  'modified_time',
]

type Review = Facts['facts']
const countIf = (reviews: ReadonlyArray<Review>, test: (review: Review) => boolean) => reviews.filter(test).length

/** The figures of some reviews of one month. */
const figures = (reviews: ReadonlyArray<Review>) => {
  const negative = countIf(reviews, ({ sentiment }) => sentiment === 'negative')
  const tasks = sum(reviews.map(({ task }) => task))
  const closed = sum(reviews.map(({ closed_task }) => closed_task))
  const answered = countIf(reviews, ({ first_response_time }) => first_response_time !== null)
  return {
    reviews: reviews.length,
    rated: countIf(reviews, ({ rating }) => rating !== null),
    average_rating: rounded(mean(reviews.map(({ rating }) => rating)), 2),
    average_score: rounded(mean(reviews.map(({ review_score }) => review_score)), 2),
    positive: countIf(reviews, ({ sentiment }) => sentiment === 'positive'),
    neutral: countIf(reviews, ({ sentiment }) => sentiment === 'neutral'),
    negative,
    share_negative: share(
      negative,
      countIf(reviews, ({ sentiment }) => sentiment !== null),
    ),
    tasks,
    open_tasks: tasks - closed,
    closed_tasks: closed,
    share_closed: share(closed, tasks),
    answered,
    share_answered: share(answered, reviews.length),
    median_hours_to_answer: rounded(median(reviews.map(({ hours_to_answer }) => hours_to_answer)), 1),
    open_liabilities: sum(reviews.map(({ open_liabilities }) => open_liabilities)),
    oldest_open_days: greatest(reviews.map(({ open_task, age_days }) => (open_task === 1 ? age_days : null))),
  }
}
const isCount = (metric: string) => !/^(average|share|median|oldest)_/.test(metric)

/** The name that an id had last; of names of one instant the first in the alphabet. */
const lastNames = (named: ReadonlyArray<{ readonly id: Cell; readonly name: string | null; readonly at: string }>) => {
  const last = new Map<string, { readonly name: string; readonly at: string }>()
  for (const { id, name, at } of named) {
    const known = last.get(String(id))
    if (name !== null && (known === undefined || at > known.at || (at === known.at && name < known.name)))
      last.set(String(id), { name, at })
  }
  return (id: Cell): string | null => last.get(String(id))?.name ?? null
}
export const namesOf = (reviews: ReadonlyArray<Review>, idName: keyof Review, nameName: keyof Review) =>
  lastNames(
    reviews.map((review) => ({
      id: review[idName],
      name: text(review[nameName]),
      at: String(review.modified_time),
    })),
  )

/** Bayesian mean and 95 % interval: ten ratings at the mean of all, with the spread of 1 to 5, are added. */
export const estimates = (ratings: ReadonlyArray<number>, all: ReadonlyArray<number>) => {
  if (ratings.length === 0) return { rating_estimate: null, rating_low: null, rating_high: null }
  const overall = mean(all) ?? 0
  const squares = sum(all.map((rating) => (rating - overall) ** 2))
  const deviation = Math.sqrt((10 * 2 + squares) / (10 + all.length))
  const estimate = (10 * overall + sum(ratings)) / (10 + ratings.length)
  const margin = (1.96 * deviation) / Math.sqrt(10 + ratings.length)
  const clamp = (value: number) => roundHalves(Math.min(5, Math.max(0, value)), 2)
  return {
    rating_estimate: clamp(estimate),
    rating_low: clamp(estimate - margin),
    rating_high: clamp(estimate + margin),
  }
}

const monthOverMonth = (monthly: ReadonlyArray<ModelRow>): ReadonlyArray<ModelRow> => {
  const months = monthly.map(({ month }) => String(month)).sort()
  const last = months.at(-1) ?? ''
  return groupBy(monthly, ({ scope, key }) => [scope ?? null, key ?? null]).flatMap((group) => {
    const [{ scope = null, key = null, name = null } = {}] = group
    const byMonth = new Map(group.map((row) => [String(row.month), row]))
    const metrics = Object.keys(group[0] ?? {}).filter((column) => !['scope', 'key', 'name', 'month'].includes(column))
    const rows: Array<ModelRow> = []
    const previous = new Map<string, number | null>()
    for (let month = [...byMonth.keys()].sort()[0] ?? ''; month <= last; month = nextMonth(month))
      for (const metric of metrics) {
        const value = (byMonth.get(month)?.[metric] ?? (isCount(metric) ? 0 : null)) as number | null
        const before = previous.get(metric) ?? null
        const change = value === null || before === null ? null : roundHalves(value - before, 2)
        rows.push({
          scope,
          key,
          name,
          month,
          metric,
          value,
          previous_value: before,
          change,
        })
        previous.set(metric, value)
      }
    return rows
  })
}

/** The rows of every model in dbt/models/marts. */
export const expectedModels = (input: OracleInput): ModelRows => {
  const monthOf = monthIn(input.timeZone)
  const read = input.reviews.map((review) => readFacts(review, input, monthOf))
  const reviews = read.map(({ facts }) => facts)
  const dated = reviews.filter(({ month }) => month !== null)
  const scopes = {
    all: () => null,
    region: ({ region }: Review) => region,
    location: ({ location_id }: Review) => text(location_id),
    source: ({ source_id }: Review) => text(source_id),
  }
  const names: Readonly<Record<string, (key: Cell) => string | null>> = {
    all: () => null,
    region: text,
    location: namesOf(reviews, 'location_id', 'location_name'),
    source: namesOf(reviews, 'source_id', 'source_name'),
  }
  const monthly = Object.entries(scopes).flatMap(([scope, keyOf]) =>
    groupBy(dated, (review) => [keyOf(review), review.month]).map((group) => {
      const key = group[0] === undefined ? null : keyOf(group[0])
      const name = key === null ? null : (names[scope]?.(key) ?? null)
      return { scope, key, name, month: group[0]?.month ?? null, ...figures(group) }
    }),
  )
  const ofScope = (scope: string, idName: string, nameName?: string): ReadonlyArray<ModelRow> =>
    monthly
      .filter((row) => row.scope === scope)
      .map(({ scope: _, key, name, ...row }) => ({
        [idName]: nameName === undefined ? key : id(key),
        ...(nameName === undefined ? {} : { [nameName]: name }),
        ...row,
      }))
  const ratings = present(reviews.map(({ rating }) => rating))
  const owners = groupBy(
    reviews.filter(({ task }) => task === 1),
    ({ owner_name, owner_email }) => [owner_name, owner_email],
  )
  const providers = groupBy(
    reviews.filter(({ provider_id }) => provider_id !== null),
    ({ provider_id }) => [provider_id],
  )
  const providerName = namesOf(reviews, 'provider_id', 'provider_name')
  const providerNpi = namesOf(reviews, 'provider_id', 'provider_npi')
  const sentiments = read.flatMap(({ facts, sentiments }) =>
    facts.month === null
      ? []
      : sentiments.map((sentiment) => ({
          review: facts,
          category: nameOf(sentiment.category),
          subCategory: nameOf(sentiment.subCategory),
          tonality: fold(sentiment.tonality),
          score: within(number(sentiment.score), isScore),
        })),
  )
  const alive = new Set(reviews.map(({ review_id }) => String(review_id)))
  const earlier = input.earlier
    .map((review) => readFacts(review, input, monthOf).facts)
    .sort((a, b) => (String(a.modified_time) < String(b.modified_time) ? 1 : -1))
  const lastDeletions = new Map(
    [...input.deletions]
      .sort((a, b) => (a.modifiedTime < b.modifiedTime ? -1 : 1))
      .map((one) => [one.id, one.modifiedTime]),
  )
  const deleted = [...lastDeletions]
    .filter(([review]) => !alive.has(review))
    .map(([review, time]) => {
      const versions = earlier.filter(({ review_id }) => String(review_id) === review)
      const source = versions.find(({ source_id, source_name }) => source_id !== null || source_name !== null)
      const mention = versions.find(({ mention_time }) => mention_time !== null)?.mention_time ?? null
      const posted = postedTime(mention, new Date(time).toISOString(), 0)
      return {
        id: source?.source_id ?? null,
        name: source?.source_name ?? null,
        at: new Date(time).toISOString(),
        days: posted === null ? null : (Date.parse(time) - Date.parse(posted)) / 86_400_000,
      }
    })
  const deletedName = lastNames(deleted)
  return {
    review_facts: reviews,
    scope_monthly: monthly,
    region_monthly: ofScope('region', 'region'),
    location_monthly: ofScope('location', 'location_id', 'location_name'),
    source_monthly: ofScope('source', 'source_id', 'source_name'),
    month_over_month: monthOverMonth(monthly),
    review_tasks_open: reviews.filter(({ open_task }) => open_task === 1).map((row) => pick(row, taskColumns)),
    critical_alerts: reviews.flatMap((review) => {
      const reasons = {
        is_overdue: review.open_task === 1 && review.age_days !== null && review.age_days >= input.openDays,
        is_low_score: review.closed_task === 0 && review.review_score !== null && review.review_score < input.lowScore,
        is_high_liability: review.open_liabilities > 0 && review.severity_level === 3,
      }
      return Object.values(reasons).some(Boolean) ? [{ ...reasons, ...pick(review, taskColumns) }] : []
    }),
    owner_scorecard: owners.map((group) => {
      const { share_negative: _, ...row } = figures(group)
      const ages = group.map(({ open_task, age_days }) => (open_task === 1 ? age_days : null))
      const columns = [
        'tasks',
        'open_tasks',
        'closed_tasks',
        'share_closed',
        'oldest_open_days',
        'answered',
        'share_answered',
        'median_hours_to_answer',
        'rated',
        'average_rating',
        'average_score',
        'negative',
      ]
      return {
        ...pick(group[0] ?? {}, ['owner_name', 'owner_email']),
        ...pick(row, columns),
        median_open_days: rounded(median(ages), 1),
      }
    }),
    provider_scorecard: providers
      .filter((group) => group.length >= input.minReviews)
      .map((group) => {
        const row = pick(figures(group), [
          'reviews',
          'rated',
          'average_rating',
          'average_score',
          'positive',
          'neutral',
          'negative',
        ])
        return {
          provider_id: group[0]?.provider_id ?? null,
          provider_name: providerName(group[0]?.provider_id ?? null),
          provider_npi: providerNpi(group[0]?.provider_id ?? null),
          ...row,
          ...estimates(present(group.map(({ rating }) => rating)), ratings),
        }
      }),
    sentiment_by_category_monthly: groupBy(sentiments, ({ review, category, subCategory }) => [
      review.month,
      category,
      subCategory,
    ]).map((group) => {
      const of = (tonality: string) => group.filter((one) => one.tonality === tonality).length
      return {
        month: group[0]?.review.month ?? null,
        category: group[0]?.category ?? null,
        sub_category: group[0]?.subCategory ?? null,
        reviews: new Set(group.map(({ review }) => review.review_id)).size,
        sentiments: group.length,
        positive: of('positive'),
        neutral: of('neutral'),
        negative: of('negative'),
        average_score: rounded(mean(group.map(({ score }) => score)), 2),
      }
    }),
    response_times: reviews
      .filter(({ first_response_time }) => first_response_time !== null)
      .map((row) => ({
        ...pick(row, [
          'review_id',
          'location_id',
          'location_name',
          'source_name',
          'mention_time',
          'first_response_time',
        ]),
        hours: row.hours_to_answer,
      })),
    deleted_reviews_by_source: groupBy(deleted, ({ id, at }) => [id, monthOf(at)]).map((group) => {
      const [{ id, at } = { id: null, at: '' }] = group
      return {
        source_id: id,
        source_name: id === null ? null : deletedName(id),
        month: monthOf(at),
        deleted_reviews: group.length,
        median_days_to_deletion: rounded(median(group.map(({ days }) => days)), 1),
      }
    }),
  }
}
