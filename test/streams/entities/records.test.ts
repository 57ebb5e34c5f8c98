import * as TE from 'fp-ts/TaskEither'
import { describe, expect, it } from 'vitest'
import { parseBody } from '../../../connector/api/route'
import type { Api } from '../../../connector/api/routes'
import { commentsStream, transparencyReviewsStream } from '../../../connector/streams/entities/operations'
import { entityRatingsStream } from '../../../connector/streams/entities/ratings'
import type { SourceEnv } from '../../../connector/streams/source-env'
import { createSourceEnv, readAll, selectEntities } from '../../support/in-process'

const now = Date.parse('2026-03-01T12:00:00Z')
const common = { mentionTime: '2026-02-01T10:00:00+02:00', source: 5, tone: null, overallRating: { value: 'good' } }
const comment = { ...common, id: 2n ** 62n + 1n, wordCount: 'many', mood: 'sunny', entityName: 'Mine' }
const review = { ...common, documentId: 3, comment: { commentId: 1, wordCount: 2.5 }, mood: 'sunny' }
const entity = {
  id: '7',
  name: 'Seven',
  totalCommentCount: 'lots',
  mood: 'sunny',
  VendorSealOfIntegrity: [1, { b: 2 }],
}

const api = {
  retrieveComments: () =>
    TE.right({ status: {}, servedAt: now, data: { entities: [{ ...entity, comments: [comment] }] } }),
  retrieveReviews: () =>
    TE.right({ status: {}, servedAt: now, data: { entities: [{ ...entity, reviews: [review] }] } }),
} as unknown as Api

const read = (onUnknown: SourceEnv['onUnknown']) => readFrom(api, onUnknown)

const readFrom = (service: Api, onUnknown: SourceEnv['onUnknown']) =>
  readAll(
    createSourceEnv(service, {
      now: () => now,
      onUnknown,
      startDate: Date.parse('2026-01-01T00:00:00Z'),
      entities: selectEntities({ persons: ['7'] }),
    }),
    [commentsStream, transparencyReviewsStream, entityRatingsStream],
  )

describe('a record of an entity', () => {
  it('has its entity, exact ids, times in UTC, and null with a change for each wrong value', async () => {
    const { records, messages, failures } = await read('keep')
    expect(failures).toEqual({})
    const columns = { entityType: 'person', entityId: '7', entityName: 'Seven' }
    const expected = {
      ...columns,
      mentionTime: '2026-02-01T08:00:00.000Z',
      source: null,
      overallRating: { value: null },
    }
    expect(records.comments).toEqual([
      { ...expected, id: 2n ** 62n + 1n, tone: null, wordCount: null, unknown_attributes: { mood: 'sunny' } },
    ])
    expect(records.transparency_reviews).toEqual([
      {
        ...expected,
        documentId: 3,
        tone: null,
        comment: { commentId: 1, wordCount: null },
        unknown_attributes: { mood: 'sunny' },
      },
    ])
    expect(records.entity_ratings).toEqual([
      {
        ...columns,
        totalCommentCount: null,
        VendorSealOfIntegrity: '[1,{"b":2}]',
        unknown_attributes: { mood: 'sunny' },
      },
    ])
    const changedFields = messages.flatMap((message) =>
      message._tag === 'Records'
        ? message.rows.map(({ changes = [] }) => changes.map(({ field }) => field).sort())
        : [],
    )
    expect(changedFields).toEqual([
      ['overallRating.value', 'source', 'wordCount'],
      ['comment.wordCount', 'overallRating.value', 'source'],
      ['totalCommentCount'],
    ])
  })

  it('has null with a change for a number that no double holds', async () => {
    const rows = ['1e400', '1e-400', '0e-400'].map(
      (value, id) => `{"id":${id},"mentionTime":"2026-02-01T10:00:00Z","overallRating":{"value":${value}}}`,
    )
    const text = `{"status":{},"servedAt":${now},"data":{"entities":[{"id":"7","comments":[${rows}]}]}}`
    const answer = parseBody(Buffer.from(text))
    const service = { ...api, retrieveComments: () => TE.fromEither(answer) } as unknown as Api
    const { records, messages } = await readFrom(service, 'keep')
    expect(records.comments?.map(({ overallRating }) => overallRating)).toEqual([
      { value: null },
      { value: null },
      { value: 0 },
    ])
    const changed = messages.flatMap((message) =>
      message._tag === 'Records' && message.stream === 'comments'
        ? message.rows.map(({ changes = [] }) => changes.map(({ field }) => field))
        : [],
    )
    expect(changed).toEqual([['overallRating.value'], ['overallRating.value'], []])
  })

  it('reports half a surrogate pair, which is sent as U+FFFD, as a change of its attribute', async () => {
    const halves = { ...common, source: 'a\ud800', tone: 'b\ufffd', overallRating: { value: 1 } }
    const answering = (entity: object) => () => TE.right({ status: {}, servedAt: now, data: { entities: [entity] } })
    const { records, messages } = await readFrom(
      {
        retrieveComments: answering({
          ...entity,
          totalCommentCount: 1,
          name: '\udfff',
          comments: [{ ...halves, id: 1, wordCount: 1, mood: ['\ud83d'] }],
        }),
        retrieveReviews: answering({
          ...entity,
          reviews: [{ ...halves, documentId: 3, comment: { comment: 'c\udc00' } }],
        }),
      } as unknown as Api,
      'keep',
    )
    expect(records.comments).toMatchObject([{ source: 'a\ufffd', entityName: '\ufffd' }])
    expect(records.transparency_reviews).toMatchObject([{ comment: { comment: 'c\ufffd' } }])
    const changes = messages.flatMap((message) =>
      message._tag === 'Records'
        ? message.rows.map((row) => (row.changes ?? []).map(({ field, change }) => `${field} ${change}`).sort())
        : [],
    )
    expect(changes).toEqual([
      ['entityName TRUNCATED', 'source TRUNCATED', 'unknown_attributes TRUNCATED'],
      ['comment.comment TRUNCATED', 'source TRUNCATED'],
      ['entityName TRUNCATED'],
    ])
  })

  it('is followed by one warning for each undeclared attribute', async () => {
    const { logs } = await read('keep')
    expect(logs.filter((line) => line.includes('mood'))).toEqual([
      expect.stringContaining('comments.mood'),
      expect.stringContaining('reviews.mood'),
      expect.stringContaining('entities.mood'),
    ])
  })

  it('has no undeclared attributes, or is not sent at all, as configured', async () => {
    const dropped = await read('drop')
    for (const rows of Object.values(dropped.records)) {
      expect(rows).toHaveLength(1)
      expect(rows[0]).not.toHaveProperty('unknown_attributes')
    }
    const failed = await read('fail')
    expect(failed.failures).toEqual({
      comments: expect.stringMatching(/comments\.mood.*set on_unknown_attribute to keep or drop/),
      transparency_reviews: expect.stringMatching(/reviews\.mood.*set on_unknown_attribute/),
      entity_ratings: expect.stringMatching(/entities\.mood.*set on_unknown_attribute/),
    })
    expect(Object.values(failed.records).flat()).toEqual([])
  })
})
