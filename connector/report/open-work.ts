import {
  cellToNumber,
  cellToNumberOrNull,
  cellToTextOrNull,
  cellToTimeOrNull,
  type Database,
  quoteLiteral,
  type RowValues,
} from '../snapshot/store'
import { compareFigures } from './comparisons'
import type { Comparison } from './figures'
import {
  formatCount,
  formatMonth,
  formatPlural,
  formatRating,
  type Html,
  html,
  renderPair,
  renderSection,
  renderTable,
  renderTwoLines,
  shortenText,
} from './html'
import type { MonthPair } from './months'

/**
 * A review that someone should look at, because it has an open task or an alert. Ids are strings, because they may
 * exceed the numbers that JSON readers support.
 */
export type WorkItem = {
  readonly review_id: string
  readonly task_id: string | null
  readonly task_status: string | null
  readonly owner_name: string | null
  readonly owner_email: string | null
  readonly region: string | null
  readonly location_id: string | null
  readonly location_name: string | null
  readonly source_name: string | null
  readonly provider_name: string | null
  readonly mention_time: string | null
  readonly age_days: number | null
  readonly rating: number | null
  readonly review_score: number | null
  readonly severity: string | null
  /** The reasons for an alert; empty if the review only has an open task. */
  readonly reasons: ReadonlyArray<AlertReason>
  /** What the reviewer wrote. Only with `--with-text`. */
  readonly text?: string | null
}

/** A list whose first rows the report shows. `total`: the current number over all months. */
export type WorkList = { readonly total: number; readonly listed: ReadonlyArray<WorkItem> }

type AlertReason = 'overdue' | 'low_score' | 'high_liability'

/** The alerts for one reason, or for all: the current number, and how many belong to reviews of the two months. */
type AlertCount = {
  readonly key: AlertReason | 'all'
  readonly name: string
  readonly total: number
  readonly figures: { readonly alerts: Comparison }
}

/** `total`: all alerts; `listed`: for reviews of the month; `backlog`: for reviews of other months. Newest first. */
export type Alerts = WorkList & { readonly backlog: WorkList; readonly counts: ReadonlyArray<AlertCount> }

/** The model variables that define an alert. */
type AlertThresholds = { readonly alert_open_days: number; readonly alert_score: number }

const alertReasons = ['overdue', 'low_score', 'high_liability'] as const

/** For more rows, use `feedback query`, which reads the models directly. */
const maxListed = 1_000

/** How many the page shows. */
const maxShown = { alerts: 6, backlog: 3, tasks: 6 } as const

const workColumns = `
  review_id::VARCHAR AS review_id, task_id::VARCHAR AS task_id, task_status, owner_name, owner_email, region,
  location_id::VARCHAR AS location_id, location_name, source_name, provider_name,
  mention_time, age_days, rating, review_score, severity`

const toWorkItem = (row: RowValues): WorkItem => ({
  review_id: String(row.review_id),
  task_id: cellToTextOrNull(row.task_id),
  task_status: cellToTextOrNull(row.task_status),
  owner_name: cellToTextOrNull(row.owner_name),
  owner_email: cellToTextOrNull(row.owner_email),
  region: cellToTextOrNull(row.region),
  location_id: cellToTextOrNull(row.location_id),
  location_name: cellToTextOrNull(row.location_name),
  source_name: cellToTextOrNull(row.source_name),
  provider_name: cellToTextOrNull(row.provider_name),
  mention_time: cellToTimeOrNull(row.mention_time),
  age_days: cellToNumberOrNull(row.age_days),
  rating: cellToNumberOrNull(row.rating),
  review_score: cellToNumberOrNull(row.review_score),
  severity: cellToTextOrNull(row.severity),
  reasons: alertReasons.filter((reason) => row[`is_${reason}`] === true),
})

const alertConditions: Readonly<Record<AlertCount['key'], string>> = {
  all: 'true',
  overdue: 'is_overdue',
  low_score: 'is_low_score',
  high_liability: 'is_high_liability',
}

