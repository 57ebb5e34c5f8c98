import { describe, expect, it } from 'vitest'
import type { Message, StreamInfo } from '../../../connector/cdk/message'
import type { Database, Snapshot } from '../../../connector/snapshot/store/database'
import { forgottenTableSql } from '../../../connector/snapshot/store/forgotten'
import { verifySnapshot } from '../../../connector/snapshot/verify/verify'
import {
  checkpointMessage,
  commitInParts,
  contentJson,
  createStreamInfo,
  emittedAt,
  finishedMessage,
  instantSchema,
  integerSchema,
  openMemorySnapshot,
  recordsMessage,
  reviewContentsInfo,
  reviewJson,
  reviewsInfo,
  startedMessage,
  writeMessages,
} from '../../support/snapshot-messages'
import { listOpenSpools } from '../../support/snapshot-tables'

const visitsInfo = createStreamInfo('visits', { id: integerSchema, seen: instantSchema }, [], 'id')
const locationsInfo = createStreamInfo('locations', { id: integerSchema, seen: instantSchema }, ['id'], 'seen')
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1)

/** Reviews with a content each, as many records as a commit must have to be cut, and rows that belong to no review. */
const run = (minute: number, first = 0): ReadonlyArray<Message> => {
  const ids = upTo(1000).map((id) => first + id)
  const streams: ReadonlyArray<readonly [StreamInfo, ReadonlyArray<string>]> = [
    [
      reviewsInfo(),
      [...ids.map((id) => reviewJson(id, minute, `text ${minute}`)), reviewJson(first + 5, minute, 'last')],
    ],
    [reviewContentsInfo(), ids.map((id) => contentJson(id, minute, 1))],
    [locationsInfo, ['{"id":1,"seen":"2026-01-01T00:00:00Z"}']],
    [visitsInfo, ['{"id":7}', '{"id":8,"seen":"no time"}']],
  ]
  return [
    ...streams.map(([stream]) => startedMessage(stream)),
    ...streams.map(
      ([{ name }, texts]): Message => ({
        _tag: 'Records',
        stream: name,
        at: emittedAt,
        rows: texts.map((text) => ({
          json: Buffer.from(text),
          changes: text.includes('"id":3,')
            ? [{ field: 'text', change: 'TRUNCATED', reason: 'SOURCE_SERIALIZATION_ERROR' }]
            : [],
        })),
      }),
    ),
    ...streams.map(([{ name }, { length }]) => checkpointMessage(name, { minute }, length)),
    ...streams.map(([{ name }]) => finishedMessage(name)),
  ]
}

const loadsSql =
  'SELECT run, stream, status, records, source_records, rows, cursor_from, cursor_to FROM _loads ORDER BY ALL'
const readAll = async ({ db }: Snapshot) => {
  const tables = ['reviews', 'review_contents', 'locations', 'visits', '_history_reviews', '_state']
  const rows: unknown[] = [await db.query(loadsSql)]
  for (const table of tables)
    rows.push((await db.query(`SELECT t::VARCHAR AS row FROM ${table} AS t ORDER BY ALL`)).map(({ row }) => row))
  return rows
}

/**
 * Counts the commits, and the connections freed after parts of them. `fails`: returns true for a commit that is to
 * reject.
 */
const watchCommits = ({ db }: Snapshot, fails: (commit: number) => boolean = () => false) => {
  const counts = { commits: 0, releases: 0 }
  const watched: Database = {
    ...db,
    transaction: (body, undo) =>
      db.transaction(async () => {
        const result = await body()
        // Only a commit of changes undoes anything but its statements.
        if (undo === undefined) return result
        counts.commits += 1
        if (fails(counts.commits)) throw new Error('stopped here')
        return result
      }, undo),
    release: () => {
      counts.releases += 1
      return db.release()
    },
  }
  return { counts, snapshot: { db: watched } }
}

