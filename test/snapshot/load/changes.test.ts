import { describe, expect, it } from 'vitest'
import { type Change, describeCommit, takeChange } from '../../../connector/snapshot/load/changes'
import { mapToColumns } from '../../../connector/snapshot/load/evolve'
import { createSpool } from '../../../connector/snapshot/load/spool'
import { type Load, summarizeLoad } from '../../../connector/snapshot/load/stream-load'
import type { LoadTarget } from '../../../connector/snapshot/load/target'
import type { Database } from '../../../connector/snapshot/store/database'
import { forgottenTableSql, hasForgotten } from '../../../connector/snapshot/store/forgotten'
import {
  createStreamInfo,
  emittedAt,
  instantSchema,
  integerSchema,
  openMemorySnapshot,
  recordsMessage,
  reviewContentsInfo,
  startedMessage,
  streamMessages,
  timeAtMinute,
  writeMessages,
} from '../../support/snapshot-messages'

const target: LoadTarget = {
  key: ['id'],
  cursor: 'at',
  generation: 4,
  minimumGeneration: 3,
  resetsState: false,
}
const newLoad = (stream: string, records = 0, more: Partial<Load> = {}): Load => {
  const spool = createSpool(':memory:', 'a condition')
  for (let i = 0; i < records; i += 1) spool.add({ json: Buffer.from('{}') }, 1)
  return {
    ...{ id: 7, stream, share: undefined, schema: '{}', table: { name: stream, columns: [], history: false }, target },
    ...{ activatesGeneration: true, cursor: undefined, startedAt: 1000, endedAt: undefined, status: 'complete' },
    ...{ records: 90, made: 0, derivation: undefined, sourceRecords: 80, spool, state: '{"page":1}', hasChanges: true },
    ...more,
  }
}

describe('what a load has received', () => {
  it('is taken from it, and what it is goes on', () => {
    const load = newLoad('things', 2)
    const { spool } = load
    const change = takeChange(load, ':memory:')
    expect(change).toEqual({
      ...{ load, spool, target, activatesGeneration: true, status: 'complete' },
      ...{ records: 90, sourceRecords: 80, state: '{"page":1}' },
    })
    expect(change.spool.count()).toBe(2)
    expect(load.spool).not.toBe(spool)
    expect([load.spool.count(), load.spool.forgotten]).toEqual([0, 'a condition'])
    expect([load.state, load.hasChanges, load.records, load.status]).toEqual([undefined, false, 90, 'complete'])
  })

  it.each<[string, ReadonlyArray<readonly [string, number]>]>([
    ['committing the end of things', [['things', 0]]],
    [
      'committing the end of things and 1 more',
      [
        ['things', 0],
        ['others', 0],
      ],
    ],
    ['committing 1 records of things', [['things', 1]]],
    [
      'committing 2 records of others',
      [
        ['things', 0],
        ['others', 2],
      ],
    ],
    [
      'committing 1,203 records of things and 2 more',
      [
        ['things', 1200],
        ['none', 0],
        ['others', 2],
        ['last', 1],
      ],
    ],
  ])('is described as %s', (text, counts) => {
    const changes = counts.map(([stream, records]): Change => takeChange(newLoad(stream, records), ':memory:'))
    expect(describeCommit({ changes, shared: [] })).toBe(text)
  })

  it('is summed up with the seconds until it ended, or until now', () => {
    const summary = { stream: 'things', status: 'complete', records: 90 }
    expect(summarizeLoad(newLoad('things', 0, { endedAt: 2500 }), 9000)).toEqual({ ...summary, seconds: 1.5 })
    expect(summarizeLoad(newLoad('things'), 9000)).toEqual({ ...summary, seconds: 8 })
  })
})

it('key and cursor are columns, whose names may differ from those of their attributes', () => {
  const table = {
    name: 'things',
    history: false,
    columns: [
      { name: 'id__1', type: 'BIGINT', attribute: 'id' },
      { name: 'at', type: 'TIMESTAMPTZ' },
    ],
  } as const
  expect(mapToColumns(table, { key: ['id', 'unknown'], cursor: 'at' })).toEqual({
    key: ['id__1', 'unknown'],
    cursor: 'at',
  })
  expect(mapToColumns(table, { key: [], cursor: 'id' })).toEqual({ key: [], cursor: 'id__1' })
  expect(mapToColumns(table, { key: [], cursor: undefined })).toEqual({ key: [], cursor: undefined })
})