const alertNames = ({
  alert_open_days,
  alert_score,
}: AlertThresholds): Readonly<Record<AlertCount['key'], string>> => ({
  all: 'Reviews with an alert',
  overdue: `Task open for ${alert_open_days} days or more`,
  low_score: `Score below ${alert_score}`,
  high_liability: 'Open liability of high severity',
})

/** The alerts with the month of their reviews. */
const datedAlerts = 'critical_alerts JOIN (SELECT review_id, month FROM review_facts) USING (review_id)'

const isOfMonth = (month: string): string => `month = ${quoteLiteral(`${month}-01`)}::DATE`

const readAlertCounts = async (
  db: Database,
  { month, previous }: MonthPair,
  thresholds: AlertThresholds,
): Promise<ReadonlyArray<AlertCount>> => {
  const keys = ['all', ...alertReasons] as const
  const months = { total: 'true', value: isOfMonth(month), previous: isOfMonth(previous) }
  const columns = keys.flatMap((key) =>
    Object.entries(months).map(([name, of]) => `count(*) FILTER (${alertConditions[key]} AND ${of}) AS ${key}_${name}`),
  )
  const [row] = await db.query(`SELECT ${columns.join(', ')} FROM ${datedAlerts}`)
  const names = alertNames(thresholds)
  return keys.map((key) => ({
    key,
    name: names[key],
    total: cellToNumber(row?.[`${key}_total`]),
    figures: { alerts: compareFigures(cellToNumber(row?.[`${key}_value`]), cellToNumber(row?.[`${key}_previous`])) },
  }))
}

/** Reads critical_alerts: those for the month, and the backlog. */
export const readAlerts = async (db: Database, months: MonthPair, thresholds: AlertThresholds): Promise<Alerts> => {
  const counts = await readAlertCounts(db, months, thresholds)
  const total = counts[0]?.total ?? 0
  // A review with an impossible mention time belongs to no month and is not the newest.
  const list = async (where: string) =>
    (
      await db.query(`
        SELECT ${workColumns}, is_overdue, is_low_score, is_high_liability
        FROM ${datedAlerts}
        WHERE ${where}
        ORDER BY month IS NULL, mention_time DESC NULLS LAST, critical_alerts.review_id LIMIT ${maxListed}`)
    ).map(toWorkItem)
  return {
    total,
    counts,
    listed: await list(isOfMonth(months.month)),
    backlog: {
      total: total - (counts[0]?.figures.alerts.value ?? 0),
      listed: await list(`${isOfMonth(months.month)} IS NOT TRUE`),
    },
  }
}

/** Reads review_tasks_open, oldest first. */
export const readOpenTasks = async (db: Database): Promise<WorkList> => ({
  total: cellToNumber(await db.scalar('SELECT count(*) FROM review_tasks_open')),
  listed: (
    await db.query(`
      SELECT ${workColumns}
      FROM review_tasks_open
      ORDER BY age_days DESC NULLS LAST, review_tasks_open.review_id LIMIT ${maxListed}`)
  ).map(toWorkItem),
})

/** The items with their reviewers' texts, from reviews_current. */
export const addTexts = async (db: Database, items: ReadonlyArray<WorkItem>): Promise<ReadonlyArray<WorkItem>> => {
  if (items.length === 0) return items
  const ids = items.map(({ review_id }) => quoteLiteral(review_id)).join(', ')
  const rows = await db.query(`
    SELECT review_id::VARCHAR AS review_id, text
    FROM reviews_current
    WHERE review_id IN (SELECT unnest([${ids}])::BIGINT)`)
  const texts = new Map(rows.map((row) => [String(row.review_id), cellToTextOrNull(row.text)]))
  return items.map((item) => ({ ...item, text: texts.get(item.review_id) || null }))
}

const reasonNames: Readonly<Record<AlertReason, (item: WorkItem) => string>> = {
  overdue: () => 'overdue',
  low_score: ({ review_score }) => `score ${formatRating(review_score)}`,
  high_liability: () => 'high liability',
}

export const explainAlert = (item: WorkItem): string =>
  item.reasons.map((reason) => reasonNames[reason](item)).join(', ')

