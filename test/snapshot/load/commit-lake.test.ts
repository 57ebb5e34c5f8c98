import { describe, expect, it } from 'vitest'
import { configFailure } from '../../../connector/cdk/failure'
import type { Message, StreamInfo } from '../../../connector/cdk/stream'
import { type LoadOptions, openLoadStates } from '../../../connector/snapshot/load/earlier-runs'
import { wholeReviewsMessage } from '../../../connector/snapshot/load/known-rows'
import { createSnapshotWriter } from '../../../connector/snapshot/load/writer'
import type { Database, Snapshot } from '../../../connector/snapshot/store/database'
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
  reviewsInfo,
  startedMessage,
  writeMessages,
} from '../../support/snapshot-messages'

const visitsInfo = createStreamInfo('visits', { id: integerSchema, seen: instantSchema }, [], 'id')
const locationsInfo = createStreamInfo('locations', { id: integerSchema, seen: instantSchema }, ['id'], 'seen')

/** Reviews with a content each, another one in each version, one review twice, and rows that belong to no review. */
const run = (minute: number, ...ids: ReadonlyArray<number>): ReadonlyArray<Message> => {
  const streams: ReadonlyArray<readonly [StreamInfo, ReadonlyArray<string>]> = [
    [reviewsInfo(), [...ids.map((id) => reviewJson(id, minute, `text ${minute}`)), reviewJson(3, minute, 'last')]],
    [reviewContentsInfo(), ids.map((id) => contentJson(id, minute, minute))],
    [locationsInfo, ['{"id":1,"seen":"2026-01-01T00:00:00Z"}']],
    [visitsInfo, ['{"id":7}', '{"id":8,"seen":"no time"}']],
  ]
  return [
    ...streams.map(([stream]) => startedMessage(stream)),
    ...streams.map(([{ name }, texts]) => recordsMessage(name, ...texts)),
    ...streams.map(([{ name }, { length }]) => checkpointMessage(name, { minute }, length)),
    ...streams.map(([{ name }]) => finishedMessage(name)),
  ]
}
const readAll = async ({ db }: Snapshot) => {
  const rows: unknown[] = []
  const own = ['_loads', '_streams', '_state', '_meta']
  for (const table of [...own, 'reviews', 'review_contents', 'locations', 'visits', '_history_reviews'])
    rows.push((await db.query(`SELECT t::VARCHAR AS row FROM ${table} AS t ORDER BY ALL`)).map(({ row }) => row))
  return rows
}

/**
 * A lake with the tables of `snapshot`, and its statements with whether each was in a transaction. `before`: runs before each commit; `fail`: rejects
 * each question outside of one for the rows that the lake has.
 */
const watchLake = ({ db }: Snapshot, before: () => Promise<void> = async () => undefined, fail?: Error) => {
  const statements: Array<{ readonly sql: string; readonly isWithin: boolean }> = []
  /** Of each commit its message, or an empty text. */
  const commits: string[] = []
  let [isWithin, version, listed] = [false, 0, 0]
  // Each question is of another version, and there is no change feed: the tables are read anew.
  const noted = (sql: string): string => {
    statements.push({ sql, isWithin })
    version += 1
    if (sql.includes('ducklake_snapshots')) listed = version + 1
    if (fail !== undefined && !isWithin && sql.includes('ducklake_snapshots')) throw fail
    return sql
      .replaceAll(
        `ducklake_snapshots('lake')`,
        `(SELECT ${version + 1} AS snapshot_id, 1 AS schema_version, MAP {} AS changes, '' AS commit_message, '' AS author)`,
      )
      .replaceAll(`ducklake_table_info('lake')`, `(SELECT 0 AS table_id, '' AS table_name)`)
      .replaceAll(`ducklake_current_snapshot('lake')`, `(SELECT ${version + 1} AS id)`)
      .replaceAll(`ducklake_last_committed_snapshot('lake')`, `(SELECT ${listed + 1} AS id)`)
      .replaceAll('t.snapshot_id', '0')
      .replaceAll(/ AT \(VERSION => \d+\)/g, '')
  }
  const lake: Database = {
    ...db,
    lake: {
      dataPath: '/data',
      describeCommit: (message) => void commits.splice(-1, 1, message),
    },
    run: (sql, ...rest) => db.run(noted(sql), ...rest),
    query: async (sql, ...rest) => db.query(noted(sql), ...rest),
    scalar: (sql, ...rest) => db.scalar(noted(sql), ...rest),
    transaction: async (body, undo, prepare) => {
      // Only a commit of changes undoes anything but its statements.
      if (undo !== undefined) {
        commits.push('')
        await before()
      }
      await prepare?.()
      isWithin = true
      return db.transaction(body, undo).finally(() => {
        isWithin = false
      })
    },
  }
  const messages = () => commits.filter((message) => message !== '')
  return { snapshot: { db: lake }, statements, messages, commits, committed: () => listed + 1 }
}
const share = { index: 0, count: 2 }
/** By table that was learned of: the ids up to 9 that are known, and whether the next commit need not ask for what this one has added. */
const listKnown = async ({ db }: Snapshot, committed: () => number) => {
  const known = await db.query('SELECT number, description::JSON->>0 AS name, version FROM temp._known ORDER BY name')
  const found: Record<string, readonly [ids: string, isRemembered: boolean]> = {}
  for (const { number, name, version } of known) {
    const ids = await db.query(
      `SELECT id FROM range(10) AS ids(id) JOIN temp._known_${number} ON key = hash(id) ORDER BY id`,
    )
    found[String(name)] = [ids.map(({ id }) => id).join(' '), Number(version) === committed()]
  }
  return found
}
const listStaged = ({ db }: Snapshot) =>
  db.query(
    "SELECT table_name FROM duckdb_tables() WHERE temporary AND (starts_with(table_name, '_rows') OR starts_with(table_name, '_batch'))",
  )

