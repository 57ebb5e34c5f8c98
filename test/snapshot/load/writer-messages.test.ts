import { chmodSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { transientFailure } from '../../../connector/cdk/failure'
import { JsonText } from '../../../connector/cdk/json/exact'
import type { Message } from '../../../connector/cdk/message'
import { createFileLoader } from '../../../connector/snapshot/load/loader'
import { createSnapshotWriter, type SnapshotWriterOptions } from '../../../connector/snapshot/load/writer'
import type { Database, Snapshot } from '../../../connector/snapshot/store/database'
import {
  checkpointMessage,
  createStreamInfo,
  deletedReviewsInfo,
  finishedMessage,
  instantSchema,
  integerSchema,
  openMemorySnapshot,
  openSnapshotFile,
  recordsMessage,
  reviewContentsInfo,
  reviewJson,
  reviewsInfo,
  startedMessage,
  streamMessages,
  timeAtMinute,
  writeMessages,
} from '../../support/snapshot-messages'
import { listOpenSpools } from '../../support/snapshot-tables'

const thingsInfo = (more: Record<string, unknown> = {}) =>
  createStreamInfo('things', { id: integerSchema, at: instantSchema, ...more }, ['id'], 'at')
const othersInfo = createStreamInfo('others', { id: integerSchema, at: instantSchema }, ['id'], 'at')
const thing = (id: number, more: object = {}) => JSON.stringify({ id, at: timeAtMinute(1), ...more })
const things = (...ids: ReadonlyArray<number>) => recordsMessage('things', ...ids.map((id) => thing(id)))
const version = (number: number, active: boolean): Message => ({
  _tag: 'TableVersion',
  stream: 'things',
  version: number,
  active,
})
const failed = (stream?: string): Message => ({
  _tag: 'Failed',
  ...(stream === undefined ? {} : { stream }),
  failure: transientFailure('stopped'),
})

const listIds = async ({ db }: Snapshot, table = 'things'): Promise<ReadonlyArray<unknown>> =>
  (await db.query(`SELECT id FROM ${table} ORDER BY id`)).map(({ id }) => id)

/** Writes one message at a time; `committed` after each: the ids in the table. */
const follow = async (
  snapshot: Snapshot,
  messages: ReadonlyArray<Message>,
  options: Partial<SnapshotWriterOptions> = {},
) => {
  const writer = await createSnapshotWriter(snapshot, { now: () => 0, ...options })
  const committed: Array<ReadonlyArray<unknown>> = []
  for (const message of messages) {
    await writer.write(message)
    await snapshot.db.waitForWork()
    committed.push(await listIds(snapshot))
  }
  return { committed, finish: writer.finish }
}

/** The database, and what it does of which memory may be too little. */
const watchWork = async () => {
  const { db } = await openMemorySnapshot()
  const works: string[] = []
  const watched: Database = {
    ...db,
    withMemory: (name, ...rest) => {
      works.push(name)
      return db.withMemory(name, ...rest)
    },
    checkpoint: async () => {
      works.push('checkpoint')
      return false
    },
  }
  return { db, works, snapshot: { db: watched } }
}

describe('the work of a run', () => {
  it('is named where memory is too little for it, and its log is brought into the file after each commit', async () => {
    const { db, works, snapshot } = await watchWork()
    await writeMessages(snapshot, [startedMessage(thingsInfo()), things(1), finishedMessage('things')])
    expect(works).toEqual([
      'preparing the table of things',
      ...['committing 1 records of things', 'checkpoint'],
      'creating the views',
    ])
    db.close()
  })

  it('ends the streams that end together in one commit', async () => {
    const { db, works, snapshot } = await watchWork()
    await writeMessages(snapshot, [
      ...[startedMessage(thingsInfo()), startedMessage(othersInfo), things(1)],
      ...[finishedMessage('things'), finishedMessage('others')],
    ])
    expect(works.filter((name) => name.startsWith('committing'))).toEqual(['committing 1 records of things'])
    db.close()
  })

  it.each([
    [true, ['things, others']],
    [false, ['things', 'others']],
  ])(
    'opens the streams together that are declared together, where the loader likes that: %s',
    async (opensTogether, opened) => {
      const { db, works, snapshot } = await watchWork()
      const loader = { ...(await createFileLoader(snapshot.db, false)), opensTogether }
      const writer = await createSnapshotWriter(snapshot, { now: () => 0, loader })
      for (const message of [startedMessage(thingsInfo()), startedMessage(othersInfo)]) await writer.write(message)
      expect(works).toEqual(opensTogether ? [] : opened.map((names) => `preparing the table of ${names}`))
      await writer.write(things(1))
      expect(works).toEqual(opened.map((names) => `preparing the table of ${names}`))
      db.close()
    },
  )

  it('opens the streams at its end that sent nothing', async () => {
    const { db, snapshot } = await watchWork()
    const loader = { ...(await createFileLoader(snapshot.db, false)), opensTogether: true }
    const [summary] = await writeMessages(snapshot, [startedMessage(thingsInfo())], { loader })
    expect(summary).toMatchObject({ stream: 'things', status: 'incomplete', records: 0 })
    db.close()
  })

  it('lets a commit go on while messages are read, every 2 ms', async () => {
    const { db } = await openMemorySnapshot()
    let endCommit: (() => void) | undefined
    const held = new Promise<void>((resolve) => {
      endCommit = resolve
    })
    const withMemory: Database['withMemory'] = async (name, ...rest) => {
      if (name.startsWith('committing')) await held
      return db.withMemory(name, ...rest)
    }
    const writer = await createSnapshotWriter({ db: { ...db, withMemory } }, { now: () => 0 })
    const clock = vi.spyOn(performance, 'now')
    /** Returns true if other work gets a turn while a message is written at this time. */
    const hasTurn = async (millis: number) => {
      clock.mockReturnValue(millis)
      let turned = false
      setImmediate(() => {
        turned = true
      })
      await writer.write(things(1))
      return turned
    }
    try {
      await writer.write(startedMessage(thingsInfo()))
      expect(await hasTurn(5000)).toBe(false)
      await writer.write(finishedMessage('things'))
      await hasTurn(6000)
      const turns: boolean[] = []
      for (const millis of [6001, 6001.9, 6002, 6003, 6005]) turns.push(await hasTurn(millis))
      expect(turns).toEqual([false, false, true, false, true])
      endCommit?.()
      await db.waitForWork()
      expect(await hasTurn(7000)).toBe(false)
    } finally {
      clock.mockRestore()
    }
    db.close()
  })
})

describe('a run that was killed', () => {
  it('is incomplete from the next run on', async () => {
    const { db, snapshot } = await watchWork()
    await (await createSnapshotWriter({ db }, { now: () => 0 })).write(startedMessage(thingsInfo()))
    await createSnapshotWriter(snapshot, { now: () => 0 })
    expect(await db.query('SELECT run::INTEGER AS run, status FROM _loads')).toEqual([{ run: 1, status: 'incomplete' }])
    db.close()
  })
})

describe('a commit begins', () => {
  const start = startedMessage(thingsInfo())

  it('when a stream waits, and when another one is declared', async () => {
    const snapshot = await openMemorySnapshot()
    const { committed } = await follow(snapshot, [
      start,
      things(1),
      { _tag: 'Waiting', stream: 'things', until: 9 },
      things(2),
      startedMessage(othersInfo),
    ])
    expect(committed).toEqual([[], [], [1], [1], [1, 2]])
    snapshot.db.close()
  })

  it('not when a stream is declared again in the same way, nor at what a run says of itself', async () => {
    const snapshot = await openMemorySnapshot()
    const { committed } = await follow(snapshot, [
      start,
      things(1),
      start,
      { _tag: 'Log', level: 'info', message: 'here' },
      { _tag: 'Running', stream: 'things' } as Message,
    ])
    expect(committed).toEqual([[], [], [], [], []])
    snapshot.db.close()
  })

  it.each([5_000, 30_000])('with the page after so much time: %i', async (millis) => {
    for (const [elapsed, isDue] of [
      [millis - 1, false],
      [millis, true],
    ] as const) {
      const snapshot = await openMemorySnapshot()
      const { db } = snapshot
      let now = 1000
      const loader = await createFileLoader(db, false)
      const writer = await createSnapshotWriter(snapshot, {
        now: () => now,
        ...(millis === loader.limits.millis ? {} : { loader: { ...loader, limits: { ...loader.limits, millis } } }),
      })
      for (const message of [start, things(1)]) await writer.write(message)
      now += elapsed
      await writer.write(checkpointMessage('things', 1))
      await db.waitForWork()
      expect(await listIds(snapshot)).toEqual([])
      await writer.write(things(2))
      await db.waitForWork()
      expect(await listIds(snapshot)).toEqual(isDue ? [1] : [])
      db.close()
    }
  })

  it.each([
    ['too much', true, [15_100_000], true],
    ['enough', true, [14_900_000], false],
    ['too much after smaller ones', true, [100_000, 15_000_000], true],
    ['small after larger ones', true, [14_900_000, 100_000], false],
    ['too much, where a page may be cut', false, [15_100_000], false],
  ])('with a page, before another one like it that would be %s', async (_, wholePages, sizes, isDue) => {
    const snapshot = await openMemorySnapshot()
    const loader = await createFileLoader(snapshot.db, false)
    const limits = { ...loader.limits, bytes: 30_000_000, wholePages }
    const writer = await createSnapshotWriter(snapshot, { now: () => 0, loader: { ...loader, limits } })
    await writer.write(start)
    for (const [i, size] of sizes.entries()) {
      await writer.write(recordsMessage('things', `{"id":${i},"text":"${'x'.repeat(size)}"}`))
      await writer.write(checkpointMessage('things', i))
      await snapshot.db.waitForWork()
      expect(await listIds(snapshot)).toEqual([])
    }
    await writer.write(things(9))
    await snapshot.db.waitForWork()
    expect(await listIds(snapshot)).toEqual(isDue ? sizes.map((_size, i) => i) : [])
    snapshot.db.close()
  })

  it('counts its time from the commit before', async () => {
    const snapshot = await openMemorySnapshot()
    let now = 0
    const writer = await createSnapshotWriter(snapshot, { now: () => now })
    await writer.write(start)
    now = 4000
    await writer.write({ _tag: 'Waiting', stream: 'things', until: 9 })
    await writer.write(things(1))
    now = 6000
    await writer.write(checkpointMessage('things', 1))
    await writer.write(things(2))
    await snapshot.db.waitForWork()
    expect(await listIds(snapshot)).toEqual([])
    snapshot.db.close()
  })

  it.each<[string, ReadonlyArray<Message>, boolean]>([
    ['other rows before deletions', [things(1), recordsMessage('deleted_reviews', reviewJson(9, 1))], true],
    ['deletions before other rows', [recordsMessage('deleted_reviews', reviewJson(9, 1)), things(1)], true],
    ['rows of two streams', [recordsMessage('reviews', reviewJson(9, 1)), things(1)], false],
    ['rows of one stream', [things(1), things(2)], false],
    ['deletions alone', Array(2).fill(recordsMessage('deleted_reviews', reviewJson(9, 1))), false],
  ])('between deletions and other rows: %s', async (_, messages, isCommitted) => {
    const snapshot = await openMemorySnapshot()
    const writer = await createSnapshotWriter(snapshot, { now: () => 0 })
    for (const info of [thingsInfo(), reviewsInfo(), deletedReviewsInfo()]) await writer.write(startedMessage(info))
    for (const message of messages) await writer.write(message)
    await snapshot.db.waitForWork()
    const rows = await Promise.all(['things', 'reviews', 'deleted_reviews'].map((table) => listIds(snapshot, table)))
    expect(rows.flat().length).toBe(isCommitted ? 1 : 0)
    snapshot.db.close()
  })
})

describe('the end of a stream', () => {
  const summary = (summaries: ReadonlyArray<{ stream: string; status: string }>) =>
    summaries.map(({ stream, status }) => `${stream} ${status}`)
  const start = [startedMessage(thingsInfo()), startedMessage(othersInfo)]

  it('is incomplete for the stream that fails, or for all that have not ended', async () => {
    const snapshot = await openMemorySnapshot()
    for (const [ends, expected] of [
      [
        [failed('things'), finishedMessage('others')],
        ['things incomplete', 'others complete'],
      ],
      [
        [finishedMessage('others'), failed()],
        ['things incomplete', 'others complete'],
      ],
      [
        [failed('unknown'), finishedMessage('things')],
        ['things complete', 'others incomplete'],
      ],
      [
        [failed('things'), finishedMessage('things')],
        ['things incomplete', 'others incomplete'],
      ],
      [
        [{ _tag: 'Finished', stream: 'things', extent: 'unknown' }, finishedMessage('others')],
        ['things incomplete', 'others complete'],
      ],
    ] as const) {
      expect(summary(await writeMessages(snapshot, [...start, ...ends]))).toEqual(expected)
    }
    snapshot.db.close()
  })

  it('is in the file with the next message where the source has failed', async () => {
    const snapshot = await openMemorySnapshot()
    const writer = await createSnapshotWriter(snapshot, { now: () => 0 })
    for (const message of [...start, failed(), { _tag: 'Log', level: 'info', message: 'next' } as const])
      await writer.write(message)
    await snapshot.db.waitForWork()
    expect(await snapshot.db.query('SELECT DISTINCT status FROM _loads')).toEqual([{ status: 'incomplete' }])
    snapshot.db.close()
  })

  it('is summed up with its seconds', async () => {
    const snapshot = await openMemorySnapshot()
    let now = 10_000
    const writer = await createSnapshotWriter(snapshot, { now: () => now })
    for (const message of start) await writer.write(message)
    now += 1500
    await writer.write(finishedMessage('things'))
    now += 1000
    const summaries = await writer.finish()
    expect(summaries.map(({ stream, seconds, records }) => [stream, seconds, records])).toEqual([
      ['things', 1.5, 0],
      ['others', 2.5, 0],
    ])
    snapshot.db.close()
  })

  it('of one refresh is committed at once, that of others with the next message', async () => {
    const snapshot = await openMemorySnapshot()
    const statusOf = async (messages: ReadonlyArray<Message>, mode?: 'full_refresh') => {
      const writer = await createSnapshotWriter(snapshot, { now: () => 0 })
      const info = mode === undefined ? thingsInfo() : { ...thingsInfo(), syncMode: mode }
      for (const message of [startedMessage(info), things(1), finishedMessage('things'), ...messages])
        await writer.write(message)
      await snapshot.db.waitForWork()
      return snapshot.db.scalar('SELECT status FROM _loads ORDER BY load DESC LIMIT 1')
    }
    expect(await statusOf([])).toBe('running')
    expect(await statusOf([{ _tag: 'Log', level: 'info', message: 'next' }])).toBe('complete')
    expect(await statusOf([], 'full_refresh')).toBe('complete')
    snapshot.db.close()
  })

  it('lets the stream begin again in the same run', async () => {
    const snapshot = await openMemorySnapshot()
    const again = streamMessages(thingsInfo(), thing(1))
    expect(summary(await writeMessages(snapshot, [...again, ...again]))).toEqual(['things complete'])
    expect(await snapshot.db.scalar('SELECT count(*)::INTEGER FROM _loads')).toBe(2)
    snapshot.db.close()
  })
})

describe('the records of a source', () => {
  it('are counted if it counts them in every checkpoint or in some', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(snapshot, [
      startedMessage(thingsInfo()),
      startedMessage(othersInfo),
      things(1, 2),
      checkpointMessage('things', 1, 2),
      checkpointMessage('things', 2, Number.NaN),
      checkpointMessage('things', 3, 1),
      checkpointMessage('others', 1, Number.NaN),
    ])
    expect(await snapshot.db.query('SELECT stream, records, source_records FROM _loads ORDER BY load')).toEqual([
      { stream: 'things', records: 2, source_records: 3 },
      { stream: 'others', records: 0, source_records: null },
    ])
    snapshot.db.close()
  })

  it('of a stream that was not declared end the run', async () => {
    const snapshot = await openMemorySnapshot()
    await expect(writeMessages(snapshot, [things(1)])).rejects.toThrow(
      'Stream things sends records without having been declared.',
    )
    snapshot.db.close()
  })
})