export const nameOwner = ({ owner_name, owner_email }: WorkItem): string => owner_name ?? owner_email ?? 'no owner'

export const namePlace = ({ location_name, location_id }: WorkItem): string =>
  location_name ?? (location_id === null ? 'no location' : `location ${location_id}`)

/** The models' name for the region of a location that is not in the regions file. */
const unknownRegion = '(unknown)'

const maxTextLength = 400

const renderWork = (caption: string, items: ReadonlyArray<WorkItem>, describe: (item: WorkItem) => string): Html =>
  renderTable(
    caption,
    [
      { title: 'Review', kind: 'id', isHeader: true, cell: (item) => renderTwoLines(item.review_id, describe(item)) },
      {
        title: 'Location, and region or source',
        cell: (item) =>
          renderTwoLines(
            namePlace(item),
            (item.region === unknownRegion ? null : item.region) ?? item.source_name ?? '',
          ),
      },
      {
        title: 'Owner and task',
        cell: (item) =>
          renderTwoLines(nameOwner(item), item.task_status === null ? 'no task' : `task ${item.task_status}`),
      },
      { title: 'Age', kind: 'n', cell: ({ age_days }) => (age_days === null ? '–' : `${formatCount(age_days)} d`) },
    ],
    items,
    ({ text }) => (text === null || text === undefined ? undefined : shortenText(text, maxTextLength)),
  )

/** A sentence on how many rows the page shows, such as `All 3, the newest first.` or `The newest 8 of 120.` */
const explainShown = (which: string, shown: number, total: number): string =>
  total <= shown
    ? `All ${formatCount(total)}, the ${which} first.`
    : `The ${which} ${formatCount(shown)} of ${formatCount(total)}.`

const renderAlertCounts = (counts: ReadonlyArray<AlertCount>, month: string): Html =>
  renderTable(
    'A review can have several reasons.',
    [
      { title: 'Reason', isHeader: true, cell: ({ name }) => name },
      { title: formatMonth(month), kind: 'n', cell: ({ figures }) => formatCount(figures.alerts.value ?? 0) },
      {
        title: 'Other months',
        kind: 'n',
        cell: ({ total, figures }) => formatCount(total - (figures.alerts.value ?? 0)),
      },
      { title: 'All', kind: 'n', cell: ({ total }) => formatCount(total) },
    ],
    counts,
  )

/** `liabilities`: the figure beside the reasons. */
export const renderAlerts = (
  { total, counts, listed, backlog }: Alerts,
  { month }: MonthPair,
  liabilities: Html | undefined,
): Html => {
  if (total === 0) return renderSection('Alerts', html`<p>No review has an alert.</p>`, liabilities)
  const ofMonth = total - backlog.total
  return renderSection(
    'Alerts',
    renderPair(renderAlertCounts(counts, month), liabilities),
    html`<h3>Of ${formatMonth(month)}</h3>`,
    ofMonth === 0
      ? html`<p>No review of this month has an alert.</p>`
      : renderWork(explainShown('newest', maxShown.alerts, ofMonth), listed.slice(0, maxShown.alerts), explainAlert),
    backlog.total === 0
      ? undefined
      : html`<h3>The backlog: ${formatPlural(backlog.total, 'alert')} of other months</h3>${renderWork(
          explainShown('newest', maxShown.backlog, backlog.total),
          backlog.listed.slice(0, maxShown.backlog),
          explainAlert,
        )}`,
  )
}

export const renderOpenTasks = ({ total, listed }: WorkList): Html =>
  total === 0
    ? renderSection('Open tasks', html`<p>No task is open.</p>`)
    : renderSection(
        'Open tasks',
        renderWork(
          `From all months. ${explainShown('oldest', maxShown.tasks, total)}`,
          listed.slice(0, maxShown.tasks),
          ({ severity, rating }) =>
            [severity === null ? [] : `${severity} liability`, rating === null ? [] : `rating ${rating}`]
              .flat()
              .join(', '),
        ),
      )
