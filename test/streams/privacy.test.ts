import { createHmac } from 'node:crypto'
import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JsonSchema } from '../../connector/cdk/schema'
import type { Sandbox } from '../../connector/sandbox/start'
import { checkPrivacy, type PrivacySettings, privacyActions } from '../../connector/streams/privacy'
import type { ReviewEntitySettings } from '../../connector/streams/source-env'
import { applyStreamSettings, streams } from '../../connector/streams/streams'
import { printExact } from '../support/destination'
import { createSourceEnv, locationsFromReviews, readAll, selectEntities } from '../support/in-process'
import { startTestSandbox } from '../support/sandbox'

const none: PrivacySettings = { drop: [], hash: [], hashKey: undefined }
const noReviewEntities: ReviewEntitySettings = { locations: false, providers: 'none' }

const refusalOf = (privacy: PrivacySettings, fromReviews: ReviewEntitySettings = noReviewEntities): string => {
  const result = checkPrivacy(privacy, streams as never, fromReviews)
  return E.isLeft(result) ? result.left.message : 'nothing is refused'
}

describe('checkPrivacy', () => {
  it.each<[string, PrivacySettings, string]>([
    [
      'a path that does not exist',
      { ...none, drop: ['export.contents.sentiments.mood'] },
      'there is no export.contents.sentiments.mood. export.contents.sentiments holds id, reviewId, feature, opinion',
    ],
    [
      'a path without its resource',
      { ...none, drop: ['contents.response'] },
      'there is no contents.response. Write export.contents.response',
    ],
    [
      'a path of a child stream',
      { ...none, drop: ['review_tasks.ownerEmail'] },
      'there is no review_tasks.ownerEmail. Write export.taskDetails.ownerEmail',
    ],
    [
      'a path of a stream that has nothing to hide',
      { ...none, drop: ['deleted_reviews.id'] },
      'Paths begin with export, comments, transparency_reviews, entity_ratings, managed_locations',
    ],
    [
      'an attribute of a comment that does not exist',
      { ...none, drop: ['comments.response.text'] },
      'there is no comments.response.text. comments.response holds responseText, respondedBy, respondedTime',
    ],
    [
      'a path below a plain attribute',
      { ...none, drop: ['comments.comment.text'] },
      'comments.comment holds no attributes',
    ],
    ['a key', { ...none, drop: ['export.id'] }, 'export.id is a key or a cursor'],
    ['a cursor', { ...none, hash: ['export.modifiedTime'], hashKey: 'k' }, 'is a key or a cursor'],
    ['the key of a child stream', { ...none, drop: ['export.contents.sentiments.id'] }, 'is a key or a cursor'],
    ['the entity of a comment', { ...none, drop: ['comments.entityId'] }, 'is a key or a cursor'],
    ['the cursor of comments', { ...none, drop: ['comments.mentionTime'] }, 'is a key or a cursor'],
    [
      'the key of a public review',
      { ...none, hash: ['transparency_reviews.documentId'], hashKey: 'k' },
      'is a key or a cursor',
    ],
    ['the entity of a rating', { ...none, drop: ['entity_ratings.entityType'] }, 'is a key or a cursor'],
    [
      'a hash of an attribute that child streams are made of',
      { ...none, hash: ['export.contents'], hashKey: 'k' },
      'hash its attributes',
    ],
    ['a hash without its key', { ...none, hash: ['export.visitRecordId'] }, 'privacy.hash_key is missing'],
  ])('refuses %s', (_, privacy, expected) => {
    expect(refusalOf(privacy)).toContain(expected)
  })

  it.each<[string, PrivacySettings, ReviewEntitySettings, string]>([
    [
      'the npi that persons are found by',
      { ...none, hash: ['export.provider.npi'], hashKey: 'k' },
      { locations: false, providers: 'npi' },
      'privacy.hash: export.provider.npi is how entities.from_reviews.providers finds entities',
    ],
    [
      'the provider whose id persons are found by',
      { ...none, drop: ['export.provider'] },
      { locations: false, providers: 'id' },
      'privacy.drop: export.provider is how entities.from_reviews.providers finds entities',
    ],
    [
      'the location that locations are found by',
      { ...none, drop: ['export.location'] },
      { locations: true, providers: 'none' },
      'privacy.drop: export.location is how entities.from_reviews.locations finds entities',
    ],
  ])('refuses %s', (_, privacy, fromReviews, expected) => {
    expect(refusalOf(privacy, fromReviews)).toContain(expected)
    expect(refusalOf(privacy)).toBe('nothing is refused')
  })

  it('accepts all other paths', () => {
    const privacy = {
      drop: ['export.contents.response', 'export.location', 'comments.comment', 'transparency_reviews.comment'],
      hash: ['export.taskDetails.ownerEmail', 'entity_ratings.entityName', 'export.provider.npi'],
      hashKey: 'k',
    }
    expect(checkPrivacy(privacy, streams as never, { locations: false, providers: 'id' })).toEqual(E.right(privacy))
  })
})

