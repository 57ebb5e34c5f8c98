import type { Cells, Database } from '../database'
import { numberOf, textOrNull, timeOrNull } from './cells'

/** The worst first. `other`: a severity that the service does not document. */
export const severities = ['high', 'medium', 'low', 'other'] as const
export type Severity = (typeof severities)[number]
export type BySeverity = Readonly<Record<Severity, number>>

export type Liabilities = {
  readonly total: BySeverity
  /** By category, the most first; null: the liability names none. */
  readonly categories: ReadonlyArray<{ readonly category: string | null; readonly counts: BySeverity }>
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

const shown = 10
const severity = `CASE
  WHEN severity_level = 3 OR lower(severity) = 'high' THEN 'high'
  WHEN severity_level = 2 OR lower(severity) = 'medium' THEN 'medium'
  WHEN severity_level = 1 OR lower(severity) = 'low' THEN 'low' ELSE 'other' END`

const toSeverity = (text: unknown): Severity => severities.find((name) => name === text) ?? 'other'

/** Asks the view open_liabilities; no justification leaves it, as that quotes patients. */
export const readLiabilities = async (db: Database): Promise<Liabilities> => {
  const counts = severities.map((name) => `count(*) FILTER (grade = '${name}') AS ${name}`).join(', ')
  const graded = `(SELECT *, ${severity} AS grade FROM open_liabilities)`
  const [total] = await db.query(`SELECT ${counts} FROM ${graded}`)
  const categories = await db.query(
    `SELECT nullif(trim(category), '') AS kind, ${counts} FROM ${graded} GROUP BY 1 ORDER BY count(*) DESC, high DESC, kind`,
  )
  const oldest = await db.query(`
    SELECT grade, liability_id::VARCHAR AS id, review_id::VARCHAR AS review, nullif(trim(category), '') AS kind, location_name,
      mention_time, task_status
    FROM ${graded} ORDER BY list_position([${severities.map((name) => `'${name}'`).join(', ')}], grade), mention_time, id LIMIT ${shown}`)
  const worst = oldest[0]?.grade
  const bySeverity = (row: Cells | undefined): BySeverity => ({
    high: numberOf(row?.high),
    medium: numberOf(row?.medium),
    low: numberOf(row?.low),
    other: numberOf(row?.other),
  })
  return {
    total: bySeverity(total),
    categories: categories.map((row) => ({ category: textOrNull(row.kind), counts: bySeverity(row) })),
    oldest: oldest
      .filter(({ grade }) => grade === worst)
      .map((row) => ({
        severity: toSeverity(row.grade),
        liabilityId: textOrNull(row.id),
        reviewId: String(row.review),
        category: textOrNull(row.kind),
        location: textOrNull(row.location_name),
        mentioned: timeOrNull(row.mention_time),
        task: textOrNull(row.task_status),
      })),
  }
}
