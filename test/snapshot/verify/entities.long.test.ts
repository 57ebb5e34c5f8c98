import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { syncCommand } from '../../../connector/cli/sync'
import type { Snapshot } from '../../../connector/snapshot/store/database'
import { runCheck } from '../../../connector/snapshot/verify/check'
import { readSnapshotStreams } from '../../../connector/snapshot/verify/checked-file'
import { relationChecks } from '../../../connector/snapshot/verify/relations'
import { verifySnapshot } from '../../../connector/snapshot/verify/verify'
import { newTempPath, writeTempFile } from '../../support/files'
import { runCommand } from '../../support/run-command'
import { startTestSandbox } from '../../support/sandbox'
import { openSnapshotFile } from '../../support/snapshot-messages'

const setRatingSql = (stream: string, column: string, path: string, value: number) =>
  `UPDATE ${stream}
   SET ${column} = replace(
     ${column}::VARCHAR, '"value":' || json_extract_string(${column}, '${path}'), '"value":${value}')::JSON
   WHERE (entityType, entityId) = ('location', '1001') AND json_extract_string(${column}, '${path}') IS NOT NULL`

/** A mutation of the file, the check that must fail, and the example that it must give. */
const mutations: ReadonlyArray<readonly [mutation: string, sql: string, check: string, example: RegExp]> = [
  [
    'comment rated out of 0..5',
    setRatingSql('comments', 'overallRating', '$.value', 7),
    'ratings of feedback',
    /^comments: entityType location entityId 1001 id \d+ has a rating 7\.0$/,
  ],
  [
    'question of a public review rated out of 0..5',
    setRatingSql('transparency_reviews', 'ratings', '$[1].value', -1),
    'ratings of feedback',
    /^transparency_reviews: entityType location entityId 1001 documentId \d+ has a rating -1\.0$/,
  ],
  [
    'category of an entity rated out of 0..5',
    setRatingSql('entity_ratings', 'ratings', '$[0].value', 50),
    'ratings of feedback',
    /^entity_ratings: entityType location entityId 1001 has a rating 50\.\d+$/,
  ],
  [
    'sentiment scored out of 0..5',
    'UPDATE review_sentiments SET score = 9 WHERE reviewId = (SELECT min(reviewId) FROM review_sentiments)',
    'ratings',
    /^review_sentiments: reviewId \d+ contentId \d+ id \d+ has score 9\.0$/,
  ],
  [
    'entity without a name',
    `UPDATE entity_ratings SET entityName = NULL WHERE entityId = '10'`,
    'entities have names',
    /^entity_ratings: entity entity 10$/,
  ],
  [
    'comment under an entity without a name',
    `UPDATE comments SET entityName = '' WHERE entityId = '1001'`,
    'entities have names',
    /^comments: entity location 1001$/,
  ],
  [
    'key of a comment twice',
    `INSERT INTO comments FROM comments WHERE entityId = '1001' LIMIT 1`,
    'keys are unique',
    /^comments: entityType location entityId 1001 id \d+ has 2 rows$/,
  ],
  [
    'entity without ratings',
    `DELETE FROM entity_ratings WHERE entityId = '1001'`,
    'entities with feedback have ratings',
    /^(comments|transparency_reviews): entity location 1001$/,
  ],
  [
    'entity without comments',
    `DELETE FROM comments WHERE entityId = '1002'`,
    'entities with ratings have comments',
    /^entity_ratings: entity location 1002 counts \d+ comments, none is here$/,
  ],
]

describe('the checks of entities', () => {
  let snapshot: Snapshot
  beforeAll(async () => {
    const sandbox = await startTestSandbox({ reviews: 80, years: 1, locations: 3, until: Date.now() - 3_600_000 })
    const db = newTempPath('duckdb')
    const config = writeTempFile({
      base_url: sandbox.url,
      credentials: { auth_type: 'access_token', access_token: sandbox.accessToken },
      start_date: '2010-01-01T00:00:00Z',
      entities: { location_ids: ['1001', '1002'], entity_ids: ['10'] },
    })
    const { status, stderr } = await runCommand(syncCommand, ['--config', config, '--db', db])
    expect(status, stderr).toBe(0)
    await sandbox.close()
    snapshot = await openSnapshotFile(db, 'change')
  })
  afterAll(() => snapshot.db.close())

  it('hold for a file that was read from the service, and each has something to check', async () => {
    const results = await verifySnapshot(snapshot)
    expect(results.filter(({ failures }) => failures > 0)).toEqual([])
    const active = results.flatMap(({ name, sql }) => (sql === undefined ? [] : [name]))
    for (const [, , check] of mutations) expect(active).toContain(check)
  })

  it.each(mutations)('find: %s', async (_mutation, sql, check, pattern) => {
    await snapshot.db.run('BEGIN')
    try {
      await snapshot.db.run(sql)
      const result = (await verifySnapshot(snapshot)).find(({ name }) => name === check)
      expect(result?.failures).toBeGreaterThan(0)
      expect(result?.examples.length).toBeGreaterThan(0)
      for (const example of result?.examples ?? []) expect(example).toMatch(pattern)
      expect(result?.ok).toBe(result?.note === true)
    } finally {
      await snapshot.db.run('ROLLBACK')
    }
  })

  it('find that half of each table of children is missing although the counts agree', async () => {
    const children = ['contents', 'sentiments', 'liabilities', 'tasks', 'engagements'].map((name) => `review_${name}`)
    const { db } = snapshot
    const before = (await verifySnapshot(snapshot)).find(({ name }) => name === 'children are complete')
    expect(before?.outcome).toBe('holds')
    for (const child of children) {
      await db.run('BEGIN')
      const rows = Number(await db.scalar(`SELECT count(*) FROM ${child}`))
      expect(rows, child).toBeGreaterThan(1)
      await db.run(`DELETE FROM ${child} WHERE rowid % 2 = 0`)
      const left = Number(await db.scalar(`SELECT count(*) FROM ${child}`))
      await db.run(`UPDATE _streams SET rows = ${left} WHERE stream = '${child}'`)
      const streams = await readSnapshotStreams(db)
      const check = relationChecks.find(({ name }) => name === 'children are complete')
      const result = check && (await runCheck(db, { declared: streams, streams, stateProblems: [] }, check))
      await db.run('ROLLBACK')
      expect(result, child).toMatchObject({ ok: false, failures: rows - left })
      expect(result?.examples[0]).toMatch(new RegExp(`^${child}: reviewId \\d+.* is missing$`))
    }
  })

  it('are not answered if a name is not text', async () => {
    await snapshot.db.run('BEGIN')
    await snapshot.db.run('ALTER TABLE comments ALTER "entityName" TYPE BIGINT USING 7')
    const result = (await verifySnapshot(snapshot)).find(({ name }) => name === 'entities have names')
    await snapshot.db.run('ROLLBACK')
    expect(result).toMatchObject({
      outcome: 'unanswered',
      ok: false,
      problem: expect.stringContaining('comments.entityName'),
    })
  })
})
