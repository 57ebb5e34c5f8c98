import { cellToNumber, cellToTextOrNull, type Database } from '../snapshot/store'
import { barChartAxes, barChartHeight, barSeries, type Figure, labelText } from './charts'
import { formatCount, formatPlural, type Html, renderFigure, renderLegend, shortenName } from './html'

/** The highest first. `other`: a severity that the service does not document. */
const severities = ['high', 'medium', 'low', 'other'] as const
type Severity = (typeof severities)[number]

/** Open liabilities of all months by category, the category with the most first. Null: without a category. */
export type LiabilityCounts = ReadonlyArray<{ readonly category: string | null } & Readonly<Record<Severity, number>>>

const severitySql = `CASE
  WHEN severity_level = 3 OR lower(severity) = 'high' THEN 'high'
  WHEN severity_level = 2 OR lower(severity) = 'medium' THEN 'medium'
  WHEN severity_level = 1 OR lower(severity) = 'low' THEN 'low' ELSE 'other' END`

/** Reads the view open_liabilities, without the justifications, because they quote patients. */
export const readLiabilities = async (db: Database): Promise<LiabilityCounts> => {
  const counts = severities.map((name) => `count(*) FILTER (grade = '${name}') AS ${name}`)
  const rows = await db.query(`
    SELECT nullif(trim(category), '') AS category, ${counts.join(', ')}
    FROM (SELECT category, ${severitySql} AS grade FROM open_liabilities)
    GROUP BY 1 ORDER BY count(*) DESC, high DESC, category`)
  return rows.map((row) => ({
    category: cellToTextOrNull(row.category),
    high: cellToNumber(row.high),
    medium: cellToNumber(row.medium),
    low: cellToNumber(row.low),
    other: cellToNumber(row.other),
  }))
}

const maxCategories = 6

/** Open liabilities by category, each bar split by severity. */
const plotLiabilities = (categories: LiabilityCounts): Figure => ({
  height: barChartHeight(categories.length),
  option: (width) => {
    const max = Math.max(...categories.map((counts) => severities.reduce((sum, name) => sum + counts[name], 0)))
    return {
      ...barChartAxes(
        categories.map(({ category }) => shortenName(category ?? 'No category')),
        8,
        max,
      ),
      series: severities.map((severity) => ({
        ...barSeries,
        stack: 'all',
        itemStyle: { color: `var(--${severity})` },
        data: categories.map((counts) => ({
          value: counts[severity],
          label: { show: (counts[severity] / max) * width > 40 },
        })),
        label: { ...labelText, color: `var(--on-${severity})` },
      })),
    }
  },
})

export const renderLiabilities = (all: LiabilityCounts): Html | undefined => {
  if (all.length === 0) return undefined
  const counted = (name: Severity) => all.reduce((sum, counts) => sum + counts[name], 0)
  const present = severities.filter((name) => counted(name) > 0)
  const describe = (counts: Readonly<Record<Severity, number>>) =>
    present
      .filter((name) => counts[name] > 0)
      .map((name) => `${formatCount(counts[name])} ${name}`)
      .join(', ')
  const shown = all.slice(0, maxCategories)
  const totals = present.map((name) => `${formatCount(counted(name))} ${name}`).join(', ')
  const rest = formatPlural(all.length - shown.length, 'smaller category', 'smaller categories')
  return renderFigure(
    'Open liabilities by category and severity',
    shown.map((counts) => `${counts.category ?? 'No category'}: ${describe(counts)}`).join('; '),
    plotLiabilities(shown),
    {
      above: renderLegend(present),
      below: `${totals}, of all months, in reviews whose task is not completed or that have none.${
        all.length > shown.length ? ` ${rest} left out.` : ''
      }`,
    },
  )
}
