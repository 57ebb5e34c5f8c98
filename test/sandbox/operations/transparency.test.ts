import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type {
  Comment,
  CommentsFilter,
  EntitySummary,
  ReviewsFilter,
  TransparencyReview,
} from '../../../connector/api/model/entity'
import { type Sandbox, startSandbox } from '../../../connector/sandbox/start'
import { getPath, operationPaths, postJson, readJsonAnswer } from '../../support/sandbox'

const until = Date.parse('2026-06-01T00:00:00Z')
const day = 86_400_000

type Envelope<Row, Filter> = {
  readonly status: { readonly code: unknown; readonly message: string; readonly type: unknown }
  readonly data: { readonly client: string; readonly entities: ReadonlyArray<Row>; readonly filter: Filter }
}
type Reviews = Envelope<EntitySummary & { readonly reviews: ReadonlyArray<TransparencyReview> }, ReviewsFilter>
type Comments = Envelope<
  EntitySummary & { readonly comments: ReadonlyArray<Comment>; readonly totalPages: number },
  CommentsFilter
>

/** A review in the export. */
type Exported = {
  readonly id: number
  readonly mentionTime: string
  readonly rating: number
  readonly location: { readonly id: number }
  readonly provider?: { readonly id: number; readonly npi: string }
  readonly source: { readonly name: string }
  readonly contents: ReadonlyArray<{ readonly questionCode: string; readonly response: string }>
}

let sandbox: Sandbox
let exported: ReadonlyArray<Exported>
beforeAll(async () => {
  sandbox = await startSandbox({ reviews: 2000, locations: 6, providers: 5, until, now: () => until })
  exported = (await sandbox.truth()).reviews.map(({ json }) => JSON.parse(json))
})
afterAll(() => sandbox.close())

const requestReviews = (body: object) =>
  readJsonAnswer<Reviews>(postJson(sandbox, operationPaths.retrieveReviews, body))
const requestComments = (query: string) =>
  readJsonAnswer<Comments>(getPath(sandbox, `${operationPaths.comments}?${query}`))
const postForm = (body: string, query = '') =>
  postJson(sandbox, operationPaths.comments + query, body, { 'Content-Type': 'application/x-www-form-urlencoded' })

const commentOf = ({ contents }: Exported) => contents.find(({ questionCode }) => questionCode === 'COMMENT')?.response
const withComment = (all: ReadonlyArray<Exported>) => all.filter((review) => commentOf(review) !== undefined)
const reviewsOf = (location: number, days = 365) =>
  exported.filter((review) => review.location.id === location && Date.parse(review.mentionTime) >= until - days * day)
const newestFirst = (all: ReadonlyArray<Exported>) =>
  [...all].sort((a, b) => Date.parse(b.mentionTime) - Date.parse(a.mentionTime) || b.id - a.id)

describe('the summary of an entity', () => {
  it('is computed from the reviews in the window', async () => {
    const { data } = await requestReviews({ locationId: '1001' })
    const all = reviewsOf(1001)
    const rated = all.filter(({ rating }) => rating > 0)
    const surveys = all.filter(({ source }) => source.name === 'Survey')
    const [entity] = data.entities
    expect(entity).toMatchObject({
      id: '1001',
      lookBackWindow: 365,
      totalRatingCount: rated.length,
      totalCommentCount: withComment(all).length,
      totalSurveyCount: surveys.length,
    })
    const mean = rated.reduce((sum, { rating }) => sum + rating, 0) / rated.length
    expect(entity?.overallRating?.value).toBeCloseTo(mean, 1)
    expect(entity?.overallRating?.categoryResponseCount).toBe(rated.length)
    expect(entity?.overallRating?.ratingDistribution).toEqual(
      [1, 2, 3, 4, 5].map((star) => ({
        ratingNum: star,
        ratingSurveyCount: rated.filter(({ rating }) => rating === star).length,
      })),
    )
    const staff = surveys.map(({ contents }) =>
      Number(contents.find(({ questionCode }) => questionCode === 'STAFF')?.response),
    )
    const [question] = entity?.overallRating?.questionRatings ?? []
    expect(question).toMatchObject({ name: 'Staff', responseCount: staff.length })
    expect(question?.value).toBeCloseTo(staff.reduce((sum, rating) => sum + rating, 0) / staff.length, 1)
    expect(entity?.ratings?.map(({ name }) => name)).toEqual(['Staff', 'Access'])
  })

  it('can be of a person by id or npi, a location by id or code, a roll-up by id', async () => {
    const provider = exported.find((review) => review.provider !== undefined)?.provider
    const [byId, byNpi] = [
      await requestReviews({ personId: String(provider?.id) }),
      await requestReviews({ personId: provider?.npi }),
    ]
    expect(byNpi.data.entities[0]).toEqual({ ...byId.data.entities[0], id: provider?.npi })
    expect(byId.data.filter.person).toBe(true)
    const byCode = await requestReviews({ locationId: 'LOC-1002' })
    expect(byCode.data.entities[0]?.totalRatingCount).toBe(reviewsOf(1002).filter(({ rating }) => rating > 0).length)
    expect(byCode.data.filter.person).toBe(false)
    // Locations 1001 and 1006 are in region 10.
    const { data } = await requestReviews({ entityId: '10' })
    expect(data.entities[0]?.totalCommentCount).toBe(withComment([...reviewsOf(1001), ...reviewsOf(1006)]).length)
  })

  it('is left out if the entity has too few surveys or ratings', async () => {
    const { data } = await requestReviews({ locationId: '1001' })
    const [entity] = data.entities
    const surveys = Number(entity?.totalSurveyCount)
    const countShown = async (filter: object) =>
      (await requestReviews({ locationId: '1001', ...filter })).data.entities.length
    expect(await countShown({ minSurveyCount: surveys })).toBe(1)
    expect(await countShown({ minSurveyCount: surveys + 1 })).toBe(0)
    expect(await countShown({ minRatingCount: Number(entity?.totalRatingCount) + 1 })).toBe(0)
  })
})

