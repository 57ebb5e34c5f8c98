import { type Liabilities, severities } from '../liabilities'
import { liabilitiesByCategory } from './figures/in-rows'
import { day, plural, whole } from './format'
import { type Html, html } from './html'
import { chart, legend, missing, section, table } from './parts'

export const showLiabilities = (liabilities: Liabilities | null): Html => {
  const title = 'Open liabilities'
  if (liabilities === null) return section(title, missing('This file does not hold the stream reviews.'))
  const { total, categories, oldest } = liabilities
  const present = severities.filter((name) => total[name] > 0)
  if (present.length === 0) return section(title, missing('None of the reviews holds one whose task is open.'))
  const sum = present.reduce((count, name) => count + total[name], 0)
  const words = present.map((name) => `${whole(total[name])} ${name}`).join(', ')
  const worst = oldest[0]?.severity ?? ''
  return section(
    title,
    html`<p class="quiet">${plural(sum, 'liability', 'liabilities')} in reviews whose task is not completed, or that have no task: ${words}.</p>`,
    html`<div class="pair">${chart(
      'By category and severity',
      categories
        .map(
          ({ category, counts }) =>
            `${category ?? 'No category'}: ${present.map((name) => `${whole(counts[name])} ${name}`).join(', ')}`,
        )
        .join('; '),
      liabilitiesByCategory(liabilities),
      { above: legend(present) },
    )}<div><h3>Longest open</h3>${table(
      `Of ${worst} severity, the oldest first`,
      [
        { title: 'Mentioned', kind: 't', cell: ({ mentioned }) => day(mentioned) },
        {
          title: 'Category and location',
          cell: ({ category, location }) => two(category ?? 'No category', location ?? 'no location'),
        },
        {
          title: 'Review and task',
          kind: 'id',
          cell: ({ reviewId, task }) => two(reviewId, task === null ? 'no task' : `task ${task}`),
        },
      ],
      oldest,
    )}</div></div>`,
  )
}

const two = (above: string, below: string): Html => html`${above}<br><span class="quiet">${below}</span>`
