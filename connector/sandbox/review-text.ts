import { toInstant } from '../api/model/scalar'
import { ownerAt } from './names'
import { answers, liabilities, type Phrase, phrases } from './phrases'
import type { Cell, ReviewRow } from './review-rows'

const given = (cell: Cell): boolean => cell !== null

/** A member of an object, left out where it is null (Conventions). */
const member = (name: string, json: string | undefined): string => (json === undefined ? '' : `,"${name}":${json}`)
const text = (cell: Cell): string | undefined => (given(cell) ? JSON.stringify(cell) : undefined)
const instant = (cell: Cell): string | undefined => (given(cell) ? JSON.stringify(toInstant(Number(cell))) : undefined)
/** A double, which shows its point as the service's do. */
const double = (value: number): string => (Number.isInteger(value) ? value.toFixed(1) : String(value))
const round = (value: number): number => Math.round(value * 100) / 100

const named = (id: Cell, name: Cell, more = ''): string | undefined =>
  given(id) ? `{"id":${id}${member('name', text(name))}${more}}` : undefined

/** The sentences a review is made of. */
export const phrasesOf = (row: ReviewRow): ReadonlyArray<Phrase> =>
  [row.first_phrase, row.second_phrase, row.third_phrase].flatMap((n) => (given(n) ? (phrases[Number(n)] ?? []) : []))

const moods = ['Extremely Negative', 'Negative', 'Neutral', 'Positive', 'Extremely Positive']
const moodOf = (score: number): string => moods[Math.min(4, Math.max(0, Math.round(score) - 1))] ?? 'Neutral'

const meanOf = (said: ReadonlyArray<Phrase>): number => said.reduce((sum, { score }) => sum + score, 0) / said.length

const rated = (row: ReviewRow, n: number, question: string, code: string, rating: Cell): ReadonlyArray<string> =>
  given(rating)
    ? [
        `{"id":${BigInt(row.id) * 10n + BigInt(n)},"question":"${question}","response":"${rating}","questionType":"Single Choice (Rating)","questionCode":"${code}"}`,
      ]
    : []

const sentiment = (
  row: ReviewRow,
  { feature, opinion, score, category, subCategory, tonality }: Phrase,
  n: number,
): string =>
  `{"id":${BigInt(row.id) * 100n + BigInt(n + 1)},"reviewId":${row.id},"feature":"${feature}","opinion":"${opinion}","score":${double(score)},"category":"${category}","subCategory":"${subCategory}","tonality":"${tonality}"}`

const severities = ['low', 'medium', 'high']

const liability = (row: ReviewRow): string | undefined => {
  const [category, justification, level] = given(row.liability) ? (liabilities[Number(row.liability)] ?? []) : []
  return level === undefined
    ? undefined
    : `[{"liabilityId":${2n ** 63n - 1n - BigInt(row.id)},"severity":{"level":${level},"name":"${severities[level - 1]}"},"categoryName":"${category}","justification":"${justification}"}]`
}

const written = (row: ReviewRow, said: ReadonlyArray<Phrase>): ReadonlyArray<string> => {
  if (said.length === 0) return []
  const mood = 1 + meanOf(said) * 0.8
  return [
    `{"id":${BigInt(row.id) * 10n + 3n}` +
      member('question', given(row.survey_bar_code) ? '"Please tell us about your visit."' : '"Review"') +
      member('response', JSON.stringify(commentOf(row))) +
      `,"questionType":"Free Form (Text Area)","questionCode":"COMMENT","noOfSentiments":${said.length}` +
      member('overallCommentSentiment', `{"score":${double(round(mood))},"label":"${moodOf(mood)}"}`) +
      member('sentiments', `[${said.map((phrase, n) => sentiment(row, phrase, n)).join(',')}]`) +
      `${member('liabilities', liability(row))}}`,
  ]
}

/** What the reviewer wrote. */
export const commentOf = (row: ReviewRow): string =>
  given(row.original_comment)
    ? String(row.original_comment)
    : phrasesOf(row)
        .map(({ sentence }) => sentence)
        .join(' ')

/** What was answered to the reviewer, and the comment that closed the task. */
export const answerOf = (row: ReviewRow): { readonly engagement: string; readonly closure: string } | undefined => {
  const [engagement, closure] = given(row.answer) ? (answers[Number(row.answer)] ?? []) : []
  return engagement === undefined || closure === undefined ? undefined : { engagement, closure }
}

const task = (row: ReviewRow): string | undefined => {
  if (!given(row.task_id)) return undefined
  const owner = given(row.task_owner) ? ownerAt(Number(row.task_owner)) : undefined
  const closure = row.task_status === 'completed' ? (answerOf(row)?.closure ?? 'Resolved.') : undefined
  return `{"id":${row.task_id}${member('status', text(row.task_status))}${member('ownerEmail', text(owner?.email ?? null))}${member('ownerName', text(owner?.name ?? null))}${member('closureComment', text(closure ?? null))}}`
}

const engagements = (row: ReviewRow): string => {
  const answer = answerOf(row)
  if (answer === undefined) return ''
  const name = BigInt(row.id) % 2n === 0n ? 'engagement' : 'engagements'
  return member(
    name,
    `[{"engagement":${JSON.stringify(answer.engagement)}${member('engagementTime', instant(row.answered))}}]`,
  )
}

const analysed = (row: ReviewRow, said: ReadonlyArray<Phrase>): string | undefined =>
  said.length > 0 && BigInt(row.id) % 7n === 0n
    ? `{"language":"en","emotion":"${meanOf(said) > 2.5 ? 'joy' : 'anger'}"}`
    : undefined

const made = (row: ReviewRow): string => {
  const said = phrasesOf(row)
  return [
    `{"id":${row.id}`,
    member('surveyBarCode', text(row.survey_bar_code)),
    member('location', named(row.location_id, row.location)),
    member('provider', named(row.provider_id, row.provider, member('npi', text(row.npi)))),
    member('source', named(row.source_id, row.source)),
    member('avatar', named(row.avatar_id, row.location, member('type', text(row.avatar_type)))),
    member('mentionTime', instant(row.mention)),
    member('modifiedTime', instant(row.modified)),
    member('rating', given(row.rating) ? double(Number(row.rating)) : undefined),
    member('reviewScore', said.length === 0 ? undefined : double(round(meanOf(said)))),
    `,"contents":[${[
      ...rated(row, 1, 'How courteous was our staff?', 'STAFF', row.staff_rating),
      ...rated(row, 2, 'How easy was it to get an appointment?', 'ACCESS', row.access_rating),
      ...written(row, said),
    ].join(',')}]`,
    member('taskDetails', task(row)),
    member('textAnalytics', analysed(row, said)),
    engagements(row),
  ].join('')
}

const brand = (row: ReviewRow): string | undefined => {
  if (given(row.original)) return given(row.original_brand) ? String(row.original_brand) : undefined
  const one = named(row.brand_id, row.brand)
  return one === undefined ? undefined : `[${one}]`
}

/** A review as operation 6 exports it: JSON text without nulls; brand and visitRecordId only if asked for. */
export const reviewText = (row: ReviewRow, additionalFields: ReadonlyArray<string>): string =>
  [
    given(row.original) ? String(row.original) : made(row),
    additionalFields.includes('visitRecordId') ? member('visitRecordId', text(row.visit_record_id)) : '',
    additionalFields.includes('brand') ? member('brand', brand(row)) : '',
    '}',
  ].join('')
