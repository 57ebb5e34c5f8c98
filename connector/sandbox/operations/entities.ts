import type * as t from 'io-ts'
import {
  type AnnotationResponse,
  type Comment,
  type EntitySummary,
  type Int64,
  type OverallRating,
  type Rating,
  type TransparencyReview,
  toInstant,
} from '../../api'
import { defined } from '../../cdk'
import { type Database, quoteLiteral } from '../../snapshot/store'
import { type ReviewCell, type ReviewRow, readReviewRows } from '../data/review-tables'
import { reviewAnswer, reviewComment, reviewPhrases } from '../data/review-text'
import { reviewSources } from '../data/vocabulary'

/** The requested identifiers of persons, locations and roll-ups. */
type RequestedIds = {
  readonly personId?: ReadonlyArray<string>
  readonly locationId?: ReadonlyArray<string>
  readonly entityId?: ReadonlyArray<string>
}

/** A requested entity that exists; `reviewCondition` is the SQL condition that selects its reviews. */
export type RequestedEntity = {
  /** The identifier in the request, which the answer repeats. */
  readonly id: string
  /** The service's own id. */
  readonly serviceId: number
  readonly name: string
  readonly isPerson: boolean
  readonly reviewCondition: string
}

/**
 * How to find entities, with the condition and the other column in `keys`: a person by id or npi, a location by id or
 * code, a roll-up by id.
 */
const idFamilies = {
  personId: {
    table: 'provider',
    keys: ['true', 'npi'],
    reviews: (id: string) => `provider_id = ${id}`,
  },
  locationId: {
    table: 'location',
    keys: ['active', 'code'],
    reviews: (id: string) => `location_id = ${id}`,
  },
  entityId: {
    table: 'region',
    keys: ['true', 'id::VARCHAR'],
    reviews: (id: string) => `location_id IN (SELECT id FROM location WHERE active AND region_id = ${id})`,
  },
} as const

const familyNames = ['personId', 'locationId', 'entityId'] as const

/** The number of identifiers in a request. */
export const countIds = (ids: RequestedIds): number =>
  familyNames.reduce((sum, name) => sum + (ids[name]?.length ?? 0), 0)

/** The requested entities that exist, in the order of the request. */
export const findEntities = async (database: Database, ids: RequestedIds): Promise<ReadonlyArray<RequestedEntity>> => {
  const entities: Array<RequestedEntity> = []
  for (const name of familyNames) {
    const requested = ids[name] ?? []
    if (requested.length === 0) continue
    const { table, keys, reviews } = idFamilies[name]
    const list = requested.map(quoteLiteral).join(', ')
    const rows = await database.query(`
      SELECT id::VARCHAR AS id, name, ${keys[1]} AS code
      FROM ${table}
      WHERE ${keys[0]} AND (id::VARCHAR IN (${list}) OR code IN (${list}))`)
    for (const id of requested) {
      const row = rows.find((one) => one.id === id || one.code === id)
      if (row === undefined) continue
      entities.push({
        id,
        serviceId: Number(row.id),
        name: String(row.name),
        isPerson: name === 'personId',
        reviewCondition: reviews(String(row.id)),
      })
    }
  }
  return entities
}

const questions = [
  ['Staff', 'staff_rating'],
  ['Access', 'access_rating'],
] as const

const starValues = [1, 2, 3, 4, 5] as const

/** The mean, the count and the distribution of the ratings; 0 means none. */
const toOverallRating = (name: string, all: ReadonlyArray<number>): OverallRating => {
  const rated = all.filter((rating) => rating > 0)
  const mean = rated.reduce((sum, rating) => sum + rating, 0) / Math.max(1, rated.length)
  return {
    name,
    value: Math.round(mean * 100) / 100,
    categoryResponseCount: rated.length,
    questionRatings: [],
    ratingDistribution: starValues.map((star) => ({
      ratingNum: star,
      ratingSurveyCount: rated.filter((rating) => rating === star).length,
    })),
  }
}

