import { createHmac } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { reportAirbyteFailure } from '../../../connector/cdk/program/exit'
import {
  sourceCheckCommand,
  sourceDiscoverCommand,
  sourceReadCommand,
  tapCommand,
} from '../../../connector/cli/feedback-source'
import { queryCommand } from '../../../connector/cli/query'
import { syncCommand } from '../../../connector/cli/sync'
import { streams } from '../../../connector/streams/streams'
import { newTempPath, writeTempFile } from '../../support/files'
import { airbyteLines, airbyteRecords, singerLines } from '../../support/lines'
import { type ReceivedRequest, sendJson, startServer } from '../../support/listen'
import { runCommand } from '../../support/run-command'

const time = new Date(Date.now() - 3_600_000).toISOString()
const told = {
  words: 'The nurse forgot me twice',
  answer: 'Dear Rosalind, we are sorry',
  by: 'Wilhelmina Quickwater',
  name: 'Dr. Bartholomew Featherstone',
  key: 'SURVEY-KEY-4711',
  summary: 'Patients call him impatient',
}
const response = { responseText: told.answer, respondedBy: told.by, respondedTime: time }
const said = {
  mentionTime: time,
  surveyKey: told.key,
  source: 'Web',
  response,
  overallRating: { name: 'Overall', value: 4 },
}
const review = { id: 1, modifiedTime: time, mentionTime: time, provider: { id: 7, name: told.name, npi: '1234567890' } }

/** The service as the specification has it, with one review, one comment and one public review of one person. */
const service = () =>
  startServer(({ url, body }: ReceivedRequest, to: ServerResponse) => {
    if (url.startsWith('/api/reputation')) {
      const { modifiedTimeFrom, offset } = JSON.parse(body)
      const reviews = url.endsWith('/v1/reviews') && offset === 0 && modifiedTimeFrom < time ? [review] : []
      return sendJson(to, 200, { reviews, filter: JSON.parse(body) })
    }
    const comment = { ...said, id: 11, comment: told.words }
    const shown = { ...said, documentId: 12, comment: { commentId: 11, comment: told.words } }
    const entity = { id: '7', name: told.name, reviewSummary: told.summary, comments: [comment], reviews: [shown] }
    sendJson(to, 200, { status: { code: 200, message: 'success' }, data: { client: 'us', entities: [entity] } })
  })

const privacy = {
  drop: [
    ...['comments.comment', 'comments.response', 'entity_ratings.reviewSummary'],
    ...['transparency_reviews.comment.comment', 'transparency_reviews.response'],
  ],
  hash: [
    ...['comments.entityName', 'transparency_reviews.entityName', 'entity_ratings.entityName', 'export.provider.name'],
    ...['comments.surveyKey', 'transparency_reviews.surveyKey', 'comments.overallRating.value'],
  ],
  hash_key: 'pepper',
}
const hmac = (text: string) => createHmac('sha256', 'pepper').update(text).digest('hex')
const configured = (base_url: string, more: object = {}) => ({
  base_url,
  credentials: { auth_type: 'access_token', access_token: 'not-for-anybody' },
  start_date: '2024-01-01T00:00:00Z',
  entities: { person_ids: ['7'] },
  privacy,
  ...more,
})
const catalog = writeTempFile({
  streams: streams.map(({ name }) => ({ stream: { name, json_schema: {} }, sync_mode: 'incremental' })),
})

describe('an attribute that privacy hides', () => {
  it('appears in neither protocol, nor in the file, nor in a log', async () => {
    const { url } = await service()
    const config = writeTempFile(configured(url))
    const db = newTempPath('duckdb')
    const runs = {
      airbyte: await runCommand(sourceReadCommand, ['--config', config, '--catalog', catalog], {
        fail: reportAirbyteFailure,
      }),
      singer: await runCommand(tapCommand, ['--config', config]),
      sync: await runCommand(syncCommand, ['--config', config, '--db', db]),
    }
    for (const [name, { status, stdout, stderr }] of Object.entries(runs)) {
      expect(status, `${name}: ${stderr}`).toBe(0)
      for (const word of Object.values(told)) expect(stdout + stderr, name).not.toContain(word)
    }
    const comment = {
      id: 11,
      entityName: hmac(told.name),
      surveyKey: hmac(told.key),
      overallRating: { name: 'Overall', value: hmac('4') },
    }
    expect(airbyteRecords(runs.airbyte.stdout, 'comments')).toEqual([expect.objectContaining(comment)])
    for (const stream of ['reviews', 'providers', 'transparency_reviews', 'entity_ratings'])
      expect(airbyteRecords(runs.airbyte.stdout, stream), stream).toHaveLength(1)
    expect(
      singerLines(runs.singer.stdout).flatMap((line) =>
        line.type === 'RECORD' && line.stream === 'comments' ? line.record : [],
      ),
    ).toEqual([expect.objectContaining(comment)])
    const { stdout } = await runCommand(queryCommand, ['--db', db, '--json', 'SELECT * FROM comments'])
    expect(stdout).toContain(hmac(told.name))
    for (const word of Object.values(told)) expect(stdout).not.toContain(word)
  })

  it('is missing from discover if dropped, and a string if hashed', async () => {
    const { stdout } = await runCommand(sourceDiscoverCommand, [
      '--config',
      writeTempFile(configured('http://127.0.0.1:1')),
    ])
    const found = airbyteLines(stdout)[0]?.catalog?.streams.find(({ name }) => name === 'comments')
    const attributes = (found?.json_schema.properties ?? {}) as Record<string, { type?: unknown; properties?: object }>
    expect(Object.keys(attributes)).not.toContain('comment')
    expect(Object.keys(attributes)).not.toContain('response')
    expect(attributes.surveyKey?.type).toEqual(['null', 'string'])
    expect(attributes.overallRating?.properties).toMatchObject({ value: { type: ['null', 'string'] } })
  })

  it.each<[string, object, RegExp]>([
    [
      'a path that does not exist',
      { privacy: { drop: ['comments.text'] } },
      /privacy\.drop: there is no comments\.text\. comments holds .*comment/,
    ],
    ['a key', { privacy: { drop: ['comments.id'] } }, /comments\.id is a key or a cursor, which streams need/],
    [
      'the attribute that identifies persons',
      { privacy: { hash: ['export.provider.npi'], hash_key: 'k' }, entities: { from_reviews: { providers: 'npi' } } },
      /privacy\.hash: export\.provider\.npi is how entities\.from_reviews\.providers finds entities/,
    ],
  ])('is refused by check where it is %s', async (_, more, says) => {
    const { url, seen } = await service()
    const { status, stdout } = await runCommand(
      sourceCheckCommand,
      ['--config', writeTempFile(configured(url, more))],
      { fail: reportAirbyteFailure },
    )
    expect(status).toBe(0)
    expect(airbyteLines(stdout).map(({ connectionStatus }) => connectionStatus)).toEqual([
      { status: 'FAILED', message: expect.stringMatching(says) },
    ])
    expect(seen).toEqual([])
  })
})