describe('the reviews of operation 1', () => {
  it('are the reviews of the export, newest first, with null attributes', async () => {
    const { status, data } = await requestReviews({ locationId: '1001', perPage: 100 })
    expect(status).toEqual({ code: 200, message: 'SUCCESS', type: null })
    const all = newestFirst(reviewsOf(1001)).slice(0, 100)
    const listed = data.entities[0]?.reviews ?? []
    expect(listed.map(({ documentId }) => documentId)).toEqual(all.map(({ id }) => id))
    expect(listed.map(({ comment }) => comment?.comment)).toEqual(all.map((review) => commentOf(review) ?? ''))
    expect(listed.map(({ comment }) => comment?.wordCount)).toEqual(
      all.map((review) => commentOf(review)?.split(' ').length ?? 0),
    )
    expect(listed.map(({ overallRating }) => overallRating?.value)).toEqual(all.map(({ rating }) => rating))
    expect(listed.some(({ response }) => response === null)).toBe(true)
    expect(listed.some(({ response }) => typeof response?.responseText === 'string')).toBe(true)
  })

  it('are in pages from 0, of 20 reviews by default, or continue after a scrollKey', async () => {
    const all = newestFirst(reviewsOf(1001)).map(({ id }) => id)
    const ids = ({ data }: Reviews) => data.entities[0]?.reviews.map(({ documentId }) => documentId)
    const first = await requestReviews({ locationId: '1001' })
    expect(ids(first)).toEqual(all.slice(0, 20))
    expect(ids(await requestReviews({ locationId: '1001', page: 1, perPage: 30 }))).toEqual(all.slice(30, 60))
    const next = await requestReviews({ locationId: '1001', scrollKey: first.data.filter.scrollKey ?? '' })
    expect(ids(next)).toEqual(all.slice(20, 40))
    const scrolledIds: Array<unknown> = []
    for (let key: string | null | undefined = ''; key !== null && key !== undefined; ) {
      const page: Reviews = await requestReviews({
        locationId: '1001',
        perPage: 33,
        ...(key === '' ? {} : { scrollKey: key }),
      })
      scrolledIds.push(...(ids(page) ?? []))
      key = page.data.filter.scrollKey
    }
    expect(scrolledIds).toEqual(all)
  })

  it('are filtered by days, dates, rating and words, and can be left out', async () => {
    const listed = async (filter: object) =>
      (await requestReviews({ locationId: '1001', perPage: 100, ...filter })).data.entities[0]?.reviews.map(
        ({ documentId }) => documentId,
      )
    const expected = (all: ReadonlyArray<Exported>) => newestFirst(all).map(({ id }) => id)
    expect(await listed({ days: 30 })).toEqual(expected(reviewsOf(1001, 30)))
    expect(await listed({ minThreshold: 4, days: 200 })).toEqual(
      expected(reviewsOf(1001, 200).filter(({ rating }) => rating >= 4)),
    )
    const long = reviewsOf(1001, 200).filter((review) => (commentOf(review)?.split(' ').length ?? 0) >= 20)
    expect(await listed({ minWordCount: 20, days: 200 })).toEqual(expected(long))
    const [fromDate, toDate] = ['2025-01-01T00:00:00Z', '2025-03-01T00:00:00.000Z']
    const winter = exported.filter(
      ({ location, mentionTime }) => location.id === 1001 && mentionTime >= fromDate && mentionTime <= toDate,
    )
    expect(await listed({ fromDate, toDate, days: 1 })).toEqual(expected(winter))
    expect(await listed({ fromDate, days: 30 })).toEqual(expected(reviewsOf(1001, 30)))
    expect(await listed({ showReviews: false })).toEqual([])
    const { data } = await requestReviews({ locationId: '1001', showRatings: false })
    expect([data.entities[0]?.ratings, data.entities[0]?.reviews.flatMap(({ ratings }) => ratings ?? [])]).toEqual([
      [],
      [],
    ])
  })

  it('have the applied filter in the answer, also a reduced page size', async () => {
    const { data } = await requestReviews({ locationId: '1001', perPage: 5000, minWordCount: 3 })
    expect(data.client).toBe('sandbox')
    expect(data.filter).toMatchObject({
      entityId: 1001,
      person: false,
      perPage: 100,
      days: 365,
      minThreshold: 0,
      minRatingCount: -1,
      minSurveyCount: 0,
      minWordCount: 3,
      showReviews: true,
      showRatings: true,
      fromDate: null,
      toDate: null,
      period: { from: '2025-06-01T00:00:00.000Z', to: '2026-06-01T00:00:00.000Z' },
    })
  })
})

