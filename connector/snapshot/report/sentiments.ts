import type { Database } from '../store/database'
import type { Table } from '../store/tables'
import { cellToNumber, cellToTextOrNull } from '../store/values'
import { plotSentiments, tonalities } from './figures'
import { formatCount, formatPlural, type Html, renderFigure, renderLegend, renderNotice, renderSection } from './html'

export type SentimentStatistics = {
  /** The categories with the most sentiments, most first. */
  readonly categories: ReadonlyArray<CategorySentiment>
  /** How many further categories there are, and how many sentiments they have. */
  readonly others: number
  readonly othersTotal: number
  /** Sentiments whose tonality is none of the three; no category counts them. */
  readonly unclear: number
}
export type CategorySentiment = {
  /** Null: the sentiment names no category. */
  readonly category: string | null
  readonly negative: number
  readonly neutral: number
  readonly positive: number
}

const maxCategories = 10

/** From review_sentiments or, where it was not synced, from the contents of the reviews; null if the file has neither. */
export const readSentimentStatistics = async (
  db: Database,
  tables: ReadonlyArray<Table>,
): Promise<SentimentStatistics | null> => {
  const found = sentimentsSql(tables)
  if (found === undefined) return null
  const rows = await db.query(`
    SELECT nullif(trim(category), '') AS category,
      count(*) FILTER (lower(tonality) = 'negative') AS negative, count(*) FILTER (lower(tonality) = 'neutral') AS neutral,
      count(*) FILTER (lower(tonality) = 'positive') AS positive, count(*) AS total
    FROM (${found}) GROUP BY 1 ORDER BY total DESC, category`)
  const all = rows.map((row) => ({
    category: cellToTextOrNull(row.category),
    negative: cellToNumber(row.negative),
    neutral: cellToNumber(row.neutral),
    positive: cellToNumber(row.positive),
  }))
  const told = all.filter((category) => countTonalities(category) > 0)
  return {
    categories: told.slice(0, maxCategories),
    others: Math.max(0, told.length - maxCategories),
    othersTotal: sum(told.slice(maxCategories).map(countTonalities)),
    unclear: sum(rows.map((row) => cellToNumber(row.total))) - sum(all.map(countTonalities)),
  }
}

const countTonalities = ({ negative, neutral, positive }: CategorySentiment): number => negative + neutral + positive
const sum = (numbers: ReadonlyArray<number>): number => numbers.reduce((a, b) => a + b, 0)

const sentimentsSql = (tables: ReadonlyArray<Table>): string | undefined => {
  const has = (name: string, ...columns: ReadonlyArray<string>) =>
    tables.some(
      (table) => table.name === name && columns.every((wanted) => table.columns.some((c) => c.name === wanted)),
    )
  if (has('review_sentiments', 'category', 'tonality'))
    return 'SELECT category::VARCHAR AS category, tonality::VARCHAR AS tonality FROM review_sentiments'
  return has('reviews', 'contents')
    ? `SELECT said->>'category' AS category, said->>'tonality' AS tonality
       FROM (SELECT unnest(json_extract(contents, '$[*].sentiments[*]')) AS said FROM reviews)`
    : undefined
}

export const renderSentiments = (sentiments: SentimentStatistics | null): Html => {
  const title = 'Sentiment by category'
  if (sentiments === null)
    return renderSection(
      title,
      renderNotice('This file holds neither the stream review_sentiments nor reviews with contents.'),
    )
  const { categories, others, othersTotal, unclear } = sentiments
  if (categories.length === 0) return renderSection(title, renderNotice('No sentiments were found in the reviews.'))
  const words = categories.map(
    ({ category, ...counts }) =>
      `${category ?? 'No category'}: ${tonalities.map((name) => `${formatCount(counts[name])} ${name}`).join(', ')}`,
  )
  const more = [
    others === 0
      ? ''
      : ` ${formatPlural(others, 'smaller category', 'smaller categories')} with ${formatPlural(othersTotal, 'sentiment')} ${others === 1 ? 'is' : 'are'} left out.`,
    unclear === 0
      ? ''
      : ` ${formatPlural(unclear, 'sentiment')} of no known tonality ${unclear === 1 ? 'is' : 'are'} not counted.`,
  ].join('')
  return renderSection(
    title,
    renderFigure(undefined, `${words.join('; ')}.`, plotSentiments(sentiments), {
      above: renderLegend(tonalities),
      below: `Share of each tonality; beside each category, how many sentiments it has.${more}`,
    }),
  )
}
