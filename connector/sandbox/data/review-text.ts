import { toInstant } from '../../api'
import type { ReviewCell, ReviewRow } from './review-tables'
import { liabilities, operatorAnswers, type Phrase, phrases, taskOwner } from './vocabulary'

const isPresent = (cell: ReviewCell): boolean => cell !== null

/** A member of an object with its comma; empty if the value is null, which the service leaves out. */
const printMember = (name: string, json: string | undefined): string => (json === undefined ? '' : `,"${name}":${json}`)
const printText = (cell: ReviewCell): string | undefined => (isPresent(cell) ? JSON.stringify(cell) : undefined)
const printInstant = (cell: ReviewCell): string | undefined =>
  isPresent(cell) ? JSON.stringify(toInstant(Number(cell))) : undefined

/** A double with a decimal point, as the service prints it. */
const printDouble = (value: number): string => (Number.isInteger(value) ? value.toFixed(1) : String(value))
const roundScore = (value: number): number => Math.round(value * 100) / 100

const printReference = (id: ReviewCell, name: ReviewCell, more = ''): string | undefined =>
  isPresent(id) ? `{"id":${id}${printMember('name', printText(name))}${more}}` : undefined

/** The phrases that the review's comment consists of. */
export const reviewPhrases = (row: ReviewRow): ReadonlyArray<Phrase> =>
  [row.first_phrase, row.second_phrase, row.third_phrase].flatMap((n) =>
    isPresent(n) ? (phrases[Number(n)] ?? []) : [],
  )

const sentimentLabels = ['Extremely Negative', 'Negative', 'Neutral', 'Positive', 'Extremely Positive']
const sentimentLabel = (score: number): string =>
  sentimentLabels[Math.min(4, Math.max(0, Math.round(score) - 1))] ?? 'Neutral'

const meanScore = (commentPhrases: ReadonlyArray<Phrase>): number =>
  commentPhrases.reduce((sum, { score }) => sum + score, 0) / commentPhrases.length

const printRating = (
  row: ReviewRow,
  n: number,
  question: string,
  code: string,
  rating: ReviewCell,
): ReadonlyArray<string> =>
  isPresent(rating)
    ? [
        `{"id":${BigInt(row.id) * 10n + BigInt(n)},"question":"${question}","response":"${rating}",` +
          `"questionType":"Single Choice (Rating)","questionCode":"${code}"}`,
      ]
    : []

/** How likely the answerer of a survey is to recommend the place, from 0 to 10: about twice the rating. */
const printPromoter = (row: ReviewRow): ReadonlyArray<string> => {
  if (!isPresent(row.survey_bar_code) || !isPresent(row.rating)) return []
  const answer = Math.round(2 * Number(row.rating)) + Number(BigInt(row.id) % 3n) - 1
  return [
    `{"id":${BigInt(row.id) * 10n + 4n},"question":"How likely are you to recommend us?",` +
      `"response":"${Math.min(10, Math.max(0, answer))}","questionType":"Promoter (Radio)","questionCode":"RECOMMEND"}`,
  ]
}

/** If there is none, the service may leave it out or send an empty text. */
const printSubCategory = (subCategory: string, n: number): string =>
  subCategory === '' && n % 2 === 1 ? '' : `"subCategory":"${subCategory}",`

const printSentiment = (
  row: ReviewRow,
  { feature, opinion, score, category, subCategory, tonality }: Phrase,
  n: number,
): string =>
  `{"id":${BigInt(row.id) * 100n + BigInt(n + 1)},"reviewId":${row.id},"feature":"${feature}",` +
  `"opinion":"${opinion}","score":${printDouble(score)},"category":"${category}",` +
  `${printSubCategory(subCategory, n)}"tonality":"${tonality}"}`

const severities = ['low', 'medium', 'high']

const printLiabilities = (row: ReviewRow): string | undefined => {
  const [category, justification, level] = isPresent(row.liability) ? (liabilities[Number(row.liability)] ?? []) : []
  return level === undefined
    ? undefined
    : `[{"liabilityId":${2n ** 63n - 1n - BigInt(row.id)},` +
        `"severity":{"level":${level},"name":"${severities[level - 1]}"},` +
        `"categoryName":"${category}","justification":"${justification}"}]`
}

const printComment = (row: ReviewRow, commentPhrases: ReadonlyArray<Phrase>): ReadonlyArray<string> => {
  if (commentPhrases.length === 0) return []
  const sentiment = 1 + meanScore(commentPhrases) * 0.8
  return [
    `{"id":${BigInt(row.id) * 10n + 3n}` +
      printMember('question', isPresent(row.survey_bar_code) ? '"Please tell us about your visit."' : '"Review"') +
      printMember('response', JSON.stringify(reviewComment(row))) +
      `,"questionType":"Free Form (Text Area)","questionCode":"COMMENT","noOfSentiments":${commentPhrases.length}` +
      printMember(
        'overallCommentSentiment',
        `{"score":${printDouble(roundScore(sentiment))},"label":"${sentimentLabel(sentiment)}"}`,
      ) +
      printMember('sentiments', `[${commentPhrases.map((phrase, n) => printSentiment(row, phrase, n)).join(',')}]`) +
      `${printMember('liabilities', printLiabilities(row))}}`,
  ]
}