describe('the comments of operations 2 and 3', () => {
  it('are the reviews with a comment, in pages from 1', async () => {
    const { status, data } = await requestComments('locationId=1001&perPage=15&page=2')
    expect(status).toEqual({ code: '200', message: 'success', type: null })
    const all = newestFirst(withComment(reviewsOf(1001)))
    const [entity] = data.entities
    expect(entity?.comments.map(({ comment }) => comment)).toEqual(all.slice(15, 30).map(commentOf))
    expect(entity?.totalPages).toBe(Math.ceil(all.length / 15))
    expect(data.filter).toMatchObject({ page: 2, perPage: 15, days: 365, showComments: true, configVersion: null })
  })

  it('are the same by query, by form, and by query instead of the form in the body', async () => {
    const byQuery = await requestComments('locationId=1002&days=200&minThreshold=3')
    expect(await readJsonAnswer(postForm('locationId=1002&days=200&minThreshold=3'))).toEqual(byQuery)
    expect(await readJsonAnswer(postForm('', '?locationId=1002&days=200&minThreshold=3'))).toEqual(byQuery)
    expect(await readJsonAnswer(postForm('locationId=1001', '?locationId=1002&days=200&minThreshold=3'))).toEqual(
      byQuery,
    )
  })

  it('can be of several entities by form, without the unknown ones', async () => {
    const { data } = await readJsonAnswer<Comments>(
      postForm('locationId=1001&locationId=nowhere&locationId=1002&entityId=10'),
    )
    expect(data.entities.map(({ id }) => id)).toEqual(['1001', '1002', '10'])
    expect(data.entities.every((entity) => entity.comments.length > 0)).toBe(true)
  })

  it('can be left out', async () => {
    const { data } = await requestComments('locationId=1001&showComments=false')
    expect(data.entities[0]?.comments).toEqual([])
    expect(data.entities[0]?.totalCommentCount).toBe(withComment(reviewsOf(1001)).length)
  })
})

describe('a request that cannot be answered', () => {
  it.each([
    ['no identifier', '', 400],
    ['page 0 of comments', 'locationId=1001&page=0', 400],
    ['a page in words', 'locationId=1001&page=two', 400],
    ['two values for one identifier', 'locationId=1001&locationId=1002', 400],
    ['a time that is no time', 'locationId=1001&fromDate=yesterday&toDate=today', 400],
    ['a threshold of 6', 'locationId=1001&minThreshold=6', 400],
    ['perPage 0', 'locationId=1001&perPage=0', 400],
  ])('is refused with %s', async (_, query, status) => {
    const response = await getPath(sandbox, `${operationPaths.comments}?${query}`)
    expect(response.status).toBe(status)
    expect(await readJsonAnswer(response)).toMatchObject({ status: { code: status, message: expect.any(String) } })
  })

  it('gets an application error with status 200 if no requested entity exists', async () => {
    const response = await getPath(sandbox, `${operationPaths.comments}?locationId=nowhere`)
    expect(response.status).toBe(200)
    expect(await readJsonAnswer(response)).toEqual({
      status: { code: 'ENTITY_NOT_FOUND', message: 'Entity not found', type: 'ERROR' },
    })
  })

  it('is refused with status 413 if it has more identifiers than the limit', async () => {
    const requestMany = (count: number) => postForm(Array.from({ length: count }, () => 'locationId=1001').join('&'))
    expect((await requestMany(50)).status).toBe(200)
    const refused = await requestMany(51)
    expect(refused.status).toBe(413)
    expect(await readJsonAnswer(refused)).toMatchObject({ status: { code: 413 } })
  })
})

it('the lookups list sources and categories', async () => {
  expect(await readJsonAnswer(getPath(sandbox, operationPaths.lookupSources))).toEqual({
    sources: expect.arrayContaining([{ id: 101, name: 'Survey' }]),
  })
  expect(await readJsonAnswer(getPath(sandbox, '/api/reputation/v1/lookup/categories'))).toEqual({
    categories: expect.arrayContaining([{ id: expect.any(Number), category: 'Staff', subCategory: 'Courtesy' }]),
  })
})
