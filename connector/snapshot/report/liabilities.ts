import type { Database } from '../store/database'
import { cellToNumber, cellToTextOrNull, cellToTimeOrNull, type RowValues } from '../store/values'
import {
  barChartAxes,
  barChartHeight,
  barSeries,
  type Figure,
  formatCount,
  formatDay,
  formatPlural,
  type Html,
  html,
  labelText,
  renderFigure,
  renderLegend,
  renderSection,
  renderTable,
  shortCategoryName,
} from './html'

/** The highest first. `other`: a severity that the service does not document. */
export const severities = ['high', 'medium', 'low', 'other'] as const
export type Severity = (typeof severities)[number]
export type SeverityCounts = Readonly<Record<Severity, number>>

export type LiabilityStatistics = {
  readonly total: SeverityCounts
  /** By category, the category with the most first; null: the liability has no category. */
  readonly categories: ReadonlyArray<{ readonly category: string | null; readonly counts: SeverityCounts }>
  /** Those of the highest severity present, the oldest first. */
  readonly oldest: ReadonlyArray<OpenLiability>
}
export type OpenLiability = {
  readonly severity: Severity
  readonly liabilityId: string | null
  readonly reviewId: string
  readonly category: string | null
  readonly location: string | null
  readonly mentioned: string | null
  readonly task: string | null
}

const maxLiabilities = 10
const severitySql = `CASE
  WHEN severity_level = 3 OR lower(severity) = 'high' THEN 'high'
  WHEN severity_level = 2 OR lower(severity) = 'medium' THEN 'medium'
  WHEN severity_level = 1 OR lower(severity) = 'low' THEN 'low' ELSE 'other' END`

const toSeverity = (text: unknown): Severity => severities.find((name) => name === text) ?? 'other'

/** Reads the view open_liabilities, without the justifications, since these quote patients. */
export const readLiabilityStatistics = async (db: Database): Promise<LiabilityStatistics> => {
  const counts = severities.map((name) => `count(*) FILTER (grade = '${name}') AS ${name}`).join(', ')
  const gradedSql = `(SELECT *, ${severitySql} AS grade FROM open_liabilities)`
  const [total] = await db.query(`SELECT ${counts} FROM ${gradedSql}`)
  const categories = await db.query(
    `SELECT nullif(trim(category), '') AS category, ${counts} FROM ${gradedSql} GROUP BY 1 ORDER BY count(*) DESC, high DESC, category`,
  )
  const oldest = await db.query(`
    SELECT grade, liability_id::VARCHAR AS id, review_id::VARCHAR AS review, nullif(trim(category), '') AS category, location_name,
      mention_time, task_status
    FROM ${gradedSql} ORDER BY list_position([${severities.map((name) => `'${name}'`).join(', ')}], grade), mention_time, id LIMIT ${maxLiabilities}`)
  const highest = oldest[0]?.grade
  const toSeverityCounts = (row: RowValues | undefined): SeverityCounts => ({
    high: cellToNumber(row?.high),
    medium: cellToNumber(row?.medium),
    low: cellToNumber(row?.low),
    other: cellToNumber(row?.other),
  })
  return {
    total: toSeverityCounts(total),
    categories: categories.map((row) => ({ category: cellToTextOrNull(row.category), counts: toSeverityCounts(row) })),
    oldest: oldest
      .filter(({ grade }) => grade === highest)
      .map((row) => ({
        severity: toSeverity(row.grade),
        liabilityId: cellToTextOrNull(row.id),
        reviewId: String(row.review),
        category: cellToTextOrNull(row.category),
        location: cellToTextOrNull(row.location_name),
        mentioned: cellToTimeOrNull(row.mention_time),
        task: cellToTextOrNull(row.task_status),
      })),
  }
}

/** Open liabilities by category, each bar divided by severity. */
const plotLiabilities = ({ categories }: LiabilityStatistics): Figure => ({
  height: barChartHeight(categories.length),
  option: (width) => {
    const max = Math.max(...categories.map(({ counts }) => severities.reduce((sum, name) => sum + counts[name], 0)))
    return {
      ...barChartAxes(
        categories.map(({ category }) => shortCategoryName(category)),
        8,
        max,
      ),
      series: severities.map((severity) => ({
        ...barSeries,
        stack: 'all',
        itemStyle: { color: `var(--${severity})` },
        data: categories.map(({ counts }) => ({
          value: counts[severity],
          label: { show: (counts[severity] / max) * width > 40 },
        })),
        label: { ...labelText, color: `var(--on-${severity})` },
      })),
    }
  },
})

export const renderLiabilities = (liabilities: LiabilityStatistics | null, timeZone: string): Html | undefined => {
  const title = 'Open liabilities'
  if (liabilities === null) return undefined
  const { total, categories, oldest } = liabilities
  const present = severities.filter((name) => total[name] > 0)
  if (present.length === 0) return undefined
  const sum = present.reduce((count, name) => count + total[name], 0)
  const counts = present.map((name) => `${formatCount(total[name])} ${name}`).join(', ')
  const highest = oldest[0]?.severity ?? ''
  return renderSection(
    title,
    html`<p class="quiet">${formatPlural(sum, 'liability', 'liabilities')} in reviews whose task is not completed, or that have no task: ${counts}.</p>`,
    html`<div class="pair">${renderFigure(
      'By category and severity',
      categories
        .map(
          ({ category, counts }) =>
            `${category ?? 'No category'}: ${present.map((name) => `${formatCount(counts[name])} ${name}`).join(', ')}`,
        )
        .join('; '),
      plotLiabilities(liabilities),
      { above: renderLegend(present) },
    )}<div><h3>Longest open</h3>${renderTable(
      `Of ${highest} severity, the oldest first`,
      [
        { title: 'Mentioned', kind: 't', cell: ({ mentioned }) => formatDay(mentioned, timeZone) },
        {
          title: 'Category and location',
          cell: ({ category, location }) => renderTwoLines(category ?? 'No category', location ?? 'no location'),
        },
        {
          title: 'Review and task',
          kind: 'id',
          cell: ({ reviewId, task }) => renderTwoLines(reviewId, task === null ? 'no task' : `task ${task}`),
        },
      ],
      oldest,
    )}</div></div>`,
  )
}

const renderTwoLines = (above: string, below: string): Html => html`${above}<br><span class="quiet">${below}</span>`
