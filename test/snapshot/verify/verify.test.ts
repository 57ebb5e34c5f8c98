import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Snapshot } from '../../../connector/snapshot/store/database'
import { entityChecks } from '../../../connector/snapshot/verify/entities'
import { countChecks, verifySnapshot } from '../../../connector/snapshot/verify/verify'
import {
  checkpointMessage,
  contentJson,
  createStreamInfo,
  deletedReviewsInfo,
  finishedMessage,
  instantSchema,
  integerSchema,
  openMemorySnapshot,
  recordsMessage,
  reviewContentsInfo,
  reviewJson,
  reviewProperties,
  reviewsInfo,
  startedMessage,
  timeAtMinute,
  writeMessages,
} from '../../support/snapshot-messages'

const locations = createStreamInfo(
  'locations',
  { id: integerSchema, name: { type: 'string' }, reviewModifiedTime: instantSchema },
  ['id'],
  'reviewModifiedTime',
)
const tombstoneReviews = createStreamInfo(
  'reviews',
  { ...reviewProperties, contents: { type: ['null', 'array'] }, _ab_cdc_deleted_at: instantSchema },
  ['id'],
  'modifiedTime',
)
const locatedReview = (id: number, minute: number) =>
  JSON.stringify({
    id,
    modifiedTime: timeAtMinute(minute),
    rating: 4,
    text: 'fine',
    location: { id: id % 2, name: 'North' },
    contents: [{ id: 1 }, { id: 2 }],
  })

/** Reviews 1 to 4; 4 is deleted, and each other one has two contents. */
const buildSnapshot = async (): Promise<Snapshot> => {
  const snapshot = await openMemorySnapshot()
  await writeMessages(snapshot, [
    startedMessage(deletedReviewsInfo()),
    startedMessage(tombstoneReviews),
    startedMessage(reviewContentsInfo()),
    startedMessage(locations),
    recordsMessage('reviews', locatedReview(4, 1)),
    recordsMessage('deleted_reviews', reviewJson(4, 2)),
    checkpointMessage('deleted_reviews', { modifiedTimeFrom: timeAtMinute(2) }, 1),
    finishedMessage('deleted_reviews'),
    recordsMessage('reviews', locatedReview(1, 3), locatedReview(2, 4), locatedReview(3, 5)),
    checkpointMessage('reviews', { modifiedTimeFrom: timeAtMinute(5) }, 4),
    recordsMessage(
      'review_contents',
      ...[1, 2, 3].flatMap((id) => [contentJson(id, id + 2, 1), contentJson(id, id + 2, 2)]),
    ),
    checkpointMessage('review_contents', { modifiedTimeFrom: timeAtMinute(5) }, 6),
    recordsMessage(
      'locations',
      `{"id":0,"name":"North","reviewModifiedTime":"${timeAtMinute(4)}"}`,
      `{"id":1,"name":"South","reviewModifiedTime":"${timeAtMinute(5)}"}`,
    ),
    checkpointMessage('locations', { modifiedTimeFrom: timeAtMinute(5) }, 2),
    ...['reviews', 'review_contents', 'locations'].map(finishedMessage),
  ])
  return snapshot
}

const listFailures = async (snapshot: Snapshot) =>
  Object.fromEntries(
    (await verifySnapshot(snapshot)).flatMap(({ name, ok, examples }) => (ok ? [] : [[name, examples]])),
  )

/** SQL that makes the counts in the metadata tables agree with a table that was changed by hand. */
const fixBooksSql = (stream: string) => `
  UPDATE _streams SET rows = (SELECT count(*) FROM ${stream}) WHERE stream = '${stream}';
  UPDATE _loads SET rows = (SELECT count(*) FROM ${stream}), records = (SELECT count(*) FROM ${stream}),
    source_records = (SELECT count(*) FROM ${stream}) WHERE stream = '${stream}'`

const setStateSql = (stream: string, minute: number) =>
  `UPDATE _state SET state = '{"modifiedTimeFrom":"${timeAtMinute(minute)}"}' WHERE stream = '${stream}'`

