import type { EntitySummary } from '../api/model/entity'
import type { OverallRating } from '../api/model/rating'
import type { Cells, Database } from '../snapshot/database'
import type { Found } from './entities'
import { sources } from './names'

const questions = [
  ['Staff', 'staff_rating'],
  ['Access', 'access_rating'],
] as const

const stars = [1, 2, 3, 4, 5] as const

const measured = (column: string, as: string): string =>
  [
    `round(avg(${column}) FILTER (${column} > 0), 2) AS ${as}_value`,
    `count(*) FILTER (${column} > 0) AS ${as}_count`,
    ...stars.map((star) => `count(*) FILTER (${column} = ${star}) AS ${as}_${star}`),
  ].join(', ')

const read = (name: string, as: string, row: Cells): OverallRating => ({
  name,
  value: Number(row[`${as}_value`] ?? 0),
  categoryResponseCount: Number(row[`${as}_count`]),
  questionRatings: [],
  ratingDistribution: stars.map((star) => ({ ratingNum: star, ratingSurveyCount: Number(row[`${as}_${star}`]) })),
})

/** The summary of an entity over the reviews that `window` picks (Resources, EntitySummary); nulls are shown. */
export const summaryOf = async (
  database: Database,
  entity: Found,
  window: string,
  days: number | null,
  showRatings: boolean,
): Promise<EntitySummary> => {
  const [row = {}] = await database.query(
    `SELECT count(*) FILTER (words > 0) AS comments, count(*) FILTER (source_id = ${sources[0]?.[0]}) AS surveys,
       ${measured('rating', 'overall')}, ${questions.map(([, column]) => measured(column, column)).join(', ')}
     FROM review WHERE ${entity.reviews} AND ${window}`,
  )
  const ratings = questions.map(([name, column]) => read(name, column, row))
  const comments = Number(row.comments)
  return {
    id: entity.id,
    name: entity.name,
    reviewSummary: comments > 0 ? `${comments} patients wrote about ${entity.name}.` : null,
    lookBackWindow: days,
    totalRatingCount: Number(row.overall_count),
    totalCommentCount: comments,
    totalSurveyCount: Number(row.surveys),
    overallRating: {
      ...read('Overall', 'overall', row),
      questionRatings: ratings.map(({ name, value, categoryResponseCount }) => ({
        ...(name === undefined ? {} : { name }),
        ...(value === undefined ? {} : { value }),
        ...(categoryResponseCount === undefined ? {} : { responseCount: categoryResponseCount }),
      })),
    },
    ratings: showRatings ? ratings : [],
    VendorSealOfIntegrity: Number(row.surveys) >= 10 ? { awarded: true, surveys: Number(row.surveys) } : null,
  }
}