describe('a state of another service', () => {
  const state = (service: string) => ({ service, cursor: 1 })
  const start = startedMessage(thingsInfo())

  it('ends the run, and nothing of it is written', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(snapshot, [start, things(1), checkpointMessage('things', state('aa.bb'))])
    await writeMessages(snapshot, [start, things(2), checkpointMessage('things', state('aa.bb'))])
    await writeMessages(snapshot, [start, checkpointMessage('things', { cursor: 2 })])
    await writeMessages(snapshot, [start, checkpointMessage('things', state('aa.bb'))])
    const other = [start, things(3), checkpointMessage('things', state('cc.dd'))]
    await expect(writeMessages(snapshot, other)).rejects.toThrow(/another service than the state of things/)
    expect(await listIds(snapshot)).toEqual([1, 2])
    snapshot.db.close()
  })

  it('is known in whatever way it is written, and in one of several states', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(snapshot, [start, checkpointMessage('things', state('aa.bb'))])
    for (const text of ['{"service": "cc.dd"}', '{"cursor":1,"service":\t"cc.dd" }']) {
      const states = [
        { stream: 'things', state: state('aa.bb') },
        { stream: 'others', state: new JsonText(text) },
      ]
      await expect(
        writeMessages(snapshot, [start, startedMessage(othersInfo), { _tag: 'SharedCheckpoint', states }]),
      ).rejects.toThrow(/another service than the state of others/)
    }
    snapshot.db.close()
  })
})