/** A mutation of the file, the check that must fail, and an example that it must give. */
const mutations: ReadonlyArray<readonly [mutation: string, sql: string, check: string, example: string]> = [
  ['row removed', 'DELETE FROM locations WHERE id = 0', 'row counts', 'locations: 1 rows, 2 after the last load'],
  [
    'row added',
    `INSERT INTO deleted_reviews SELECT * REPLACE (9 AS id) FROM deleted_reviews`,
    'row counts',
    'deleted_reviews: 2 rows, 1 after the last load',
  ],
  ['key twice', 'INSERT INTO reviews FROM reviews WHERE id = 2', 'keys are unique', 'reviews: id 2 has 2 rows'],
  [
    'key null',
    'UPDATE review_contents SET id = NULL WHERE reviewId = 2 AND id = 1',
    'keys are not null',
    'review_contents: reviewId 2 id null',
  ],
  [
    'time moved back',
    `UPDATE reviews SET modifiedTime = '2020-01-01' WHERE id = 1`,
    'cursors are within their loads',
    'reviews: id 1 has modifiedTime 2020-01-01 00:00:00+00',
  ],
  [
    'time moved ahead',
    `UPDATE reviews SET modifiedTime = '2030-01-01' WHERE id = 1`,
    'cursors are within their loads',
    'reviews: id 1 has modifiedTime 2030-01-01 00:00:00+00',
  ],
  [
    'time moved within the load',
    `UPDATE reviews SET modifiedTime = '${timeAtMinute(2)}' WHERE id = 1`,
    'values are unchanged',
    'reviews: id 1',
  ],
  ['text changed', `UPDATE reviews SET text = 'bad' WHERE id = 3`, 'values are unchanged', 'reviews: id 3'],
  ['attribute set to null', `UPDATE reviews SET rating = NULL WHERE id = 3`, 'values are unchanged', 'reviews: id 3'],
  [
    'deletion undone',
    `INSERT INTO reviews
     SELECT * REPLACE (
       4 AS id, '${timeAtMinute(1)}' AS modifiedTime, _airbyte_extracted_at - INTERVAL 1 DAY AS _airbyte_extracted_at)
     FROM reviews WHERE id = 2`,
    'deletions are applied',
    'reviews: id 4 was deleted at 2026-01-01 00:02:00+00',
  ],
  [
    'review deleted',
    'DELETE FROM reviews WHERE id = 2',
    'children have their review',
    'review_contents: reviewId 2 id 1',
  ],
  [
    'tombstone among the reviews',
    'UPDATE reviews SET _ab_cdc_deleted_at = modifiedTime WHERE id = 2',
    'tombstones are applied',
    'reviews: id 2',
  ],
  [
    'child without review',
    'INSERT INTO review_contents SELECT * REPLACE (7 AS reviewId) FROM review_contents WHERE reviewId = 1 AND id = 1',
    'children have their review',
    'review_contents: reviewId 7 id 1',
  ],
  [
    'child of an older version',
    `UPDATE review_contents SET reviewModifiedTime = '${timeAtMinute(3)}' WHERE reviewId = 2 AND id = 1`,
    "children match their review's version",
    'review_contents: reviewId 2 id 1',
  ],
  [
    'duplicate child',
    'INSERT INTO review_contents FROM review_contents WHERE reviewId = 3 AND id = 2',
    'keys are unique',
    'review_contents: reviewId 3 id 2 has 2 rows',
  ],
  [
    'location of a review missing',
    'DELETE FROM locations WHERE id = 0',
    'lookups are complete',
    'locations: id 0 is missing',
  ],
  ['rating out of 0..5', 'UPDATE reviews SET rating = 5.5 WHERE id = 1', 'ratings', 'reviews: id 1 has rating 5.5'],
  [
    'state ahead of rows',
    setStateSql('reviews', 9),
    'states are not ahead',
    'reviews: state at 2026-01-01 00:09:00+00, newest record at 2026-01-01 00:05:00+00',
  ],
  [
    'state behind rows',
    setStateSql('reviews', 4),
    'states are not behind',
    'reviews: state at 2026-01-01 00:04:00+00, newest row at 2026-01-01 00:05:00+00',
  ],
  [
    'children missing from a living review, with counts that agree',
    `DELETE FROM review_contents WHERE reviewId = 2 AND id = 2; ${fixBooksSql('review_contents')}`,
    'children are complete',
    'review_contents: reviewId 2 id 2 is missing',
  ],
  [
    'all children missing, with counts that agree',
    `DELETE FROM review_contents; ${fixBooksSql('review_contents')};
     UPDATE _loads SET cursor_from = NULL, cursor_to = NULL WHERE stream = 'review_contents'`,
    'children are complete',
    'review_contents: reviewId 1 id 1 is missing',
  ],
  [
    'state of children ahead of the reviews',
    setStateSql('review_contents', 6),
    'states are not ahead',
    'review_contents: state at 2026-01-01 00:06:00+00, newest review at 2026-01-01 00:05:00+00',
  ],
  [
    'state of a lookup ahead of the reviews',
    setStateSql('locations', 59),
    'states are not ahead',
    'locations: state at 2026-01-01 00:59:00+00, newest review at 2026-01-01 00:05:00+00',
  ],
  [
    'state of children ahead of the time at which it was saved',
    `DELETE FROM _loads WHERE stream = 'reviews';
     UPDATE _state SET state = '{"modifiedTimeFrom":"2026-01-03T00:00:00.000Z"}' WHERE stream = 'review_contents'`,
    'states are not ahead',
    'review_contents: state at 2026-01-03 00:00:00+00, saved before 2026-01-02 00:05:05+00',
  ],
  [
    'empty state',
    `UPDATE _state SET state = '{}' WHERE stream = 'review_contents'`,
    'states exist',
    'review_contents: its state is empty',
  ],
  [
    'state that is null',
    `UPDATE _state SET state = 'null' WHERE stream = 'locations'`,
    'states exist',
    'locations: its state is empty',
  ],
  [
    'state with a time that is none',
    `UPDATE _state SET state = '{"modifiedTimeFrom":"yesterday"}' WHERE stream = 'review_contents'`,
    'states can be read',
    'review_contents: modifiedTimeFrom is no time',
  ],
  [
    'state that is no object',
    `UPDATE _state SET state = '[1]' WHERE stream = 'deleted_reviews'`,
    'states can be read',
    'deleted_reviews: its state is no object',
  ],
  ['state lost', `DELETE FROM _state WHERE stream = 'locations'`, 'states exist', 'locations: no state'],
  [
    'load still running',
    `UPDATE _loads SET ended = NULL, status = 'running' WHERE stream = 'locations'`,
    'loads are complete',
    'locations: load 4 of 2026-01-02 00:00 is running',
  ],
  [
    'count that differs from the source',
    `UPDATE _loads SET source_records = 7 WHERE stream = 'reviews'`,
    "the source's counts",
    'reviews: load 2 has 4 records, the source counts 7',
  ],
  [
    'column of another type',
    'ALTER TABLE reviews ALTER rating TYPE VARCHAR',
    'column types',
    'reviews: rating is VARCHAR, not DOUBLE',
  ],
  ['column missing', 'ALTER TABLE locations DROP name', 'column types', 'locations: name is missing, not VARCHAR'],
  ['table missing', 'DROP TABLE locations', 'column types', 'locations: id is missing, not BIGINT'],
]

