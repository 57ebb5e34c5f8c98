import type { EntitySummary } from '../api/model/entity'
import type { OverallRating } from '../api/model/rating'
import type { Database, RowValues } from '../snapshot/database'
import type { RequestedEntity } from './entities'
import { reviewSources } from './names'

const questions = [
  ['Staff', 'staff_rating'],
  ['Access', 'access_rating'],
] as const

const starValues = [1, 2, 3, 4, 5] as const

const ratingColumns = (column: string, as: string): string =>
  [
    `round(avg(${column}) FILTER (${column} > 0), 2) AS ${as}_value`,
    `count(*) FILTER (${column} > 0) AS ${as}_count`,
    ...starValues.map((star) => `count(*) FILTER (${column} = ${star}) AS ${as}_${star}`),
  ].join(', ')

const toOverallRating = (name: string, as: string, row: RowValues): OverallRating => ({
  name,
  value: Number(row[`${as}_value`] ?? 0),
  categoryResponseCount: Number(row[`${as}_count`]),
  questionRatings: [],
  ratingDistribution: starValues.map((star) => ({ ratingNum: star, ratingSurveyCount: Number(row[`${as}_${star}`]) })),
})

/** The summary of an entity over the reviews that `window` picks (Resources, EntitySummary); nulls are shown. */
export const readEntitySummary = async (
  database: Database,
  entity: RequestedEntity,
  window: string,
  days: number | null,
  showRatings: boolean,
): Promise<EntitySummary> => {
  const [row = {}] = await database.query(
    `SELECT count(*) FILTER (words > 0) AS comments, count(*) FILTER (source_id = ${reviewSources[0]?.[0]}) AS surveys,
       ${ratingColumns('rating', 'overall')}, ${questions.map(([, column]) => ratingColumns(column, column)).join(', ')}
     FROM review WHERE ${entity.reviewCondition} AND ${window}`,
  )
  const ratings = questions.map(([name, column]) => toOverallRating(name, column, row))
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
      ...toOverallRating('Overall', 'overall', row),
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
