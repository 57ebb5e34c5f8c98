import { createHmac } from 'node:crypto'
import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import { startSandbox } from '../../connector/sandbox/start'
import { streams, streamsFor } from '../../connector/streams'
import { actionsOf, checkPrivacy, type Privacy } from '../../connector/streams/privacy'
import { readAll, sourceOf } from '../support/in-process'

const none: Privacy = { drop: [], hash: [], hashKey: undefined }

describe('checkPrivacy', () => {
  it.each<[string, Privacy, string]>([
    ['a path that does not exist', { ...none, drop: ['export.contents.mood'] }, 'there is no export.contents.mood'],
    ['a path without its resource', { ...none, drop: ['contents.response'] }, 'export.contents.response'],
    ['a key', { ...none, drop: ['export.id'] }, 'export.id is a key or a cursor'],
    ['a cursor', { ...none, hash: ['export.modifiedTime'], hashKey: 'k' }, 'is a key or a cursor'],
    ['the key of a child stream', { ...none, drop: ['export.contents.sentiments.id'] }, 'is a key or a cursor'],
    ['a hash of what streams are made of', { ...none, hash: ['export.contents'], hashKey: 'k' }, 'hash its attributes'],
    ['a hash without its key', { ...none, hash: ['export.visitRecordId'] }, 'privacy.hash_key is missing'],
  ])('refuses %s', (_, privacy, expected) => {
    const result = checkPrivacy(privacy, streams as never)
    expect(E.isLeft(result) && result.left.message).toContain(expected)
  })

  it('lets the rest pass', () => {
    const privacy = {
      drop: ['export.contents.response', 'export.location'],
      hash: ['export.taskDetails.ownerEmail'],
      hashKey: 'k',
    }
    expect(checkPrivacy(privacy, streams as never)).toEqual(E.right(privacy))
  })
})

describe('privacy', () => {
  const privacy: Privacy = {
    drop: ['export.contents.response', 'export.provider'],
    hash: ['export.taskDetails.ownerEmail', 'export.location.name'],
    hashKey: 'pepper',
  }

  it('says in every schema what then leaves', () => {
    const shaped = streamsFor({ privacy, tombstones: O.none, lookups: {} })
    if (E.isLeft(shaped)) throw new Error(shaped.left.message)
    const attribute = (stream: string, key: string) => {
      const found = shaped.right.find(({ name }) => name === stream)
      return ((found?.schema.properties ?? {}) as Record<string, { type?: unknown }>)[key]
    }
    expect(attribute('review_contents', 'response')).toBeUndefined()
    expect(attribute('review_contents', 'question')).toBeDefined()
    expect(attribute('reviews', 'provider')).toBeUndefined()
    expect(attribute('review_tasks', 'ownerEmail')?.type).toEqual(['null', 'string'])
    expect(attribute('locations', 'name')?.type).toEqual(['null', 'string'])
  })

  it('leaves nothing of it in any record', async () => {
    const sandbox = await startSandbox({ reviews: 300, until: Date.now() - 3_600_000 })
    const all = streams.filter(({ reader }) => reader === streams.find(({ name }) => name === 'reviews')?.reader)
    const open = await readAll(sourceOf(sandbox.api), all)
    const closed = await readAll(sourceOf(sandbox.api, { actions: actionsOf(privacy) }), all)
    await sandbox.close()
    const hidden = [
      ...(open.records.review_contents ?? []).map(({ response }) => response),
      ...(open.records.review_tasks ?? []).map(({ ownerEmail }) => ownerEmail),
    ].filter((text): text is string => typeof text === 'string' && text.length > 12)
    expect(hidden.length).toBeGreaterThan(100)
    const text = JSON.stringify(closed.records, (_, value) => (typeof value === 'bigint' ? String(value) : value))
    const leaks = [...new Set(hidden)].filter((secret) => text.includes(JSON.stringify(secret).slice(1, -1)))
    expect(leaks).toEqual([])
    expect(closed.records.locations?.map(({ name }) => String(name).length)).toEqual(
      closed.records.locations?.map(() => 64),
    )
    expect(closed.records.providers).toEqual([])
    const [before] = open.records.review_tasks ?? []
    expect(closed.records.review_tasks?.[0]).toMatchObject({
      ownerEmail: createHmac('sha256', 'pepper').update(String(before?.ownerEmail)).digest('hex'),
    })
  })
})