/** The summary of an entity's reviews that match the SQL condition `window`. Null attributes are kept. */
export const readEntitySummary = async (
  database: Database,
  entity: RequestedEntity,
  window: string,
  days: number | null,
  showRatings: boolean,
): Promise<EntitySummary> => {
  const rows = await database.query(
    `SELECT words > 0 AS comment, source_id, rating, ${questions.map(([, column]) => column).join(', ')}
     FROM review WHERE ${entity.reviewCondition} AND ${window}`,
  )
  const ratingsOf = (name: string, column: string): OverallRating =>
    toOverallRating(
      name,
      rows.map((row) => Number(row[column] ?? 0)),
    )
  const ratings = questions.map(([name, column]) => ratingsOf(name, column))
  const overall = ratingsOf('Overall', 'rating')
  const comments = rows.filter((row) => row.comment === true).length
  const surveys = rows.filter((row) => Number(row.source_id) === reviewSources[0]?.[0]).length
  return {
    id: entity.id,
    name: entity.name,
    reviewSummary: comments > 0 ? `${comments} patients wrote about ${entity.name}.` : null,
    lookBackWindow: days,
    totalRatingCount: overall.categoryResponseCount ?? null,
    totalCommentCount: comments,
    totalSurveyCount: surveys,
    overallRating: {
      ...overall,
      questionRatings: ratings.map(({ name, value, categoryResponseCount }) =>
        defined({ name, value, responseCount: categoryResponseCount }),
      ),
    },
    ratings: showRatings ? ratings : [],
    VendorSealOfIntegrity: surveys >= 10 ? { awarded: true, surveys } : null,
  }
}

/** A page of an entity's reviews, newest first; `where` is an SQL condition. */
type MentionPage = {
  readonly where: string
  readonly limit: number
  readonly offset: number
}

/** The reviews of a page, newest first. */
export const listMentions = (
  { where, limit, offset }: MentionPage,
  database: Database,
): Promise<ReadonlyArray<ReviewRow>> =>
  readReviewRows(
    database,
    'ORDER BY r.mention DESC, r.id DESC',
    `(SELECT * FROM review r WHERE ${where} ORDER BY mention DESC, id DESC LIMIT ${limit} OFFSET ${offset})`,
  )

const toText = (cell: ReviewCell): string | null => (typeof cell === 'string' ? cell : null)
const toInt64 = (id: bigint): Int64 => (id <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(id) : id)

/** The id of the comment among the contents of the export. */
const commentId = (row: ReviewRow): Int64 => toInt64(BigInt(row.id) * 10n + 3n)

const toRating = (name: string, value: ReviewCell): Rating => ({
  name,
  value: Number(value ?? 0),
  responseCount: 1,
})

const formatTime = (millis: ReviewCell): string => toInstant(Number(millis))

const toResponse = (row: ReviewRow): t.TypeOf<typeof AnnotationResponse> | null => {
  const answer = reviewAnswer(row)
  return answer === undefined
    ? null
    : { responseText: answer.engagement, respondedBy: 'Patient Relations', respondedTime: formatTime(row.answered) }
}

/** The attributes that comments and reviews have in common. Null attributes are kept. */
const commonAttributes = (row: ReviewRow, showRatings: boolean) => ({
  source: toText(row.source) ?? '',
  mentionTime: formatTime(row.mention),
  overallRating: toRating('Overall', row.rating),
  ratings:
    !showRatings || row.staff_rating === null
      ? []
      : [toRating('Staff', row.staff_rating), toRating('Access', row.access_rating)],
  response: toResponse(row),
  tone: reviewPhrases(row)[0]?.tonality ?? null,
  category: reviewPhrases(row)[0]?.category ?? null,
  varname: row.survey_bar_code === null ? null : 'COMMENT',
})

export const toComment = (row: ReviewRow, showRatings: boolean): Comment => ({
  id: commentId(row),
  surveyKey: toText(row.survey_bar_code),
  ...commonAttributes(row, showRatings),
  wordCount: Number(row.words ?? 0),
  comment: reviewComment(row),
})

export const toReview = (row: ReviewRow, showRatings: boolean): TransparencyReview => ({
  documentId: toInt64(BigInt(row.id)),
  surveyKey: toText(row.survey_bar_code) ?? '',
  ...commonAttributes(row, showRatings),
  comment: { commentId: commentId(row), wordCount: Number(row.words ?? 0), comment: reviewComment(row) },
})
