import type { Report } from '../../report'
import { severities } from '../liabilities'
import {
  formatAge,
  formatCount,
  formatDay,
  formatHours,
  formatMinute,
  formatPlural,
  formatRating,
  formatShare,
} from './format'
import { type Html, html } from './html'

type KeyFigure = { readonly name: string; readonly value: string; readonly note: string; readonly bad?: true }

/** The few numbers that most readers come for. */
export const renderKeyFigures = (report: Report): Html =>
  html`<dl class="key">${listKeyFigures(report).map(
    ({ name, value, note, bad }) =>
      html`<div><dt>${name}</dt><dd class="${bad === true ? 'bad' : ''}">${value}</dd><dd>${note}</dd></div>`,
  )}</dl>`

const listKeyFigures = ({ reviews, liabilities, responses, health, madeAt }: Report): ReadonlyArray<KeyFigure> => {
  const figures: Array<KeyFigure> = []
  if (reviews !== null)
    figures.push(
      { name: 'Reviews', value: formatCount(reviews.reviews), note: `last one ${formatDay(reviews.lastMention)}` },
      {
        name: 'Mean rating',
        value: formatRating(reviews.meanRating),
        note: `of ${formatPlural(reviews.rated, 'rated review')}`,
      },
    )
  if (responses !== null && reviews !== null)
    figures.push({
      name: 'Median answer',
      value: formatHours(responses.medianHours),
      note: `${formatShare(responses.answered, reviews.reviews)} answered`,
    })
  if (liabilities !== null)
    figures.push({
      name: 'Open liabilities',
      value: formatCount(severities.reduce((sum, name) => sum + liabilities.total[name], 0)),
      note: `${formatCount(liabilities.total.high)} of high severity`,
    })
  const failed = health.checks.filter(({ ok }) => !ok).length
  const started = health.runs[0]?.started ?? null
  figures.push({
    name: 'Last load',
    value: started === null ? 'none' : `${formatAge(started, madeAt)} ago`,
    note: formatMinute(started),
  })
  figures.push({
    name: 'Checks',
    value: failed === 0 ? 'all hold' : `${formatCount(failed)} failed`,
    note: `of ${formatPlural(health.checks.length, 'check')}`,
    ...(failed === 0 ? {} : { bad: true }),
  })
  return figures
}