describe('records of someone who was forgotten', () => {
  const reviewsInfo = createStreamInfo(
    'reviews',
    { id: integerSchema, modifiedTime: instantSchema, visitRecordId: { type: 'string' } },
    ['id'],
    'modifiedTime',
  )
  const review = (id: number, visitRecordId?: string) =>
    JSON.stringify({ id, modifiedTime: timeAtMinute(1), visitRecordId })

  /** Reviews 5 and 6, two versions of 5, in a file that has forgotten the visit v1. */
  const openForgetful = async (): Promise<Database> => {
    const { db } = await openMemorySnapshot()
    await writeMessages({ db }, streamMessages(reviewsInfo, review(5), review(6)), { history: true })
    await writeMessages({ db }, streamMessages(reviewsInfo, review(5, 'v2'), review(6)), { history: true })
    await db.run(
      `${forgottenTableSql()}; INSERT INTO _forgotten VALUES ('visit_record', sha256('v1'), make_timestamptz(0))`,
    )
    return db
  }
  const listIds = async (db: Database, table: string) =>
    (await db.query(`SELECT id FROM ${table} ORDER BY id`)).map(({ id }) => Number(id))
  const readCounts = async (db: Database) => [
    await db.scalar("SELECT rows FROM _streams WHERE stream = 'reviews'"),
    await db.scalar("SELECT value FROM _meta WHERE name = 'history rows of reviews'"),
  ]

  it('take their earlier rows away with them, once', async () => {
    const db = await openForgetful()
    const works: string[] = []
    const watched: Database = {
      ...db,
      withMemory: (name, ...rest) => {
        if (name.includes('forgotten')) works.push(name)
        return db.withMemory(name, ...rest)
      },
    }
    expect(await hasForgotten(db)).toBe(true)
    expect([await listIds(db, 'reviews'), await listIds(db, '_history_reviews')]).toEqual([[5, 6], [5]])
    const messages = [
      startedMessage(reviewContentsInfo()),
      ...streamMessages(reviewsInfo, review(5, 'v1'), review(7)),
      recordsMessage('review_contents', `{"reviewId":7,"reviewModifiedTime":"${timeAtMinute(1)}","id":1}`),
    ]
    const looks = ['reviews', 'review_contents'].map(
      (stream) => `looking for what was forgotten among the records of ${stream}`,
    )
    await writeMessages({ db: watched }, messages)
    expect(works.toSorted()).toEqual([...looks, 'removing what was forgotten'].toSorted())
    expect([await listIds(db, 'reviews'), await listIds(db, '_history_reviews')]).toEqual([[6, 7], []])
    expect(await db.query('SELECT id, epoch_ms(forgotten_at) AS "at" FROM _forgotten WHERE kind = \'review\'')).toEqual(
      [{ id: '5', at: emittedAt }],
    )
    expect(await readCounts(db)).toEqual([2, '0'])
    works.length = 0
    await writeMessages({ db: watched }, messages)
    expect(works.toSorted()).toEqual(looks.toSorted())
    works.length = 0
    await writeMessages({ db: watched }, streamMessages(reviewsInfo))
    expect(works).toEqual([])
    db.close()
  })

  it('are counted no more where the run ends before it has written the others', async () => {
    const db = await openForgetful()
    expect(await readCounts(db)).toEqual([2, '1'])
    const stopped: Database = {
      ...db,
      withMemory: (name, ...rest) =>
        name.startsWith('committing') ? Promise.reject(new Error('stopped here')) : db.withMemory(name, ...rest),
    }
    const run = writeMessages({ db: stopped }, streamMessages(reviewsInfo, review(5, 'v1'), review(7)))
    await expect(run).rejects.toThrow('stopped here')
    expect([await listIds(db, 'reviews'), await listIds(db, '_history_reviews')]).toEqual([[6], []])
    expect(await readCounts(db)).toEqual([1, '0'])
    db.close()
  })
})