describe('a commit into a lake that several processes share', () => {
  it('leaves what one into a file leaves, and types its records before the other writers wait', async () => {
    const load = async (toLake: boolean) => {
      const memory = await openMemorySnapshot()
      await openLoadStates(memory, share, 'incremental', 0)
      for (const messages of [run(1, 1, 2, 3), run(2, 3, 4)]) {
        const { snapshot, statements } = watchLake(memory)
        await writeMessages(toLake ? snapshot : memory, messages, { history: true, share })
        const typing = statements.filter(({ sql }) => sql.includes('read_csv') && sql.includes('from_json'))
        // The records of each of four streams, once.
        if (toLake) expect(typing.map(({ isWithin }) => isWithin)).toEqual(Array(4).fill(false))
        expect(await listStaged(memory)).toEqual([])
      }
      const rows = await readAll(memory)
      memory.db.close()
      return rows
    }
    expect(await load(true)).toEqual(await load(false))
  })

  it('learns what the lake has before the other writers wait, and again when they do where it could not', async () => {
    const load = async (fail?: Error) => {
      const memory = await openMemorySnapshot()
      await openLoadStates(memory, share, 'incremental', 0)
      const learned: boolean[] = []
      const dated: boolean[] = []
      for (const messages of [run(1, 1, 2, 3), run(2, 3, 4)]) {
        const { snapshot, statements } = watchLake(memory, undefined, fail)
        await writeMessages(snapshot, messages, { history: true, share })
        const learning = statements.filter(({ sql }) => sql.includes('_known_0 AS'))
        learned.push(...learning.map(({ isWithin }) => isWithin))
        dated.push(...learning.map(({ sql }) => sql.includes(' AT (VERSION => ')))
      }
      const rows = await readAll(memory)
      memory.db.close()
      // Outside of a transaction each statement may see another version.
      expect(dated).toEqual(learned.map((isWithin) => !isWithin))
      return { rows, learned }
    }
    const expected = await load()
    expect(expected.learned.slice(0, 3)).toEqual([false, false, true])
    const late = await load(new Error('No snapshot found at version 3'))
    expect(late.rows).toEqual(expected.rows)
    expect(new Set(late.learned)).toEqual(new Set([true]))
    await expect(load(new Error('Out of Memory Error: failed to allocate data'))).rejects.toThrow('memory')
  })

  const reviews = [reviewJson(1, 1), reviewJson(2, 2)]
  const contents = [contentJson(1, 1, 1), contentJson(1, 1, 2), contentJson(2, 2, 1)]
  it.each<[string, boolean, ReadonlyArray<string>, ReadonlyArray<string>]>([
    ['reviews with their contents', true, reviews, contents],
    ['reviews alone', true, reviews, []],
    ['nothing', true, [], []],
    ['contents alone', false, [], contents],
    ['a content of another review', false, reviews, [...contents, contentJson(3, 1, 1)]],
    ['a content of another version', false, reviews, [...contents, contentJson(2, 1, 2)]],
    ['a review that the lake has', false, [...reviews, reviewJson(7, 1)], contents],
    ['a review twice', false, [...reviews, ...reviews], contents],
    ['a content that the lake has', false, [...reviews, reviewJson(8, 1)], [...contents, contentJson(8, 1, 1)]],
    ['a review that was deleted', false, [...reviews, reviewJson(9, 1)], contents],
    ['a review with a new attribute', false, [...reviews, '{"id":5,"new":1}'], contents],
  ])('says that it adds whole reviews where it does no more: %s', async (_, isWhole, ownReviews, ownContents) => {
    const memory = await openMemorySnapshot()
    await openLoadStates(memory, share, 'incremental', 0)
    const streams = [reviewsInfo(), reviewContentsInfo(), deletedReviewsInfo()]
    await writeMessages(memory, [
      ...streams.map((stream) => startedMessage(stream)),
      recordsMessage('reviews', reviewJson(7, 1)),
      recordsMessage('review_contents', contentJson(8, 1, 1)),
      recordsMessage('deleted_reviews', '{"id":9,"modifiedTime":"2026-01-01T09:00:00.000Z"}'),
    ])
    const { snapshot, messages, committed } = watchLake(memory)
    await writeMessages(
      snapshot,
      [
        ...streams.slice(0, 2).map((stream) => startedMessage(stream)),
        recordsMessage('reviews', ...ownReviews),
        recordsMessage('review_contents', ...ownContents),
      ],
      { share },
    )
    expect(messages()).toEqual(isWhole ? [wholeReviewsMessage] : [])
    if (ownReviews.length + ownContents.length > 0)
      expect(await listKnown(memory, committed)).toEqual({
        deleted_reviews: ['9', isWhole],
        review_contents: ['8', isWhole],
        reviews: [isWhole ? '1 2 7' : '7', isWhole],
      })
    memory.db.close()
  })

  it('remembers what it has added to a table, unless it has met rows there', async () => {
    const memory = await openMemorySnapshot()
    await openLoadStates(memory, share, 'incremental', 0)
    const othersInfo = createStreamInfo('others', { id: integerSchema, seen: instantSchema }, ['id'], 'seen')
    const streams = [reviewsInfo(), locationsInfo, othersInfo, visitsInfo]
    const write = (target: Snapshot, ...records: ReadonlyArray<Message>) =>
      writeMessages(target, [...streams.map((stream) => startedMessage(stream)), ...records], { share })
    await write(memory, recordsMessage('locations', '{"id":1}'))
    const { snapshot, messages, committed } = watchLake(memory)
    await write(
      snapshot,
      recordsMessage('reviews', ...reviews),
      recordsMessage('locations', '{"id":1}', '{"id":2}'),
      recordsMessage('others', '{"id":5}'),
      recordsMessage('visits', '{"id":7}'),
    )
    expect(messages()).toEqual([wholeReviewsMessage])
    expect(await listKnown(memory, committed)).toEqual({
      locations: ['1', false],
      others: ['5', true],
      reviews: ['1 2', true],
    })
    expect(await memory.db.query('SELECT id FROM locations ORDER BY id')).toEqual([{ id: 1 }, { id: 2 }])
    memory.db.close()
  })

  const ofRefresh = { generation: 2, minimum: 2 }
  const toNext: Message = { _tag: 'TableVersion', stream: 'reviews', version: 2, active: true }
  it.each<[string, ReadonlyArray<number>, Readonly<Record<string, LoadOptions>>, ReadonlyArray<Message>]>([
    ['ends a refresh of reviews', [1, 2], { reviews: ofRefresh }, [finishedMessage('reviews')]],
    ['ends a refresh of other rows', [1, 2, 7], { locations: ofRefresh }, [finishedMessage('locations')]],
    ['leaves a refresh open', [1, 2, 7], { reviews: ofRefresh }, []],
    ['ends streams that are not refreshed', [1, 2, 7], {}, [finishedMessage('reviews'), finishedMessage('locations')]],
    ['begins a new version of their table', [], {}, [toNext]],
  ])('may remove reviews, and says so, where it %s', async (_, ids, loadOptions, ends) => {
    const memory = await openMemorySnapshot()
    await openLoadStates(memory, share, 'incremental', 0)
    const streams = [startedMessage(reviewsInfo()), startedMessage(locationsInfo)]
    const old = recordsMessage('reviews', reviewJson(7, 1))
    await writeMessages(memory, [...streams, old, recordsMessage('locations', '{"id":1}')])
    const { snapshot, commits } = watchLake(memory)
    const own = [recordsMessage('reviews', ...reviews), recordsMessage('locations', '{"id":2}')]
    await writeMessages(snapshot, [...streams, ...own, ...ends], { share, loadOptions })
    expect(new Set(commits)).toEqual(new Set(ids.includes(7) ? [wholeReviewsMessage] : [wholeReviewsMessage, '']))
    const left = await memory.db.query('SELECT id FROM reviews ORDER BY id')
    expect(left.map(({ id }) => id)).toEqual(ids)
    memory.db.close()
  })

  it.each<[string, ReadonlyArray<Message>, ReadonlyArray<number | null>]>([
    ['goes on', [], [null, null]],
    ['ends a stream', [finishedMessage('visits')], [1, 1]],
  ])('counts the rows of its tables only where it %s', async (_, ends, rows) => {
    const memory = await openMemorySnapshot()
    await openLoadStates(memory, share, 'incremental', 0)
    const { snapshot } = watchLake(memory)
    let now = 0
    const writer = await createSnapshotWriter(snapshot, { now: () => now, share })
    const state = [checkpointMessage('locations', 1), checkpointMessage('visits', 1)]
    const first = [recordsMessage('locations', '{"id":1}'), recordsMessage('visits', '{"id":7}')]
    for (const message of [startedMessage(locationsInfo), startedMessage(visitsInfo), ...first])
      await writer.write(message)
    now = 60_000
    for (const message of [...state, ...ends, recordsMessage('locations', '{"id":2}')]) await writer.write(message)
    await memory.db.waitForWork()
    const found = await memory.db.query(
      'SELECT s.rows::INTEGER AS rows, l.rows::INTEGER AS own FROM _streams AS s JOIN _loads AS l USING (stream) ORDER BY stream',
    )
    expect(found.map((each) => each.rows)).toEqual(rows)
    expect(found.map((each) => each.own)).toEqual(rows)
    memory.db.close()
  })

  it('says nothing of what it adds where no other process writes', async () => {
    const memory = await openMemorySnapshot()
    const { snapshot, messages } = watchLake(memory)
    await writeMessages(snapshot, [startedMessage(reviewsInfo()), recordsMessage('reviews', ...reviews)])
    expect(messages()).toEqual([])
    memory.db.close()
  })

  it('opens streams without rows together, and ends them together', async () => {
    const memory = await openMemorySnapshot()
    await openLoadStates(memory, share, 'incremental', 0)
    const { snapshot, statements } = watchLake(memory)
    const infos = ['first', 'second', 'third'].map((name) =>
      createStreamInfo(name, { id: integerSchema }, ['id'], 'id'),
    )
    const log: Message = { _tag: 'Log', level: 'info', message: 'nothing to read' }
    const empty = infos.flatMap((info) => [
      startedMessage(info),
      log,
      checkpointMessage(info.name, 1),
      finishedMessage(info.name),
    ])
    await writeMessages(snapshot, empty, { share })
    const count = (text: string) => statements.filter(({ sql }) => sql.includes(text)).length
    expect([count('INSERT INTO _loads'), count('UPDATE _loads')]).toEqual([1, 1])
    expect(await memory.db.query('SELECT stream, status FROM _loads ORDER BY stream')).toEqual(
      infos.map(({ name }) => ({ stream: name, status: 'complete' })),
    )
    expect(await memory.db.query('SELECT stream, state FROM _shares WHERE state IS NOT NULL ORDER BY stream')).toEqual(
      infos.map(({ name }) => ({ stream: name, state: '1' })),
    )
    memory.db.close()
  })

  it('asks for nothing that the lake has where it has no rows', async () => {
    const memory = await openMemorySnapshot()
    await openLoadStates(memory, share, 'incremental', 0)
    const { snapshot, statements } = watchLake(memory)
    const streams = [reviewsInfo(), locationsInfo]
    await writeMessages(snapshot, [...streams.map(startedMessage), checkpointMessage('reviews', 1)], { share })
    expect(statements.filter(({ sql }) => sql.includes('UPDATE _loads'))).not.toEqual([])
    expect(statements.filter(({ sql }) => sql.includes('ducklake'))).toEqual([])
    memory.db.close()
  })

  it.each<[string, ReadonlyArray<Message>, boolean]>([
    ['begins', [], false],
    ['runs', [{ _tag: 'Running', stream: 'visits' }], false],
    ['says how far it has come', [checkpointMessage('visits', 1)], false],
    ['says it again', [checkpointMessage('visits', 1), checkpointMessage('visits', 2)], true],
    ['has a row', [recordsMessage('visits', '{"id":7}')], true],
    ['waits', [{ _tag: 'Waiting', stream: 'visits', until: 9 }], true],
    ['fails', [{ _tag: 'Failed', stream: 'visits', failure: configFailure('no') }], true],
    ['is begun again', [startedMessage(visitsInfo)], true],
    ['is not alone', [startedMessage(locationsInfo), checkpointMessage('locations', 1)], false],
  ])('opens a stream where it %s', async (_, messages, isOpen) => {
    const memory = await openMemorySnapshot()
    await openLoadStates(memory, share, 'incremental', 0)
    const { snapshot } = watchLake(memory)
    const writer = await createSnapshotWriter(snapshot, { now: () => 0, share })
    for (const message of [startedMessage(visitsInfo), ...messages]) await writer.write(message)
    await memory.db.waitForWork()
    expect(await memory.db.scalar('SELECT count(*) > 0 FROM _loads')).toBe(isOpen)
    memory.db.close()
  })

  it('opens a stream before the state of another one that goes on', async () => {
    const memory = await openMemorySnapshot()
    await openLoadStates(memory, share, 'incremental', 0)
    const { snapshot } = watchLake(memory)
    const writer = await createSnapshotWriter(snapshot, { now: () => 0, share })
    const before = [startedMessage(locationsInfo), recordsMessage('locations', '{"id":1}')]
    for (const message of [...before, startedMessage(visitsInfo), checkpointMessage('locations', 1)])
      await writer.write(message)
    await memory.db.waitForWork()
    expect(await memory.db.scalar('SELECT count(*)::INTEGER FROM _loads')).toBe(2)
    memory.db.close()
  })

  it.each([undefined, share])('may find its new columns there, as another writer has added them: %j', async (own) => {
    const memory = await openMemorySnapshot()
    await openLoadStates(memory, share, 'incremental', 0)
    const streams = [startedMessage(locationsInfo), startedMessage(visitsInfo)]
    await writeMessages(memory, streams)
    let commits = 0
    const { snapshot } = watchLake(memory, async () => {
      commits += 1
      if (commits === 1)
        await memory.db.run('ALTER TABLE visits ADD COLUMN other JSON; ALTER TABLE visits ADD COLUMN new JSON')
    })
    await writeMessages(
      snapshot,
      [
        ...streams,
        recordsMessage('locations', '{"id":1,"new":2}'),
        recordsMessage('visits', '{"id":7,"new":3}', '{"id":8}'),
      ],
      { share: own },
    )
    expect(await memory.db.query('SELECT id, "new", other FROM visits ORDER BY id')).toEqual([
      { id: 7, new: '3', other: null },
      { id: 8, new: null, other: null },
    ])
    expect(await memory.db.query('SELECT id, "new" FROM locations')).toEqual([{ id: 1, new: '2' }])
    memory.db.close()
  })

  it('types its rows again where another writer has widened a column since', async () => {
    const memory = await openMemorySnapshot()
    await openLoadStates(memory, share, 'incremental', 0)
    const info = createStreamInfo('codes', { code: { type: 'number' }, seen: instantSchema }, ['code'], 'seen')
    const write = (target: Snapshot, day: number) =>
      writeMessages(
        target,
        [startedMessage(info), recordsMessage('codes', `{"code":5,"seen":"2026-01-0${day}T00:00:00Z"}`)],
        { share },
      )
    await write(memory, 1)
    let commits = 0
    const { snapshot } = watchLake(memory, async () => {
      commits += 1
      // As the text of a record has it, where DuckDB makes 5.0 of the number.
      if (commits === 1)
        await memory.db.run(`ALTER TABLE codes ALTER COLUMN code TYPE VARCHAR; UPDATE codes SET code = '5'`)
    })
    await write(snapshot, 2)
    expect(await memory.db.query('SELECT code, seen::VARCHAR AS seen FROM codes')).toEqual([
      { code: '5', seen: '2026-01-02 00:00:00+00' },
    ])
    memory.db.close()
  })

  it('meets its keys where another writer has widened their type since its rows were typed', async () => {
    const memory = await openMemorySnapshot()
    await openLoadStates(memory, share, 'incremental', 0)
    const write = (target: Snapshot, seen: string) =>
      writeMessages(
        target,
        [startedMessage(locationsInfo), recordsMessage('locations', `{"id":1,"seen":"2026-01-0${seen}T00:00:00Z"}`)],
        { share },
      )
    await write(memory, '1')
    let commits = 0
    const { snapshot } = watchLake(memory, async () => {
      commits += 1
      if (commits === 1) await memory.db.run('ALTER TABLE locations ALTER COLUMN id TYPE VARCHAR')
    })
    await write(snapshot, '2')
    expect(await memory.db.query('SELECT id, seen::VARCHAR AS seen FROM locations')).toEqual([
      { id: '1', seen: '2026-01-02 00:00:00+00' },
    ])
    memory.db.close()
  })

  it('keeps the values of a column that another writer has added since, where it meets a row', async () => {
    const memory = await openMemorySnapshot()
    await openLoadStates(memory, share, 'incremental', 0)
    await writeMessages(memory, [startedMessage(reviewsInfo()), recordsMessage('reviews', reviewJson(1, 5, 'newer'))], {
      history: true,
    })
    let commits = 0
    const { snapshot } = watchLake(memory, async () => {
      commits += 1
      if (commits === 1)
        await memory.db.run(`
          ALTER TABLE reviews ADD COLUMN added JSON; ALTER TABLE _history_reviews ADD COLUMN added JSON; UPDATE reviews SET added = '7'`)
    })
    const texts = [reviewJson(1, 3, 'older'), reviewJson(2, 3)]
    await writeMessages(snapshot, [startedMessage(reviewsInfo()), recordsMessage('reviews', ...texts)], { share })
    expect(await memory.db.query('SELECT id, text, added FROM reviews ORDER BY id')).toEqual([
      { id: 1, text: 'newer', added: '7' },
      { id: 2, text: null, added: null },
    ])
    const newest = reviewJson(1, 9, 'newest')
    await writeMessages(snapshot, [startedMessage(reviewsInfo()), recordsMessage('reviews', newest)], { share })
    expect(
      await memory.db.query('SELECT text, added FROM _history_reviews WHERE text = $text', { text: 'newer' }),
    ).toEqual([{ text: 'newer', added: '7' }])
    memory.db.close()
  })

  it('leaves none of its own tables where it rejects', async () => {
    const memory = await openMemorySnapshot()
    await openLoadStates(memory, share, 'incremental', 0)
    const { snapshot, statements } = watchLake(memory, () => Promise.reject(new Error('stopped here')))
    await expect(writeMessages(snapshot, run(1, 1, 2, 3), { share })).rejects.toThrow('stopped here')
    expect(statements.filter(({ sql }) => sql.startsWith('CREATE OR REPLACE TEMP TABLE temp._rows_'))).toHaveLength(4)
    expect(await listStaged(memory)).toEqual([])
    memory.db.close()
  })

  it.each(['file', 'lake of one writer'])(
    'has a %s type its records within the transaction, and not keep them apart',
    async (kind) => {
      const memory = await openMemorySnapshot()
      const { snapshot, statements } = watchLake(memory)
      const { lake: _, ...file } = snapshot.db
      await writeMessages({ db: kind === 'file' ? file : snapshot.db }, run(1, 1, 2, 3))
      const typing = statements.filter(({ sql }) => sql.includes('read_csv') && sql.includes('from_json'))
      expect(new Set(typing.map(({ isWithin }) => isWithin))).toEqual(new Set([true]))
      expect(statements.filter(({ sql }) => sql.includes('_rows_') || sql.includes('ducklake'))).toEqual([])
      memory.db.close()
    },
  )
})
