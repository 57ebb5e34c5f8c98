import { type LiabilityStatistics, severities } from '../liabilities'
import { plotLiabilities } from './figures/in-rows'
import { formatCount, formatDay, formatPlural } from './format'
import { type Html, html } from './html'
import { renderFigure, renderLegend, renderNotice, renderSection, renderTable } from './parts'

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
