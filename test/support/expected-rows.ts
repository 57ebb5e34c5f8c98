import type { Truth } from '../../connector/sandbox/operations/truth'
import { type Fields, parseExact } from './destination'

type Content = Fields & { readonly sentiments?: ReadonlyArray<Fields>; readonly liabilities?: ReadonlyArray<Fields> }
type Review = Fields & {
  readonly contents?: ReadonlyArray<Content>
  readonly location?: Fields
  readonly provider?: Fields
  readonly source?: Fields
  readonly taskDetails?: Fields
  readonly engagements?: ReadonlyArray<Fields>
}

const renamed = ({ engagement, ...review }: Fields): Review =>
  (engagement === undefined ? review : { ...review, engagements: engagement }) as Review

const distinct = (rows: ReadonlyArray<Fields | undefined>): ReadonlyArray<Fields> => [
  ...new Map(rows.flatMap((row) => (row === undefined ? [] : [[JSON.stringify(row), row]]))).values(),
]

/**
 * The rows that a warehouse must have of the reviews export, computed from the service's data without the connector.
 */
export const expectedOfReviews = (
  truth: Pick<Truth, 'reviews'>,
  parse: (text: string) => unknown = parseExact,
): Readonly<Record<string, ReadonlyArray<Fields>>> => {
  const reviews = truth.reviews.map(({ json }) => renamed(parse(json) as Fields))
  const of = ({ id, modifiedTime }: Review) => ({ reviewId: id, reviewModifiedTime: modifiedTime })
  const contents = reviews.flatMap((review) => (review.contents ?? []).map((content) => ({ content, own: of(review) })))
  return {
    reviews,
    locations: distinct(reviews.map(({ location }) => location)),
    providers: distinct(reviews.map(({ provider }) => provider)),
    sources: distinct(reviews.map(({ source }) => source)),
    categories: distinct(
      contents.flatMap(({ content }) =>
        (content.sentiments ?? []).map(({ category, subCategory }) => ({
          id: [category, subCategory].filter(Boolean).join(' > '),
          category,
          subCategory: subCategory || null,
        })),
      ),
    ),
    questions: distinct(
      contents.map(({ content: { questionCode, question, questionType } }) =>
        questionCode === undefined
          ? undefined
          : {
              ...{ id: questionCode, questionCode, question, questionType },
              kind: /^Promoter/.test(String(questionType))
                ? 'promoter'
                : String(questionType).includes('Rating')
                  ? 'number'
                  : 'text',
            },
      ),
    ),
    review_contents: contents.map(({ content: { sentiments: _, liabilities: __, ...content }, own }) => ({
      ...content,
      ...own,
    })),
    review_sentiments: contents.flatMap(({ content, own }) =>
      (content.sentiments ?? []).map((one) => ({ ...one, contentId: content.id, ...own })),
    ),
    review_liabilities: contents.flatMap(({ content, own }) =>
      (content.liabilities ?? []).map((one) => ({ ...one, contentId: content.id, ...own })),
    ),
    review_tasks: reviews.flatMap((review) =>
      review.taskDetails === undefined ? [] : [{ ...review.taskDetails, ...of(review) }],
    ),
    review_engagements: reviews.flatMap((review) =>
      (review.engagements ?? []).map((one, position) => ({ ...one, position, ...of(review) })),
    ),
  }
}
