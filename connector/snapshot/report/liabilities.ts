import type { Database, RowValues } from '../store/database'
import { cellToNumber, cellToTextOrNull, cellToTimeOrNull } from '../store/values'
import { plotLiabilities } from './figures'
import {
  formatCount,
  formatDay,
  formatPlural,
  type Html,
  html,
  renderFigure,
  renderLegend,
  renderNotice,
  renderSection,
  renderTable,
} from './html'

/** The worst first. `other`: a severity that the service does not document. */
export const severities = ['high', 'medium', 'low', 'other'] as const
export type Severity = (typeof severities)[number]
export type SeverityCounts = Readonly<Record<Severity, number>>

export type LiabilityStatistics = {
  readonly total: SeverityCounts
  /** By category, the most first; null: the liability names none. */
  readonly categories: ReadonlyArray<{ readonly category: string | null; readonly counts: SeverityCounts }>
  /** The longest open of the worst severity there is. */
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

/** Asks the view open_liabilities; no justification leaves it, as that quotes patients. */
export const readLiabilityStatistics = async (db: Database): Promise<LiabilityStatistics> => {
  const counts = severities.map((name) => `count(*) FILTER (grade = '${name}') AS ${name}`).join(', ')
  const graded = `(SELECT *, ${severitySql} AS grade FROM open_liabilities)`
  const [total] = await db.query(`SELECT ${counts} FROM ${graded}`)
  const categories = await db.query(
    `SELECT nullif(trim(category), '') AS kind, ${counts} FROM ${graded} GROUP BY 1 ORDER BY count(*) DESC, high DESC, kind`,
  )
  const oldest = await db.query(`
    SELECT grade, liability_id::VARCHAR AS id, review_id::VARCHAR AS review, nullif(trim(category), '') AS kind, location_name,
      mention_time, task_status
    FROM ${graded} ORDER BY list_position([${severities.map((name) => `'${name}'`).join(', ')}], grade), mention_time, id LIMIT ${maxLiabilities}`)
  const worst = oldest[0]?.grade
  const bySeverity = (row: RowValues | undefined): SeverityCounts => ({
    high: cellToNumber(row?.high),
    medium: cellToNumber(row?.medium),
    low: cellToNumber(row?.low),
    other: cellToNumber(row?.other),
  })
  return {
    total: bySeverity(total),
    categories: categories.map((row) => ({ category: cellToTextOrNull(row.kind), counts: bySeverity(row) })),
    oldest: oldest
      .filter(({ grade }) => grade === worst)
      .map((row) => ({
        severity: toSeverity(row.grade),
        liabilityId: cellToTextOrNull(row.id),
        reviewId: String(row.review),
        category: cellToTextOrNull(row.kind),
        location: cellToTextOrNull(row.location_name),
        mentioned: cellToTimeOrNull(row.mention_time),
        task: cellToTextOrNull(row.task_status),
      })),
  }
}

export const renderLiabilities = (liabilities: LiabilityStatistics | null): Html => {
  const title = 'Open liabilities'
  if (liabilities === null) return renderSection(title, renderNotice('This file does not hold the stream reviews.'))
  const { total, categories, oldest } = liabilities
  const present = severities.filter((name) => total[name] > 0)
  if (present.length === 0)
    return renderSection(title, renderNotice('None of the reviews holds one whose task is open.'))
  const sum = present.reduce((count, name) => count + total[name], 0)
  const words = present.map((name) => `${formatCount(total[name])} ${name}`).join(', ')
  const worst = oldest[0]?.severity ?? ''
  return renderSection(
    title,
    html`<p class="quiet">${formatPlural(sum, 'liability', 'liabilities')} in reviews whose task is not completed, or that have no task: ${words}.</p>`,
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
      `Of ${worst} severity, the oldest first`,
      [
        { title: 'Mentioned', kind: 't', cell: ({ mentioned }) => formatDay(mentioned) },
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