it('leaves the file and its log readable to their owner only after a commit', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'writer-messages-'))
  try {
    const path = join(folder, 'file.duckdb')
    const snapshot = await openSnapshotFile(path)
    const writer = await createSnapshotWriter(snapshot, { now: () => 0 })
    for (const message of [startedMessage(thingsInfo()), things(1)]) await writer.write(message)
    chmodSync(path, 0o644)
    await writer.write({ _tag: 'Waiting', stream: 'things', until: 9 })
    expect([path, `${path}.wal`].map((file) => statSync(file).mode & 0o777)).toEqual([0o600, 0o600])
    snapshot.db.close()
  } finally {
    rmSync(folder, { recursive: true })
  }
})

describe('a commit that fails', () => {
  it('ends the run with the message after it, and with every other one', async () => {
    const spools = listOpenSpools().length
    const { db } = await openMemorySnapshot()
    const watched: Database = {
      ...db,
      withMemory: (name, ...rest) =>
        name.startsWith('committing') ? Promise.reject(new Error('no room')) : db.withMemory(name, ...rest),
    }
    const writer = await createSnapshotWriter({ db: watched }, { now: () => 0 })
    for (const message of [startedMessage(thingsInfo()), things(1)]) await writer.write(message)
    const told = /^:memory: cannot be written: no room/
    await expect(writer.write({ _tag: 'Waiting', stream: 'things', until: 9 })).rejects.toThrow(told)
    await expect(writer.write(things(2))).rejects.toThrow(told)
    await expect(writer.finish()).rejects.toThrow(told)
    expect(listOpenSpools().length).toBe(spools)
    db.close()
  })
})

