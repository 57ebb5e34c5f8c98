import type { Report } from '../../report'
import { severities } from '../liabilities'
import { age, day, hours, minute, plural, rating, share, whole } from './format'
import { type Html, html } from './html'

type KeyFigure = { readonly name: string; readonly value: string; readonly note: string; readonly bad?: true }

/** The few numbers that most readers come for. */
export const keyFigures = (report: Report): Html =>
  html`<dl class="key">${figuresOf(report).map(
    ({ name, value, note, bad }) =>
      html`<div><dt>${name}</dt><dd class="${bad === true ? 'bad' : ''}">${value}</dd><dd>${note}</dd></div>`,
  )}</dl>`

const figuresOf = ({ reviews, liabilities, responses, health, madeAt }: Report): ReadonlyArray<KeyFigure> => {
  const figures: Array<KeyFigure> = []
  if (reviews !== null)
    figures.push(
      { name: 'Reviews', value: whole(reviews.reviews), note: `last one ${day(reviews.lastMention)}` },
      { name: 'Mean rating', value: rating(reviews.meanRating), note: `of ${plural(reviews.rated, 'rated review')}` },
    )
  if (responses !== null && reviews !== null)
    figures.push({
      name: 'Median answer',
      value: hours(responses.medianHours),
      note: `${share(responses.answered, reviews.reviews)} answered`,
    })
  if (liabilities !== null)
    figures.push({
      name: 'Open liabilities',
      value: whole(severities.reduce((sum, name) => sum + liabilities.total[name], 0)),
      note: `${whole(liabilities.total.high)} of high severity`,
    })
  const failed = health.checks.filter(({ ok }) => !ok).length
  const started = health.runs[0]?.started ?? null
  figures.push({
    name: 'Last load',
    value: started === null ? 'none' : `${age(started, madeAt)} ago`,
    note: minute(started),
  })
  figures.push({
    name: 'Checks',
    value: failed === 0 ? 'all hold' : `${whole(failed)} failed`,
    note: `of ${plural(health.checks.length, 'check')}`,
    ...(failed === 0 ? {} : { bad: true }),
  })
  return figures
}
