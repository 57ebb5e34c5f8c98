import { describe, expect, it } from 'vitest'
import { createLakeLoader } from '../../connector/lake/loader'
import type { Database, Snapshot } from '../../connector/snapshot/store/database'
import { forgottenTableSql } from '../../connector/snapshot/store/forgotten'
import { createLakeWriter, openMemoryLake, writeLakeMessages } from '../support/lake'
import {
  checkpointMessage,
  contentJson,
  createStreamInfo,
  emittedAt,
  finishedMessage,
  instantSchema,
  integerSchema,
  recordsMessage,
  reviewContentsInfo,
  reviewJson,
  reviewsInfo,
  startedMessage,
  streamMessages,
} from '../support/snapshot-messages'

const visitsInfo = createStreamInfo('visits', { id: integerSchema, seen: instantSchema }, [], 'seen')
const locationsInfo = createStreamInfo('locations', { id: integerSchema, name: { type: 'string' } }, ['id'], 'id')
const waiting = { _tag: 'Waiting', stream: 'reviews', until: 0 } as const

/** The lake and its statements, each with a flag if it was in a transaction. */
const watch = async (before: (sql: string) => void = () => undefined) => {
  const { db } = await openMemoryLake()
  const statements: Array<{ readonly sql: string; readonly isWithin: boolean }> = []
  let isWithin = false
  const noted = (sql: string): string => {
    before(sql)
    statements.push({ sql, isWithin })
    return sql
  }
  const watched: Database = {
    ...db,
    run: (sql, ...rest) => db.run(noted(sql), ...rest),
    query: async (sql, ...rest) => db.query(noted(sql), ...rest),
    scalar: (sql, ...rest) => db.scalar(noted(sql), ...rest),
    transaction: (body, undo) => {
      isWithin = true
      return db.transaction(body, undo).finally(() => {
        isWithin = false
      })
    },
  }
  return { lake: { db: watched }, statements }
}

const list = async ({ db }: Snapshot, sql: string): Promise<ReadonlyArray<string>> =>
  (await db.query(sql)).map((row) => Object.values(row).join(' '))