describe('verify', () => {
  let snapshot: Snapshot
  beforeAll(async () => {
    snapshot = await buildSnapshot()
  })
  afterAll(() => snapshot.db.close())

  it('finds nothing wrong with a file that the writer made', async () => {
    expect(await listFailures(snapshot)).toEqual({})
    const inactive = (await verifySnapshot(snapshot)).filter(({ sql }) => sql === undefined)
    expect(inactive.map(({ name }) => name)).toEqual([
      'undeclared attributes',
      'histories are unchanged',
      ...entityChecks.map(({ name }) => name),
    ])
  })

  it.each(mutations)('finds: %s', async (_mutation, sql, check, example) => {
    await snapshot.db.run('BEGIN')
    try {
      await snapshot.db.run(sql)
      expect((await listFailures(snapshot))[check]).toContain(example)
    } finally {
      await snapshot.db.run('ROLLBACK')
    }
  })

  it('does not compare reviews with what the service listed itself', async () => {
    await snapshot.db.run('BEGIN')
    try {
      await snapshot.db.run(
        `DELETE FROM locations WHERE id = 0;
         UPDATE _state SET state = '{"readAt":"2026-01-02T00:00:00.000Z"}' WHERE stream = 'locations'`,
      )
      expect(await listFailures(snapshot)).not.toHaveProperty(['lookups are complete'])
    } finally {
      await snapshot.db.run('ROLLBACK')
    }
  })

  it('counts all failures and gives the first examples', async () => {
    await snapshot.db.run('BEGIN')
    await snapshot.db.run('INSERT INTO review_contents SELECT * FROM review_contents')
    const result = (await verifySnapshot(snapshot)).find(({ name }) => name === 'keys are unique')
    await snapshot.db.run('ROLLBACK')
    expect(result).toMatchObject({ ok: false, failures: 6 })
    expect(result?.examples).toHaveLength(5)
  })

  it('does not answer a check whose columns have other types, and says why', async () => {
    // A failing query ends its transaction, so each damage needs a separate file.
    const unanswered = async (sql: string) => {
      const damaged = await buildSnapshot()
      await damaged.db.run(sql)
      const results = await verifySnapshot(damaged)
      damaged.db.close()
      return Object.fromEntries(
        results.flatMap(({ name, problem }) => (problem === undefined ? [] : [[name, problem]])),
      )
    }
    const anyType = {
      'cursors are within their loads': expect.stringMatching(/^(reviews|locations)\..*the cursor, is/),
    }
    for (const type of ['VARCHAR', 'TIMESTAMP'])
      expect(await unanswered(`ALTER TABLE reviews ALTER "modifiedTime" TYPE ${type}`)).toMatchObject(anyType)
    expect(await unanswered('ALTER TABLE locations ALTER "reviewModifiedTime" TYPE VARCHAR')).toMatchObject(anyType)
    expect(await unanswered('ALTER TABLE review_contents RENAME "reviewId" TO other')).toHaveProperty([
      'values are unchanged',
    ])
    expect(await unanswered(`UPDATE _loads SET cursor_to = 'nine' WHERE stream = 'locations'`)).toMatchObject({
      'lookups are complete': expect.stringContaining('type or values of a column'),
    })
  })

  it('has something to check only where there are rows to look at', async () => {
    const empty = await openMemorySnapshot()
    await writeMessages(empty, [startedMessage(reviewContentsInfo()), finishedMessage('review_contents')])
    const results = await verifySnapshot(empty)
    expect(results.filter(({ outcome }) => outcome === 'holds').map(({ name }) => name)).toEqual([
      'loads are complete',
      'row counts',
      'column types',
    ])
    expect(countChecks(results)).toEqual({ hold: 3, failed: 1, unanswered: 0, checked: 4, nothing: results.length - 4 })
    empty.db.close()
  })
})

