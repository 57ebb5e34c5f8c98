import type { Sentiments } from '../sentiments'
import { sentimentByCategory, tonalities } from './figures/in-rows'
import { plural, whole } from './format'
import type { Html } from './html'
import { chart, legend, missing, section } from './parts'

export const showSentiments = (sentiments: Sentiments | null): Html => {
  const title = 'Sentiment by category'
  if (sentiments === null)
    return section(title, missing('This file holds neither the stream review_sentiments nor reviews with contents.'))
  const { categories, others, othersTotal, unclear } = sentiments
  if (categories.length === 0) return section(title, missing('No sentiments were found in the reviews.'))
  const words = categories.map(
    ({ category, ...counts }) =>
      `${category ?? 'No category'}: ${tonalities.map((name) => `${whole(counts[name])} ${name}`).join(', ')}`,
  )
  const more = [
    others === 0
      ? ''
      : ` ${plural(others, 'smaller category', 'smaller categories')} with ${plural(othersTotal, 'sentiment')} ${others === 1 ? 'is' : 'are'} left out.`,
    unclear === 0
      ? ''
      : ` ${plural(unclear, 'sentiment')} of no known tonality ${unclear === 1 ? 'is' : 'are'} not counted.`,
  ].join('')
  return section(
    title,
    chart(undefined, `${words.join('; ')}.`, sentimentByCategory(sentiments), {
      above: legend(tonalities),
      below: `Share of each tonality; beside each category, how many sentiments it has.${more}`,
    }),
  )
}