describe('a commit into a lake', () => {
  it('adds rows, their states and how far the loads have come in one transaction, and asks nothing', async () => {
    const { lake, statements } = await watch()
    const writer = await createLakeWriter(lake)
    await writer.write(startedMessage(reviewsInfo()))
    await writer.write(recordsMessage('reviews', reviewJson(1, 1)))
    const begun = statements.length
    for (const message of [
      recordsMessage('reviews', reviewJson(2, 2)),
      checkpointMessage('reviews', { at: 2 }),
      waiting,
    ])
      await writer.write(message)
    const within = statements.slice(begun).filter(({ isWithin }) => isWithin)
    expect(within.map(({ sql }) => sql.match(/INSERT INTO (\S+)|UPDATE|DELETE|MERGE/g))).toEqual([
      ['INSERT INTO "_versions_reviews"', 'INSERT INTO _states_log', 'INSERT INTO _loads_log'],
    ])
    const asked = statements
      .slice(begun)
      .filter(({ sql, isWithin }) => !isWithin && /_versions|_log\b|_loads|_st/.test(sql))
    expect(asked).toEqual([])
    expect(await list(lake, 'SELECT status, records, rows, cursor_from, cursor_to FROM _loads')).toEqual([
      'running 2 2 2026-01-01T00:01:00.000Z 2026-01-01T00:02:00.000Z',
    ])
    lake.db.close()
  })

  it('changes nothing if it fails, and leaves no table behind', async () => {
    const { lake } = await watch((sql) => {
      if (/INSERT INTO _loads_log VALUES/.test(sql)) throw new Error('stopped here')
    })
    await expect(writeLakeMessages(lake, streamMessages(reviewsInfo(), reviewJson(1, 1)))).rejects.toThrow(
      'stopped here',
    )
    expect(await list(lake, 'FROM _versions_reviews')).toEqual([])
    expect(await list(lake, 'FROM _states_log')).toEqual([])
    expect(await list(lake, 'SELECT table_name FROM duckdb_tables() WHERE temporary')).toEqual([])
    lake.db.close()
  })

  it('adds nothing but rows where the lake is as the last run has left it', async () => {
    const { lake, statements } = await watch()
    const run = () => writeLakeMessages(lake, streamMessages(reviewsInfo(), reviewJson(1, 1)))
    await run()
    const [before] = await list(lake, 'SELECT count(*) FROM _streams_log')
    const begun = statements.length
    await run()
    expect(await list(lake, 'SELECT count(*) FROM _streams_log')).toEqual([before])
    expect(statements.slice(begun).filter(({ sql }) => /CREATE OR REPLACE VIEW|ALTER TABLE/.test(sql))).toEqual([])
    lake.db.close()
  })

  it.each([
    [undefined, 64_000_000],
    [{ index: 0, count: 2 }, 30_000_000],
  ])('comes every 30 seconds, with whole pages, and is smaller for a share: %j', async (share, bytes) => {
    const lake = await openMemoryLake()
    const { limits } = await createLakeLoader(lake, share, emittedAt)
    expect(limits).toMatchObject({ millis: 30_000, bytes, wholePages: true })
    lake.db.close()
  })

  it('numbers its run after all others, whatever the clock says', async () => {
    const lake = await openMemoryLake()
    await writeLakeMessages(lake, streamMessages(reviewsInfo(), reviewJson(1, 1)))
    await writeLakeMessages(lake, streamMessages(reviewsInfo(), reviewJson(2, 1)), {
      now: () => emittedAt - 86_400_000,
    })
    expect(
      await list(
        lake,
        'SELECT records, load > lag(load, 1, 0) OVER (ORDER BY records, load) FROM _loads ORDER BY load',
      ),
    ).toEqual(['1 true', '1 true'])
    expect(await list(lake, 'SELECT state FROM _state')).toEqual(['{"cursor":1}'])
    lake.db.close()
  })
})

describe('a lake shows', () => {
  it('every row of a stream without a key', async () => {
    const lake = await openMemoryLake()
    for (const _ of [1, 2]) await writeLakeMessages(lake, streamMessages(visitsInfo, '{"id":7}', '{"id":7}'))
    expect(await list(lake, 'SELECT id FROM visits')).toEqual(['7', '7', '7', '7'])
    lake.db.close()
  })

  it('of rows of one version the one that came last, also of one commit', async () => {
    const lake = await openMemoryLake()
    const names = () => list(lake, 'SELECT id, name FROM locations ORDER BY id')
    await writeLakeMessages(lake, streamMessages(locationsInfo, '{"id":1,"name":"a"}', '{"id":1,"name":"b"}'))
    expect(await names()).toEqual(['1 b'])
    await writeLakeMessages(
      lake,
      streamMessages(locationsInfo, '{"id":1,"name":"c"}', '{"id":null,"name":"d"}', '{"name":"e"}'),
    )
    expect(await names()).toEqual(['1 c', ' d', ' e'])
    lake.db.close()
  })

  it('rows of a refresh once it is complete, and from then on none of before', async () => {
    const lake = await openMemoryLake()
    const shown = () => list(lake, 'SELECT id, text FROM reviews ORDER BY id')
    await writeLakeMessages(lake, streamMessages(reviewsInfo(), reviewJson(1, 1, 'a'), reviewJson(2, 1, 'a')))
    const refresh = reviewsInfo('full_refresh')
    await writeLakeMessages(lake, [
      startedMessage(refresh),
      recordsMessage('reviews', reviewJson(1, 2, 'b')),
      checkpointMessage('reviews', 1),
    ])
    expect(await shown()).toEqual(['1 a', '2 a'])
    // It continues in its generation.
    await writeLakeMessages(lake, [
      startedMessage(refresh),
      recordsMessage('reviews', reviewJson(3, 2, 'b')),
      checkpointMessage('reviews', 2),
      finishedMessage('reviews'),
    ])
    expect(await shown()).toEqual(['1 b', '3 b'])
    expect(await list(lake, 'SELECT id, text, valid_to IS NULL FROM reviews_versions ORDER BY ALL')).toEqual([
      ...['1 a false', '1 b true', '2 a false', '3 b true'],
    ])
    // The first refresh of all shows what it has, since there is nothing else.
    const other = await openMemoryLake()
    await writeLakeMessages(other, [startedMessage(refresh), recordsMessage('reviews', reviewJson(1, 2, 'b')), waiting])
    expect(await list(other, 'SELECT id FROM reviews')).toEqual(['1'])
    for (const { db } of [lake, other]) db.close()
  })

  it('rows that belong to a review with the newest version that anything names', async () => {
    const lake = await openMemoryLake()
    const contents = () => list(lake, 'SELECT "reviewId", id FROM review_contents ORDER BY ALL')
    const tasksInfo = createStreamInfo(
      'review_tasks',
      { reviewId: integerSchema, reviewModifiedTime: instantSchema },
      ['reviewId'],
      'reviewModifiedTime',
    )
    await writeLakeMessages(lake, streamMessages(reviewContentsInfo(), contentJson(1, 1, 5), contentJson(2, 1, 6)))
    expect(await contents()).toEqual(['1 5', '2 6'])
    await writeLakeMessages(
      lake,
      streamMessages(tasksInfo, '{"reviewId":1,"reviewModifiedTime":"2026-01-01T00:02:00.000Z"}'),
    )
    expect(await contents()).toEqual(['2 6'])
    lake.db.close()
  })
})

