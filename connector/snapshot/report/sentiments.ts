import type { Database } from '../store/database'
import type { Table } from '../store/tables'
import { cellToNumber, cellToTextOrNull } from '../store/values'
import {
  barChartAxes,
  barChartHeight,
  barSeries,
  type Figure,
  formatCount,
  formatPlural,
  formatShare,
  type Html,
  labelText,
  renderFigure,
  renderLegend,
  renderSection,
  shortCategoryName,
} from './html'

export type SentimentStatistics = {
  /** The categories with the most sentiments, the largest first. */
  readonly categories: ReadonlyArray<CategorySentiment>
  /** The number of smaller categories, and of the sentiments in them. */
  readonly others: number
  readonly othersTotal: number
  /** Sentiments whose tonality is none of the three; they are in no category's counts. */
  readonly unclear: number
}
export type CategorySentiment = {
  /** Null: the sentiments have no category. */
  readonly category: string | null
  readonly negative: number
  readonly neutral: number
  readonly positive: number
}

const tonalities = ['negative', 'neutral', 'positive'] as const

const maxCategories = 10

/** Reads review_sentiments or, if it was not synced, the contents of the reviews; null if the file has neither. */
export const readSentimentStatistics = async (
  db: Database,
  tables: ReadonlyArray<Table>,
): Promise<SentimentStatistics | null> => {
  const source = sentimentsSql(tables)
  if (source === undefined) return null
  const rows = await db.query(`
    SELECT nullif(trim(category), '') AS category,
      count(*) FILTER (lower(tonality) = 'negative') AS negative, count(*) FILTER (lower(tonality) = 'neutral') AS neutral,
      count(*) FILTER (lower(tonality) = 'positive') AS positive, count(*) AS total
    FROM (${source}) GROUP BY 1 ORDER BY total DESC, category`)
  const all = rows.map((row) => ({
    category: cellToTextOrNull(row.category),
    negative: cellToNumber(row.negative),
    neutral: cellToNumber(row.neutral),
    positive: cellToNumber(row.positive),
  }))
  const categories = all.filter((category) => countSentiments(category) > 0)
  return {
    categories: categories.slice(0, maxCategories),
    others: Math.max(0, categories.length - maxCategories),
    othersTotal: sum(categories.slice(maxCategories).map(countSentiments)),
    unclear: sum(rows.map((row) => cellToNumber(row.total))) - sum(all.map(countSentiments)),
  }
}

const countSentiments = ({ negative, neutral, positive }: CategorySentiment): number => negative + neutral + positive
const sum = (numbers: ReadonlyArray<number>): number => numbers.reduce((a, b) => a + b, 0)

const sentimentsSql = (tables: ReadonlyArray<Table>): string | undefined => {
  const hasTable = (name: string, ...columns: ReadonlyArray<string>) =>
    tables.some(
      (table) => table.name === name && columns.every((column) => table.columns.some((other) => other.name === column)),
    )
  if (hasTable('review_sentiments', 'category', 'tonality'))
    return 'SELECT category::VARCHAR AS category, tonality::VARCHAR AS tonality FROM review_sentiments'
  return hasTable('reviews', 'contents')
    ? `SELECT sentiment->>'category' AS category, sentiment->>'tonality' AS tonality
       FROM (SELECT unnest(json_extract(contents, '$[*].sentiments[*]')) AS sentiment FROM reviews)`
    : undefined
}

/** The share of each tonality in its category. */
const plotSentiments = ({ categories }: SentimentStatistics): Figure => ({
  height: barChartHeight(categories.length),
  option: (width) => ({
    ...barChartAxes(
      categories.map(
        (sentiments) => `${shortCategoryName(sentiments.category)}  ${formatCount(countSentiments(sentiments))}`,
      ),
      8,
      1,
    ),
    series: tonalities.map((tonality) => ({
      ...barSeries,
      stack: 'all',
      itemStyle: { color: `var(--${tonality})` },
      data: categories.map((sentiments) => {
        const [count, total] = [sentiments[tonality], countSentiments(sentiments)]
        return {
          value: count / total,
          label: { show: (count / total) * width > 70, formatter: formatShare(count, total) },
        }
      }),
      label: { ...labelText, color: `var(--on-${tonality})` },
    })),
  }),
})

export const renderSentiments = (sentiments: SentimentStatistics | null): Html | undefined => {
  if (sentiments === null || sentiments.categories.length === 0) return undefined
  const title = 'Sentiment by category'
  const { categories, others, othersTotal, unclear } = sentiments
  const descriptions = categories.map(
    ({ category, ...counts }) =>
      `${category ?? 'No category'}: ${tonalities.map((name) => `${formatCount(counts[name])} ${name}`).join(', ')}`,
  )
  const notes = [
    others === 0
      ? ''
      : ` ${formatPlural(others, 'smaller category', 'smaller categories')} with ${formatPlural(othersTotal, 'sentiment')} ${others === 1 ? 'is' : 'are'} left out.`,
    unclear === 0
      ? ''
      : ` ${formatPlural(unclear, 'sentiment')} of unknown tonality ${unclear === 1 ? 'is' : 'are'} not categories.`,
  ].join('')
  return renderSection(
    title,
    renderFigure(undefined, `${descriptions.join('; ')}.`, plotSentiments(sentiments), {
      above: renderLegend(tonalities),
      below: `Share of each tonality; the number beside a category counts its sentiments.${notes}`,
    }),
  )
}
