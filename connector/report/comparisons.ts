import type { Database } from '../snapshot/store'
import { cellToNumberOrNull, cellToTextOrNull, type RowValues } from '../snapshot/store'
import type { Comparison, Figures, Metric } from './html'

/** What the figures of a row are about: a region, an owner, a category. Null: the reviews name none. */
export type FigureGroup = { readonly key: string | null; readonly name: string | null; readonly figures: Figures }

/** The columns of the models, by their names. */
export const metrics = {
  reviews: { title: 'Reviews', unit: 'count' },
  rated: { title: 'Rated', unit: 'count' },
  average_rating: { title: 'Rating', unit: 'rating', better: 'higher' },
  rating_estimate: { title: 'Estimate', unit: 'rating', better: 'higher' },
  rating_low: { title: '95 % from', unit: 'rating', better: 'higher' },
  rating_high: { title: '95 % to', unit: 'rating', better: 'higher' },
  average_score: { title: 'Score', unit: 'rating', better: 'higher' },
  sentiments: { title: 'Sentiments', unit: 'count' },
  positive: { title: 'Positive', unit: 'count', better: 'higher' },
  neutral: { title: 'Neutral', unit: 'count' },
  negative: { title: 'Negative', unit: 'count', better: 'lower' },
  share_negative: { title: 'Negative', unit: 'share', better: 'lower' },
  tasks: { title: 'Tasks', unit: 'count' },
  open_tasks: { title: 'Open tasks', unit: 'count', better: 'lower' },
  closed_tasks: { title: 'Closed tasks', unit: 'count', better: 'higher' },
  share_closed: { title: 'Closed', unit: 'share', better: 'higher' },
  oldest_open_days: { title: 'Oldest open', unit: 'days', better: 'lower' },
  median_open_days: { title: 'Median open', unit: 'days', better: 'lower' },
  answered: { title: 'Answered', unit: 'count', better: 'higher' },
  share_answered: { title: 'Answered', unit: 'share', better: 'higher' },
  median_hours_to_answer: { title: 'Median answer', unit: 'hours', better: 'lower' },
  open_liabilities: { title: 'Open liabilities', unit: 'count', better: 'lower' },
  deleted_reviews: { title: 'Deleted', unit: 'count' },
  median_days_to_deletion: { title: 'Median age', unit: 'days' },
  alerts: { title: 'Alerts', unit: 'count', better: 'lower' },
} as const satisfies Readonly<Record<string, Metric>>

export type MetricName = keyof typeof metrics

/** The columns of every model by month. */
export const monthlyMetrics = [
  'reviews',
  'rated',
  'average_rating',
  'average_score',
  'positive',
  'neutral',
  'negative',
  'share_negative',
  'tasks',
  'open_tasks',
  'closed_tasks',
  'share_closed',
  'answered',
  'share_answered',
  'median_hours_to_answer',
  'open_liabilities',
  'oldest_open_days',
] as const satisfies ReadonlyArray<MetricName>

/**
 * A part of the report with one row for each group. Its file, heading and metrics; `shown`: those that the page has.
 */
export type GroupSection = {
  readonly title: string
  /** What one row is, for the head of its column. */
  readonly one: string
  readonly model: string
  readonly key: string
  readonly name: string
  readonly metrics: ReadonlyArray<MetricName>
  readonly shown: ReadonlyArray<MetricName>
  /** The metric of the first rows: the greatest first. */
  readonly order: MetricName
  /** Whether the model has no months, and is asked about the reviews of one month instead. */
  readonly isOfAllMonths?: true
  readonly note?: string
}

const shownByMonth = [
  'reviews',
  'average_rating',
  'share_negative',
  'open_tasks',
  'share_closed',
  'share_answered',
  'median_hours_to_answer',
] as const satisfies ReadonlyArray<MetricName>

