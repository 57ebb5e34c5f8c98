import { createHmac } from 'node:crypto'
import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JsonSchema } from '../../connector/cdk/schema'
import { type Sandbox, startSandbox } from '../../connector/sandbox/start'
import { checkPrivacy, type PrivacySettings, privacyActions } from '../../connector/streams/privacy'
import { applyStreamSettings, streams } from '../../connector/streams/streams'
import { printExact } from '../support/destination'
import { readAll, sourceOf } from '../support/in-process'

const none: PrivacySettings = { drop: [], hash: [], hashKey: undefined }
const nobody = { locations: false, providers: 'none' } as const
type FromReviews = Parameters<typeof checkPrivacy>[2]

const refused = (privacy: PrivacySettings, fromReviews: FromReviews = nobody): string => {
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
      'a path of a stream of parts',
      { ...none, drop: ['review_tasks.ownerEmail'] },
      'there is no review_tasks.ownerEmail. Write export.taskDetails.ownerEmail',
    ],
    [
      'a path of nothing that is known',
      { ...none, drop: ['deleted_reviews.id'] },
      'Paths begin with export, comments, transparency_reviews, entity_ratings',
    ],
    [
      'an attribute of a comment that does not exist',
      { ...none, drop: ['comments.response.text'] },
      'there is no comments.response.text. comments.response holds responseText, respondedBy, respondedTime',
    ],
    [
      'what lies below a plain attribute',
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
    ['a hash of what streams are made of', { ...none, hash: ['export.contents'], hashKey: 'k' }, 'hash its attributes'],
    ['a hash without its key', { ...none, hash: ['export.visitRecordId'] }, 'privacy.hash_key is missing'],
  ])('refuses %s', (_, privacy, expected) => {
    expect(refused(privacy)).toContain(expected)
  })

  it.each<[string, PrivacySettings, FromReviews, string]>([
    [
      'the npi that persons are found by',
      { ...none, hash: ['export.provider.npi'], hashKey: 'k' },
      { locations: false, providers: 'npi' },
      'privacy.hash: export.provider.npi is what entities.from_reviews.providers finds entities by',
    ],
    [
      'the provider whose id persons are found by',
      { ...none, drop: ['export.provider'] },
      { locations: false, providers: 'id' },
      'privacy.drop: export.provider is what entities.from_reviews.providers finds entities by',
    ],
    [
      'the location that locations are found by',
      { ...none, drop: ['export.location'] },
      { locations: true, providers: 'none' },
      'privacy.drop: export.location is what entities.from_reviews.locations finds entities by',
    ],
  ])('refuses %s', (_, privacy, fromReviews, expected) => {
    expect(refused(privacy, fromReviews)).toContain(expected)
    expect(refused(privacy)).toBe('nothing is refused')
  })

  it('lets the rest pass', () => {
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
    sandbox = await startSandbox({ reviews: 300, locations: 4, until: Date.now() - 3_600_000 })
  })
  afterAll(() => sandbox.close())

  const read = (actions = {}) =>
    readAll(
      sourceOf(sandbox.api, {
        actions,
        entities: { persons: [], locations: [], entities: [], fromReviews: { locations: true, providers: 'none' } },
        feedback: { thresholds: {}, perPage: 100, days: 3650, lookbackDays: 3650 },
      }),
      streams,
    )

  it('says in every schema what then leaves', () => {
    const shaped = applyStreamSettings({ privacy, fromReviews: nobody, tombstones: O.none, lookups: {} })
    if (E.isLeft(shaped)) throw new Error(shaped.left.message)
    const attribute = (stream: string, ...path: ReadonlyArray<string>) =>
      path.reduce<JsonSchema | undefined>(
        (schema, key) =>
          ((schema?.items as JsonSchema) ?? schema)?.properties?.[key as never] as JsonSchema | undefined,
        shaped.right.find(({ name }) => name === stream)?.schema,
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

  it('leaves nothing of it in any record, note or state', async () => {
    const open = await read()
    const closed = await read(privacyActions(privacy))
    expect(closed.failures).toEqual({})
    const hidden = [
      ...(open.records.review_contents ?? []).map(({ response }) => response),
      ...(open.records.review_tasks ?? []).map(({ ownerEmail }) => ownerEmail),
      ...(open.records.comments ?? []).flatMap(({ comment, entityName }) => [comment, entityName]),
      ...(open.records.comments ?? []).map(({ response }) => (response as { responseText?: unknown })?.responseText),
      ...(open.records.transparency_reviews ?? []).map(({ surveyKey }) => surveyKey),
      ...(open.records.entity_ratings ?? []).map(({ reviewSummary }) => reviewSummary),
    ].filter((text): text is string => typeof text === 'string' && text.length > 12)
    expect(hidden.length).toBeGreaterThan(400)
    const text = printExact([closed.records, closed.logs, closed.state])
    const leaks = [...new Set(hidden)].filter((secret) => text.includes(JSON.stringify(secret).slice(1, -1)))
    expect(leaks).toEqual([])
    expect(closed.records.providers).toEqual([])
    expect(closed.records.locations?.map(({ name }) => name)).toEqual(
      open.records.locations?.map(({ name }) => hmac(name)),
    )
    expect(closed.records.review_tasks?.[0]).toMatchObject({
      ownerEmail: hmac(open.records.review_tasks?.[0]?.ownerEmail),
    })
    for (const stream of ['comments', 'transparency_reviews', 'entity_ratings'])
      expect(
        closed.records[stream]?.map(({ entityName }) => entityName),
        stream,
      ).toEqual(open.records[stream]?.map(({ entityName }) => hmac(entityName)))
    const ratingOf = ({ overallRating }: Record<string, unknown>) => (overallRating as { value?: unknown }).value
    expect(closed.records.comments?.map(ratingOf)).toEqual(open.records.comments?.map((row) => hmac(ratingOf(row))))
  })

  it('keeps a state from which nobody can tell what was withheld', async () => {
    const rows = [1, 2].map((n) => ({ id: n, mentionTime: '2026-01-01T00:00:00Z', comment: `words ${n}`, source: 'a' }))
    const stateFor = async (comment: string) => {
      const entity = { id: '7', name: 'Seven', totalPages: 1, comments: rows.map((row) => ({ ...row, comment })) }
      const { state } = await readAll(
        sourceOf(
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
            entities: { persons: ['7'], locations: [], entities: [], fromReviews: nobody },
          },
        ),
        streams.filter(({ name }) => name === 'comments'),
      )
      return state
    }
    expect(await stateFor('fine')).toEqual(await stateFor('awful'))
  })
})