it('the children of a review may be declared before it, and views show all at the end of the run', async () => {
  const snapshot = await openMemorySnapshot()
  await writeMessages(snapshot, [
    ...streamMessages(reviewContentsInfo()),
    ...streamMessages(reviewsInfo(), reviewJson(1, 1)),
  ])
  expect(await snapshot.db.scalar('SELECT count(*)::INTEGER FROM duckdb_views() WHERE NOT internal')).toBeGreaterThan(0)
  snapshot.db.close()
})

describe('the old rows of a stream', () => {
  const refreshed = startedMessage({ ...thingsInfo(), syncMode: 'full_refresh' })
  it.each<[string, ReadonlyArray<Message>, number, boolean]>([
    ['of a refresh that is complete', [refreshed, things(2), finishedMessage('things')], 20_001, true],
    ['of a refresh, if they are not many', [refreshed, things(2), finishedMessage('things')], 20_000, false],
    ['of no refresh that has failed', [refreshed, things(2), failed('things')], 20_001, false],
    [
      'of no run that is no refresh',
      [startedMessage(thingsInfo()), things(2), finishedMessage('things')],
      20_001,
      false,
    ],
    ['of a version', [startedMessage(thingsInfo()), version(5, false), things(2), version(5, true)], 20_001, true],
  ])('are removed in parts, after the new ones are in the file: %s', async (_, messages, old, inParts) => {
    const { db, works, snapshot } = await watchWork()
    await writeMessages({ db }, [startedMessage(thingsInfo()), finishedMessage('things')])
    await db.run(`INSERT INTO things (id, _airbyte_raw_id, _airbyte_generation_id)
      SELECT 10 + n, md5(n::VARCHAR)::UUID, 0 FROM range(${old}) AS numbers(n)`)
    await writeMessages(snapshot, messages)
    expect(works.filter((name) => /records|removing/.test(name))).toEqual([
      'committing 1 records of things',
      ...(inParts ? Array(2).fill('removing the old rows of things') : []),
    ])
    db.close()
  })
})

