import type { SentimentStatistics } from '../sentiments'
import { plotSentiments, tonalities } from './figures/in-rows'
import { formatCount, formatPlural } from './format'
import type { Html } from './html'
import { renderFigure, renderLegend, renderNotice, renderSection } from './parts'

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