describe('a commit in parts', () => {
  it('leaves what a commit of the whole leaves, and no record open', async () => {
    const spools = listOpenSpools().length
    const load = async (prepare: (snapshot: Snapshot) => Snapshot) => {
      const snapshot = await openMemorySnapshot()
      for (const messages of [run(1), run(2, 600)]) await writeMessages(prepare(snapshot), messages, { history: true })
      const rows = await readAll(snapshot)
      expect((await verifySnapshot(snapshot)).filter(({ ok }) => !ok)).toEqual([])
      snapshot.db.close()
      return rows
    }
    expect(await load(commitInParts)).toEqual(await load((snapshot) => snapshot))
    expect(listOpenSpools().length).toBe(spools)
  })

  it(
    'has a transaction for each part, the last one with what belongs ' +
      'to no review and with the states; the next run completes it',
    async () => {
      const memory = await openMemorySnapshot()
      const { counts, snapshot } = watchCommits(memory, (commit) => commit === 8)
      await expect(writeMessages(commitInParts(snapshot), run(1))).rejects.toThrow('stopped here')
      expect(counts).toEqual({ commits: 8, releases: 7 })
      const count = async (table: string) => Number(await memory.db.scalar(`SELECT count(*) FROM ${table}`))
      expect(await count('reviews')).toBe(875)
      expect(await count('review_contents')).toBe(875)
      expect([await count('locations'), await count('visits'), await count('_state')]).toEqual([0, 0, 0])
      expect(await memory.db.query("SELECT DISTINCT status FROM _loads WHERE stream = 'reviews'")).toEqual([
        { status: 'running' },
      ])
      expect(
        await memory.db.scalar('SELECT records::INTEGER FROM _loads WHERE stream = $stream', { stream: 'reviews' }),
      ).toBeLessThan(1001)
      await writeMessages(memory, run(1))
      expect([await count('reviews'), await count('_state')]).toEqual([1000, 4])
      expect((await verifySnapshot(memory)).filter(({ ok }) => !ok)).toEqual([])
      memory.db.close()
    },
  )

  it.each([
    [1000, false],
    [999, false],
    [998, true],
  ])('is not made of fewer than 2,000 records: %i reviews', async (reviews, isWhole) => {
    const memory = await openMemorySnapshot()
    const { counts, snapshot } = watchCommits(memory)
    await writeMessages(commitInParts(snapshot), [
      startedMessage(reviewsInfo()),
      startedMessage(visitsInfo),
      recordsMessage('reviews', ...upTo(reviews).map((id) => reviewJson(id, 1))),
      recordsMessage('visits', ...upTo(1001).map((id) => JSON.stringify({ id }))),
    ])
    expect(counts.releases === 0).toBe(isWhole)
    memory.db.close()
  })

  it('is one of the whole again where no record belongs to a review', async () => {
    const memory = await openMemorySnapshot()
    const { counts, snapshot } = watchCommits(memory)
    const always: Database = { ...snapshot.db, withMemory: (_, work, parts) => (parts ?? work)() }
    await writeMessages({ db: always }, [
      startedMessage(visitsInfo),
      recordsMessage('visits', ...upTo(2000).map((id) => JSON.stringify({ id }))),
    ])
    expect(counts.releases).toBe(1)
    expect(await memory.db.scalar('SELECT count(*)::INTEGER FROM visits')).toBe(2000)
    memory.db.close()
  })

  it('of which each part is still large is cut again', async () => {
    const memory = await openMemorySnapshot()
    const { counts, snapshot } = watchCommits(memory)
    const always: Database = { ...snapshot.db, withMemory: (_, work, parts) => (parts ?? work)() }
    await writeMessages({ db: always }, [
      startedMessage(reviewsInfo()),
      recordsMessage('reviews', ...upTo(16_000).map((id) => reviewJson(id, 1))),
    ])
    expect(counts.releases).toBe(8 + 64)
    expect(await memory.db.scalar('SELECT count(*)::INTEGER FROM reviews')).toBe(16_000)
    memory.db.close()
  })
})

describe('a commit that rejects', () => {
  it('has changed nothing, and does it all when it is called again', async () => {
    const memory = await openMemorySnapshot()
    const { counts, snapshot } = watchCommits(memory, (commit) => commit === 2)
    const twice: Database = { ...snapshot.db, withMemory: (_, work) => work().catch(work) }
    const rows = ['{"id":1,"new":1}', '{"id":2,"other":2}']
    for (const [i, row] of rows.entries())
      await writeMessages({ db: twice }, [
        startedMessage(visitsInfo),
        recordsMessage('visits', row),
        checkpointMessage('visits', { run: i }, 1),
      ])
    expect(counts.commits).toBe(3)
    expect(await memory.db.query('SELECT id, "new", other FROM visits ORDER BY id')).toEqual([
      { id: 1, new: '1', other: null },
      { id: 2, new: null, other: '2' },
    ])
    expect(await memory.db.scalar('SELECT state FROM _state')).toBe('{"run":1}')
    memory.db.close()
  })

  it.each<[string, (snapshot: Snapshot) => Promise<Snapshot>]>([
    ['of the whole', async (snapshot) => snapshot],
    ['in parts', async (snapshot) => commitInParts(snapshot)],
    [
      'that looks for someone forgotten',
      async (snapshot) => {
        await snapshot.db.run(`${forgottenTableSql()}; INSERT INTO _forgotten VALUES ('review', '9', NULL)`)
        return snapshot
      },
    ],
  ])(
    'names the record that is no JSON by its number in the stream, in whichever commit it is: one %s',
    async (_, prepare) => {
      const memory = await openMemorySnapshot()
      const run = writeMessages(await prepare(memory), [
        startedMessage(reviewsInfo()),
        startedMessage(locationsInfo),
        recordsMessage('reviews', reviewJson(1, 1), reviewJson(2, 1)),
        { _tag: 'Waiting', stream: 'reviews', until: 0 },
        recordsMessage('locations', '{"id":1}'),
        recordsMessage('reviews', ...upTo(2000).map((id) => reviewJson(id, 1)), '{"id":}'),
      ])
      await expect(run).rejects.toThrow(
        /^Record 2003 of the stream reviews is not JSON: it breaks at line 1, column 7\.$/,
      )
      memory.db.close()
    },
  )
})

describe('a mark of deletion', () => {
  const dead = '{"id":1,"seen":"2026-01-03T00:00:00Z","_ab_cdc_deleted_at":"2026-01-03T00:00:00Z"}'
  const readIds = async ({ db }: Snapshot, table: string) =>
    (await db.query(`SELECT id FROM ${table} ORDER BY id`)).map(({ id }) => id)

  it('is a value like any other in a stream that is not of reviews, or that has no key', async () => {
    const memory = await openMemorySnapshot()
    await writeMessages(
      memory,
      [
        startedMessage(locationsInfo),
        startedMessage(reviewsInfo()),
        startedMessage(reviewContentsInfo()),
        recordsMessage('locations', dead),
        recordsMessage('review_contents', dead.replace('"id":1', '"id":1,"reviewId":1')),
        recordsMessage('reviews', dead.replace('seen', 'modifiedTime')),
      ],
      { loadOptions: { reviews: { mode: 'append' } } },
    )
    expect(await readIds(memory, 'locations')).toEqual([1])
    expect(await readIds(memory, 'review_contents')).toEqual([1])
    expect(await readIds(memory, 'reviews')).toEqual([1])
    expect(await readIds(memory, '_deletions')).toEqual([])
    memory.db.close()
  })
})