it('appends nothing of someone forgotten, and removes what came before it was known whose it is', async () => {
  const lake = await openMemoryLake()
  const info = {
    ...reviewsInfo(),
    schema: {
      ...reviewsInfo().schema,
      properties: { ...Object(reviewsInfo().schema.properties), visitRecordId: { type: 'string' } },
    },
  }
  await writeLakeMessages(lake, [
    ...streamMessages(info, reviewJson(1, 1), reviewJson(2, 1)),
    ...streamMessages(reviewContentsInfo(), contentJson(1, 1, 5)),
  ])
  await lake.db.run(`${forgottenTableSql()}; INSERT INTO _forgotten VALUES ('visit_record', sha256('V1'), now())`)
  await writeLakeMessages(
    lake,
    streamMessages(info, JSON.stringify({ ...JSON.parse(reviewJson(1, 2)), visitRecordId: 'V1' }), reviewJson(3, 1)),
  )
  expect(await list(lake, 'SELECT id FROM _versions_reviews ORDER BY id')).toEqual(['2', '3'])
  expect(await list(lake, 'FROM _versions_review_contents')).toEqual([])
  const counted = await list(
    lake,
    `
    SELECT stream, sum(rows)::INTEGER FROM _loads GROUP BY stream ORDER BY stream`,
  )
  expect(counted).toEqual(['review_contents 0', 'reviews 2'])
  lake.db.close()
})

it('goes on with states that were imported, of a service that has moved, and in a lake that was emptied', async () => {
  const lake = await openMemoryLake()
  await writeLakeMessages(lake, streamMessages(reviewsInfo(), reviewJson(1, 1)))
  await lake.db.lake?.saveStates([['reviews', '{"n":1}']], emittedAt)
  await lake.db.lake?.moveStates('abc')
  expect(await list(lake, 'SELECT state FROM _state')).toEqual(['{"n":1,"service":"abc"}'])
  await lake.db.lake?.empty()
  expect(await list(lake, "SELECT table_name FROM duckdb_tables() WHERE starts_with(table_name, '_versions')")).toEqual(
    [],
  )
  await writeLakeMessages(lake, streamMessages(reviewsInfo(), reviewJson(1, 1)))
  expect(await list(lake, 'SELECT id FROM reviews')).toEqual(['1'])
  lake.db.close()
})