describe('privacy', () => {
  const privacy: PrivacySettings = {
    drop: [
      'export.contents.response',
      'export.provider',
      'export.avatar',
      'export.brand',
      'export.engagements.engagement',
      'comments.comment',
      'comments.response.responseText',
      'transparency_reviews.comment.comment',
      'transparency_reviews.response',
      'entity_ratings.reviewSummary',
    ],
    hash: [
      'export.taskDetails.ownerEmail',
      'export.location.name',
      'comments.entityName',
      'comments.overallRating.value',
      'transparency_reviews.entityName',
      'transparency_reviews.surveyKey',
      'entity_ratings.entityName',
      'entity_ratings.ratings.name',
    ],
    hashKey: 'pepper',
  }
  const hmac = (text: unknown) => createHmac('sha256', 'pepper').update(String(text)).digest('hex')

  let sandbox: Sandbox
  beforeAll(async () => {
    sandbox = await startTestSandbox({ reviews: 300, locations: 4, until: Date.now() - 3_600_000 })
  })
  afterAll(() => sandbox.close())

  const read = (actions = {}) =>
    readAll(
      createSourceEnv(sandbox.api, {
        actions,
        entities: locationsFromReviews,
        feedback: { thresholds: {}, perPage: 100, days: 3650, lookbackDays: 3650 },
      }),
      streams,
    )

  it('removes dropped attributes from every schema, and makes hashed ones strings', () => {
    const result = applyStreamSettings({ privacy, fromReviews: noReviewEntities, tombstones: O.none, lookups: {} })
    if (E.isLeft(result)) throw new Error(result.left.message)
    const attribute = (stream: string, ...path: ReadonlyArray<string>) =>
      path.reduce<JsonSchema | undefined>(
        (schema, key) =>
          ((schema?.items as JsonSchema) ?? schema)?.properties?.[key as never] as JsonSchema | undefined,
        result.right.find(({ name }) => name === stream)?.schema,
      )
    expect(attribute('review_contents', 'response')).toBeUndefined()
    expect(attribute('review_contents', 'question')).toBeDefined()
    expect(attribute('reviews', 'provider')).toBeUndefined()
    expect(attribute('review_tasks', 'ownerEmail')?.type).toEqual(['null', 'string'])
    expect(attribute('locations', 'name')?.type).toEqual(['null', 'string'])
    expect(attribute('comments', 'comment')).toBeUndefined()
    expect(attribute('comments', 'response', 'responseText')).toBeUndefined()
    expect(attribute('comments', 'response', 'respondedBy')).toBeDefined()
    expect(attribute('comments', 'overallRating', 'value')?.type).toEqual(['null', 'string'])
    expect(attribute('transparency_reviews', 'response')).toBeUndefined()
    expect(attribute('transparency_reviews', 'comment', 'comment')).toBeUndefined()
    expect(attribute('transparency_reviews', 'comment', 'wordCount')).toBeDefined()
    expect(attribute('entity_ratings', 'reviewSummary')).toBeUndefined()
    expect(attribute('entity_ratings', 'ratings', 'name')?.type).toEqual(['null', 'string'])
    expect(attribute('entity_ratings', 'overallRating', 'name')?.description).not.toContain('HMAC')
  })

  it('leaves no hidden text in any record, note or state', async () => {
    const original = await read()
    const hidden = await read(privacyActions(privacy))
    expect(hidden.failures).toEqual({})
    const secrets = [
      ...(original.records.review_contents ?? []).map(({ response }) => response),
      ...(original.records.review_tasks ?? []).map(({ ownerEmail }) => ownerEmail),
      ...(original.records.comments ?? []).flatMap(({ comment, entityName }) => [comment, entityName]),
      ...(original.records.comments ?? []).map(
        ({ response }) => (response as { responseText?: unknown })?.responseText,
      ),
      ...(original.records.transparency_reviews ?? []).map(({ surveyKey }) => surveyKey),
      ...(original.records.entity_ratings ?? []).map(({ reviewSummary }) => reviewSummary),
    ].filter((text): text is string => typeof text === 'string' && text.length > 12)
    expect(secrets.length).toBeGreaterThan(400)
    const text = printExact([hidden.records, hidden.logs, hidden.state])
    const leaks = [...new Set(secrets)].filter((secret) => text.includes(JSON.stringify(secret).slice(1, -1)))
    expect(leaks).toEqual([])
    expect(hidden.records.providers).toEqual([])
    expect(hidden.records.locations?.map(({ name }) => name)).toEqual(
      original.records.locations?.map(({ name }) => hmac(name)),
    )
    expect(hidden.records.review_tasks?.[0]).toMatchObject({
      ownerEmail: hmac(original.records.review_tasks?.[0]?.ownerEmail),
    })
    for (const stream of ['comments', 'transparency_reviews', 'entity_ratings'])
      expect(
        hidden.records[stream]?.map(({ entityName }) => entityName),
        stream,
      ).toEqual(original.records[stream]?.map(({ entityName }) => hmac(entityName)))
    const ratingOf = ({ overallRating }: Record<string, unknown>) => (overallRating as { value?: unknown }).value
    expect(hidden.records.comments?.map(ratingOf)).toEqual(original.records.comments?.map((row) => hmac(ratingOf(row))))
  })

  it('keeps a state that does not depend on what was dropped', async () => {
    const rows = [1, 2].map((n) => ({ id: n, mentionTime: '2026-01-01T00:00:00Z', comment: `words ${n}`, source: 'a' }))
    const stateFor = async (comment: string) => {
      const entity = { id: '7', name: 'Seven', totalPages: 1, comments: rows.map((row) => ({ ...row, comment })) }
      const { state } = await readAll(
        createSourceEnv(
          {
            retrieveComments: () => async () =>
              E.right({
                status: {},
                data: { entities: [entity] },
                servedAt: Date.parse('2026-01-02T00:00:00Z'),
              }) as never,
          },
          {
            now: () => Date.parse('2026-01-02T00:00:00Z'),
            actions: privacyActions({ ...none, drop: ['comments.comment'] }),
            entities: selectEntities({ persons: ['7'] }),
          },
        ),
        streams.filter(({ name }) => name === 'comments'),
      )
      return state
    }
    expect(await stateFor('fine')).toEqual(await stateFor('awful'))
  })
})