/** The reviewer's comment. */
export const reviewComment = (row: ReviewRow): string =>
  isPresent(row.original_comment)
    ? String(row.original_comment)
    : reviewPhrases(row)
        .map(({ sentence }) => sentence)
        .join(' ')

/** The operator's answer to the reviewer, and the comment that closes the task; undefined if there is none. */
export const reviewAnswer = (row: ReviewRow): { readonly engagement: string; readonly closure: string } | undefined => {
  const [engagement, closure] = isPresent(row.answer) ? (operatorAnswers[Number(row.answer)] ?? []) : []
  return engagement === undefined || closure === undefined ? undefined : { engagement, closure }
}

const printTask = (row: ReviewRow): string | undefined => {
  if (!isPresent(row.task_id)) return undefined
  const owner = isPresent(row.task_owner) ? taskOwner(Number(row.task_owner)) : undefined
  const closure = row.task_status === 'completed' ? (reviewAnswer(row)?.closure ?? 'Resolved.') : undefined
  return [
    `{"id":${row.task_id}`,
    printMember('status', printText(row.task_status)),
    printMember('ownerEmail', printText(owner?.email ?? null)),
    printMember('ownerName', printText(owner?.name ?? null)),
    printMember('closureComment', printText(closure ?? null)),
    '}',
  ].join('')
}

const printEngagements = (row: ReviewRow): string => {
  const answer = reviewAnswer(row)
  if (answer === undefined) return ''
  const name = BigInt(row.id) % 2n === 0n ? 'engagement' : 'engagements'
  return printMember(
    name,
    `[{"engagement":${JSON.stringify(answer.engagement)}${printMember('engagementTime', printInstant(row.answered))}}]`,
  )
}

const printTextAnalytics = (row: ReviewRow, commentPhrases: ReadonlyArray<Phrase>): string | undefined =>
  commentPhrases.length > 0 && BigInt(row.id) % 7n === 0n
    ? `{"language":"en","emotion":"${meanScore(commentPhrases) > 2.5 ? 'joy' : 'anger'}"}`
    : undefined

const printReview = (row: ReviewRow): string => {
  const commentPhrases = reviewPhrases(row)
  return [
    `{"id":${row.id}`,
    printMember('surveyBarCode', printText(row.survey_bar_code)),
    printMember('location', printReference(row.location_id, row.location)),
    printMember('provider', printReference(row.provider_id, row.provider, printMember('npi', printText(row.npi)))),
    printMember('source', printReference(row.source_id, row.source)),
    printMember('avatar', printReference(row.avatar_id, row.location, printMember('type', printText(row.avatar_type)))),
    printMember('mentionTime', printInstant(row.mention)),
    printMember('modifiedTime', printInstant(row.modified)),
    printMember('rating', isPresent(row.rating) ? printDouble(Number(row.rating)) : undefined),
    printMember(
      'reviewScore',
      commentPhrases.length === 0 ? undefined : printDouble(roundScore(meanScore(commentPhrases))),
    ),
    `,"contents":[${[
      ...printRating(row, 1, 'How courteous was our staff?', 'STAFF', row.staff_rating),
      ...printRating(row, 2, 'How easy was it to get an appointment?', 'ACCESS', row.access_rating),
      ...printComment(row, commentPhrases),
      ...printPromoter(row),
    ].join(',')}]`,
    printMember('taskDetails', printTask(row)),
    printMember('textAnalytics', printTextAnalytics(row, commentPhrases)),
    printEngagements(row),
  ].join('')
}

const printBrands = (row: ReviewRow): string | undefined => {
  if (isPresent(row.original)) return isPresent(row.original_brand) ? String(row.original_brand) : undefined
  const brand = printReference(row.brand_id, row.brand)
  return brand === undefined ? undefined : `[${brand}]`
}

/** A review as operation 6 exports it: JSON text without nulls, with brand and visitRecordId only if requested. */
export const reviewText = (row: ReviewRow, additionalFields: ReadonlyArray<string>): string =>
  [
    isPresent(row.original) ? String(row.original) : printReview(row),
    additionalFields.includes('visitRecordId') ? printMember('visitRecordId', printText(row.visit_record_id)) : '',
    additionalFields.includes('brand') ? printMember('brand', printBrands(row)) : '',
    '}',
  ].join('')