describe('a table in versions', () => {
  const readGeneration = async ({ db }: Snapshot) =>
    (await db.query("SELECT generation::INTEGER AS generation, refreshing FROM _streams WHERE stream = 'things'"))[0]

  it('keeps the rows of the version before until the next one is active', async () => {
    const snapshot = await openMemorySnapshot()
    const { committed, finish } = await follow(snapshot, [
      startedMessage(thingsInfo()),
      version(100, false),
      things(1, 2),
      version(100, true),
      version(200, false),
      things(2, 3),
      version(200, true),
      things(4),
    ])
    await finish()
    expect(committed).toEqual([[], [], [], [1, 2], [1, 2], [1, 2], [2, 3], [2, 3]])
    expect(await listIds(snapshot)).toEqual([2, 3, 4])
    expect(await readGeneration(snapshot)).toEqual({ generation: 200, refreshing: false })
    snapshot.db.close()
  })

  it('of the next run removes the rows of the run before', async () => {
    const snapshot = await openMemorySnapshot()
    for (const [number, ids] of [
      [100, [1, 2]],
      [200, [2, 3]],
    ] as const)
      await writeMessages(snapshot, [
        startedMessage(thingsInfo()),
        version(number, false),
        things(...ids),
        version(number, true),
      ])
    expect(await listIds(snapshot)).toEqual([2, 3])
    snapshot.db.close()
  })

  it('is committed when another one begins, and not before', async () => {
    const snapshot = await openMemorySnapshot()
    const { committed } = await follow(snapshot, [
      startedMessage(thingsInfo()),
      version(100, false),
      things(1),
      version(100, false),
      version(200, false),
    ])
    expect(committed).toEqual([[], [], [], [], [1]])
    snapshot.db.close()
  })

  it('that is older than the rows of the file removes nothing, and neither does its own', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(snapshot, [startedMessage(thingsInfo()), version(200, true), things(1), version(200, true)])
    await writeMessages(snapshot, [startedMessage(thingsInfo()), version(100, false), things(2), version(100, true)])
    expect(await listIds(snapshot)).toEqual([1, 2])
    expect(await readGeneration(snapshot)).toEqual({ generation: 200, refreshing: false })
    snapshot.db.close()
  })

  it('that is older than the one which has begun does not end it', async () => {
    const snapshot = await openMemorySnapshot()
    const messages = [startedMessage(thingsInfo()), things(1), version(200, false), things(2), version(100, true)]
    await writeMessages(snapshot, messages)
    expect(await listIds(snapshot)).toEqual([1, 2])
    snapshot.db.close()
  })

  it('removes nothing more once it was active', async () => {
    const snapshot = await openMemorySnapshot()
    const { finish } = await follow(snapshot, [
      startedMessage(thingsInfo()),
      version(100, false),
      things(1),
      version(100, true),
      version(200, false),
      things(2),
    ])
    await finish()
    expect(await listIds(snapshot)).toEqual([1, 2])
    snapshot.db.close()
  })
})