export const groupSections = {
  regions: {
    title: 'Regions',
    one: 'Region',
    model: 'region_monthly',
    key: 'region',
    name: 'region',
    metrics: monthlyMetrics,
    shown: shownByMonth,
    order: 'reviews',
  },
  owners: {
    title: 'Owners',
    one: 'Owner',
    model: 'owner_scorecard',
    key: 'coalesce(owner_email, owner_name)',
    name: 'coalesce(owner_name, owner_email)',
    metrics: [
      'tasks',
      'open_tasks',
      'closed_tasks',
      'share_closed',
      'oldest_open_days',
      'median_open_days',
      'answered',
      'share_answered',
      'median_hours_to_answer',
      'rated',
      'average_rating',
      'average_score',
      'negative',
    ],
    shown: ['tasks', 'open_tasks', 'share_closed', 'oldest_open_days', 'share_answered', 'median_hours_to_answer'],
    order: 'open_tasks',
    isOfAllMonths: true,
  },
  locations: {
    title: 'Locations',
    one: 'Location',
    model: 'location_monthly',
    key: 'location_id',
    name: 'location_name',
    metrics: monthlyMetrics,
    shown: shownByMonth,
    order: 'reviews',
  },
  sources: {
    title: 'Sources',
    one: 'Source',
    model: 'source_monthly',
    key: 'source_id',
    name: 'source_name',
    metrics: monthlyMetrics,
    shown: shownByMonth,
    order: 'reviews',
  },
  providers: {
    title: 'Providers',
    one: 'Provider',
    model: 'provider_scorecard',
    key: 'provider_id',
    name: 'provider_name',
    metrics: [
      'reviews',
      'rated',
      'average_rating',
      'rating_estimate',
      'rating_low',
      'rating_high',
      'average_score',
      'positive',
      'neutral',
      'negative',
    ],
    shown: ['reviews', 'average_rating', 'rating_low', 'rating_high', 'average_score', 'negative'],
    order: 'reviews',
    isOfAllMonths: true,
  },
  categories: {
    title: 'Categories',
    one: 'Category',
    model: 'sentiment_by_category_monthly',
    key: `concat_ws(' / ', category, sub_category)`,
    name: `concat_ws(' / ', category, sub_category)`,
    metrics: ['reviews', 'sentiments', 'positive', 'neutral', 'negative', 'average_score'],
    shown: ['sentiments', 'positive', 'neutral', 'negative', 'average_score'],
    order: 'sentiments',
  },
  deleted_reviews: {
    title: 'Deleted reviews',
    one: 'Source',
    model: 'deleted_reviews_by_source',
    key: 'source_id',
    name: 'source_name',
    metrics: ['deleted_reviews', 'median_days_to_deletion'],
    shown: ['deleted_reviews', 'median_days_to_deletion'],
    order: 'deleted_reviews',
    note: 'By the month of the deletion.',
  },
} as const satisfies Readonly<Record<string, GroupSection>>

export type GroupSectionName = keyof typeof groupSections

/** The months that a report compares, such as 2026-10. */
export type MonthPair = { readonly month: string; readonly previous: string }

/** The month some months later, or earlier. */
export const addMonths = (month: string, count: number): string => {
  const [year = 0, number = 0] = month.split('-').map(Number)
  const sum = year * 12 + number - 1 + count
  return `${String(Math.floor(sum / 12)).padStart(4, '0')}-${String((sum % 12) + 1).padStart(2, '0')}`
}

export const earlierMonth = (a: string, b: string): string => (a < b ? a : b)
export const laterMonth = (a: string, b: string): string => (a > b ? a : b)

/** Changes are rounded, since the difference of two decimals has more digits than they have. */
const subtract = (value: number | null, previous: number | null): number | null =>
  value === null || previous === null ? null : Math.round((value - previous) * 100) / 100

export const compareFigures = (value: number | null, previous: number | null): Comparison => ({
  value,
  previous,
  change: subtract(value, previous),
})

/**
 * Two rows of a model side by side. Without a row a count is 0, since nothing was counted, and anything else is
 * unknown.
 */
export const compareRows = (
  names: ReadonlyArray<MetricName>,
  row: RowValues | undefined,
  previous: RowValues | undefined,
): Figures => {
  const read = (from: RowValues | undefined, name: MetricName) =>
    from === undefined && metrics[name].unit === 'count' ? 0 : cellToNumberOrNull(from?.[name])
  return Object.fromEntries(names.map((name) => [name, compareFigures(read(row, name), read(previous, name))]))
}

/** Runs `body` while the models see the reviews of one month alone. */
export type FocusMonth = <A>(month: string, body: () => Promise<A>) => Promise<A>

/** Reads the groups of a section in both months, that with the most first. */
export const readGroups = async (
  db: Database,
  section: GroupSection,
  { month, previous }: MonthPair,
  focusMonth: FocusMonth,
): Promise<ReadonlyArray<FigureGroup>> => {
  const sql = `SELECT (${section.key})::VARCHAR AS group_key, (${section.name})::VARCHAR AS group_name, ${section.metrics.join(', ')} FROM ${section.model}`
  const readMonth = (of: string) =>
    section.isOfAllMonths === true
      ? focusMonth(of, () => db.query(sql))
      : db.query(`${sql} WHERE month = $month::DATE`, { month: `${of}-01` })
  const [rows, before] = [await readMonth(month), await readMonth(previous)]
  const toKey = (row: RowValues) => cellToTextOrNull(row.group_key)
  const rowsByKey = new Map(rows.map((row) => [toKey(row), row]))
  const beforeByKey = new Map(before.map((row) => [toKey(row), row]))
  const weigh = ({ figures }: FigureGroup, at: 'value' | 'previous') => figures[section.order]?.[at] ?? -1
  return [...new Set([...rowsByKey.keys(), ...beforeByKey.keys()])]
    .map((key) => ({
      key,
      name: cellToTextOrNull((rowsByKey.get(key) ?? beforeByKey.get(key))?.group_name),
      figures: compareRows(section.metrics, rowsByKey.get(key), beforeByKey.get(key)),
    }))
    .sort(
      (a, b) =>
        weigh(b, 'value') - weigh(a, 'value') ||
        weigh(b, 'previous') - weigh(a, 'previous') ||
        (a.name ?? '').localeCompare(b.name ?? '', 'en') ||
        (a.key ?? '').localeCompare(b.key ?? '', 'en'),
    )
}