describe('verify of a file with older versions', () => {
  let snapshot: Snapshot
  beforeAll(async () => {
    snapshot = await openMemorySnapshot()
    const write = (...texts: string[]) => [
      startedMessage(reviewsInfo()),
      recordsMessage('reviews', ...texts),
      checkpointMessage('reviews', { modifiedTimeFrom: timeAtMinute(5) }, 2),
      finishedMessage('reviews'),
    ]
    await writeMessages(snapshot, write(reviewJson(1, 1, 'a'), reviewJson(2, 2, 'b')), { history: true })
    await writeMessages(snapshot, write(reviewJson(1, 3, 'c'), reviewJson(2, 5, 'd')))
  })
  afterAll(() => snapshot.db.close())

  it('finds nothing wrong with it', async () => {
    expect(await listFailures(snapshot)).toEqual({})
    expect((await verifySnapshot(snapshot)).find(({ name }) => name === 'histories are unchanged')?.outcome).toBe(
      'holds',
    )
  })

  it.each([
    ['value changed', `UPDATE _history_reviews SET text = 'z' WHERE id = 1`, 'reviews: id 1 has a changed version'],
    [
      'version removed',
      'DELETE FROM _history_reviews WHERE id = 1',
      'reviews: 1 older versions, 2 after the last load',
    ],
    ['all versions removed', 'DELETE FROM _history_reviews', 'reviews: 0 older versions, 2 after the last load'],
    [
      'version twice',
      'INSERT INTO _history_reviews FROM _history_reviews WHERE id = 2',
      'reviews: id 2 has a version 2 times',
    ],
    [
      'key lost',
      'UPDATE _history_reviews SET id = NULL WHERE id = 2',
      'reviews: id null has a version without its key',
    ],
    [
      'end before the beginning',
      `UPDATE _history_reviews SET _ended = '2020-01-01' WHERE id = 2`,
      'reviews: id 2 has a version that ends before it begins',
    ],
  ])('finds: %s', async (_damage, sql, example) => {
    await snapshot.db.run('BEGIN')
    await snapshot.db.run(sql)
    const failures = await listFailures(snapshot)
    await snapshot.db.run('ROLLBACK')
    expect(failures['histories are unchanged']).toContain(example)
  })
})