describe('a commit of many records begins', () => {
  /** Opens a stream with this many columns. Returns the commits that begin while this many more records are written. */
  const openStream = async (columns: number, json: string) => {
    const { db } = await openMemorySnapshot()
    const commits: string[] = []
    // The records need not be in the file for this.
    const withMemory: Database['withMemory'] = async (name, work, parts) => {
      if (!name.startsWith('committing')) return db.withMemory(name, work, parts)
      commits.push(name)
      return undefined as Awaited<ReturnType<typeof work>>
    }
    const declared = Object.fromEntries(Array.from({ length: columns - 2 }, (_, n) => [`c${n}`, { type: 'string' }]))
    const row = { json: Buffer.from(json) }
    const writer = await createSnapshotWriter({ db: { ...db, withMemory } }, { now: () => 0 })
    await writer.write(startedMessage(thingsInfo(declared)))
    const add = async (rows: number) => {
      await writer.write({ _tag: 'Records', stream: 'things', at: 0, rows: Array(rows).fill(row) })
      await db.waitForWork()
      return commits
    }
    return { db, add }
  }

  it.each([['64 MB', 200, 64]])('after %s, and after as many again', async (_, columns, count) => {
    const { db, add } = await openStream(columns, `"${'x'.repeat(999_998)}"`)
    const one = `committing ${count} records of things`
    expect(await add(count - 1)).toEqual([])
    expect(await add(1)).toEqual([one])
    expect(await add(count - 1)).toEqual([one])
    expect(await add(1)).toEqual([one, one])
    db.close()
  })

  it('after 250,000 of them', async () => {
    const { db, add } = await openStream(3, '{}')
    expect(await add(249_999)).toEqual([])
    expect(await add(1)).toEqual(['committing 250,000 records of things'])
    db.close()
  })
})
