import type { Metric } from './figures'
import { categoryOutcomes, type SampledMetric } from './samples'

/** All figures by name. Most are columns of the models. */
export const metrics = {
  reviews: { title: 'Reviews', unit: 'count' },
  rated: { title: 'Rated', unit: 'count' },
  average_rating: { title: 'Rating', unit: 'rating', better: 'higher' },
  rating_estimate: { title: 'Estimate', unit: 'rating' },
  rating_low: { title: '95 % from', unit: 'rating' },
  rating_high: { title: '95 % to', unit: 'rating' },
  average_score: { title: 'Score', unit: 'rating' },
  sentiments: { title: 'Sentiments', unit: 'count' },
  positive: { title: 'Positive', unit: 'count' },
  neutral: { title: 'Neutral', unit: 'count' },
  negative: { title: 'Negative', unit: 'count' },
  share_negative: { title: 'Negative share', unit: 'share', better: 'lower' },
  tasks: { title: 'Tasks', unit: 'count' },
  open_tasks: { title: 'Open tasks', unit: 'count', isOfNow: true },
  closed_tasks: { title: 'Closed tasks', unit: 'count', isOfNow: true },
  share_closed: { title: 'Closed share', unit: 'share', isOfNow: true },
  share_closed_7: { title: 'Closed in 7 days', unit: 'share', better: 'higher' },
  share_closed_30: { title: 'Closed in 30 days', unit: 'share', better: 'higher' },
  oldest_open_days: { title: 'Oldest open', unit: 'days', isOfNow: true },
  median_open_days: { title: 'Median open', unit: 'days', isOfNow: true },
  answered: { title: 'Answered', unit: 'count', isOfNow: true },
  share_answered: { title: 'Answered share', unit: 'share', isOfNow: true },
  share_answered_7: { title: 'Answered in 7 days', unit: 'share', better: 'higher' },
  share_answered_30: { title: 'Answered in 30 days', unit: 'share', better: 'higher' },
  median_hours_to_answer: { title: 'Median answer', unit: 'hours', isOfNow: true },
  open_liabilities: { title: 'Open liabilities', unit: 'count', isOfNow: true },
  deleted_reviews: { title: 'Deleted', unit: 'count' },
  median_days_to_deletion: { title: 'Median age', unit: 'days' },
  alerts: { title: 'Alerts', unit: 'count', isOfNow: true },
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

/** A part of the report with one row per group: its file, heading and metrics. `shown`: the metrics on the page. */
export type GroupSection = {
  readonly title: string
  /** What one row is, for its column's header. */
  readonly one: string
  readonly model: string
  /** SQL over the model and over the source of its samples. */
  readonly key: string
  /** SQL that distinguishes groups with the same key. */
  readonly identity?: string
  readonly name: string
  readonly metrics: ReadonlyArray<MetricName>
  /** The judged metrics, and how their samples are counted. */
  readonly sampled: ReadonlyArray<SampledMetric>
  readonly sampledFrom?: string
  readonly sampledWhere?: string
  readonly shown: ReadonlyArray<MetricName>
  /** The metric that rows are sorted by, highest first. */
  readonly order: MetricName
  /** Describes the order in words. */
  readonly orderedBy: string
  /** The model has no months, so it is evaluated over the reviews of one month. */
  readonly isOfAllMonths?: true
  readonly note?: string
}

const responseMetrics = ['share_answered_7', 'share_answered_30', 'share_closed_7', 'share_closed_30'] as const

/** Shared by the sections of regions, locations and sources. */
const byMonth = {
  metrics: monthlyMetrics,
  sampled: ['average_rating', 'share_negative', ...responseMetrics],
  shown: ['reviews', 'average_rating', 'share_negative', ...responseMetrics, 'open_tasks'],
  order: 'reviews',
  orderedBy: 'with the most reviews',
} as const

const categoryName = `nullif(concat_ws(' / ', category, sub_category), '')`

export const groupSections = {
  regions: { ...byMonth, title: 'Regions', one: 'Region', model: 'region_monthly', key: 'region', name: 'region' },
  owners: {
    title: 'Owners',
    one: 'Owner',
    model: 'owner_scorecard',
    key: 'coalesce(owner_email, owner_name)',
    identity: 'to_json([owner_name, owner_email])',
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
    sampled: responseMetrics,
    sampledWhere: 'task = 1',
    shown: ['tasks', ...responseMetrics, 'open_tasks', 'oldest_open_days'],
    order: 'open_tasks',
    orderedBy: 'with the most open tasks',
    isOfAllMonths: true,
    note: 'Of the reviews with a task.',
  },
  locations: {
    ...byMonth,
    title: 'Locations',
    one: 'Location',
    model: 'location_monthly',
    key: 'location_id',
    name: 'location_name',
  },
  sources: {
    ...byMonth,
    title: 'Sources',
    one: 'Source',
    model: 'source_monthly',
    key: 'source_id',
    name: 'source_name',
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
    sampled: ['average_rating', 'share_negative'],
    shown: ['reviews', 'average_rating', 'rating_estimate', 'share_negative'],
    order: 'reviews',
    orderedBy: 'with the most reviews',
    isOfAllMonths: true,
    note: 'Below each estimate: the range in which the true rating lies with a probability of 95 %.',
  },
  categories: {
    title: 'Categories',
    one: 'Category',
    model: 'sentiment_by_category_monthly',
    key: categoryName,
    identity: 'to_json([category, sub_category])',
    name: categoryName,
    metrics: ['reviews', 'sentiments', 'positive', 'neutral', 'negative', 'average_score'],
    sampled: ['share_negative'],
    sampledFrom: categoryOutcomes,
    shown: ['reviews', 'share_negative', 'positive', 'neutral', 'negative', 'average_score'],
    order: 'sentiments',
    orderedBy: 'that reviewers mention most',
    note: 'The share counts reviews that say something negative about it; the counts are of single remarks.',
  },
  deleted_reviews: {
    title: 'Deleted reviews',
    one: 'Source',
    model: 'deleted_reviews_by_source',
    key: 'source_id',
    name: 'source_name',
    metrics: ['deleted_reviews', 'median_days_to_deletion'],
    sampled: [],
    shown: ['deleted_reviews', 'median_days_to_deletion'],
    order: 'deleted_reviews',
    orderedBy: 'with the most deleted reviews',
    note: 'By the month of the deletion.',
  },
} as const satisfies Readonly<Record<string, GroupSection>>

export type GroupSectionName = keyof typeof groupSections

/** The sections in order. The section of regions exists only if locations have regions. */
export const listGroupSections = (
  hasRegions: boolean,
): ReadonlyArray<readonly [name: GroupSectionName, section: GroupSection]> =>
  (Object.entries(groupSections) as ReadonlyArray<readonly [GroupSectionName, GroupSection]>).filter(
    ([name]) => name !== 'regions' || hasRegions,
  )
