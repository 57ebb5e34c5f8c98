import { describe, expect, it } from 'vitest'
import type { Message } from '../../../connector/cdk/stream'
import { checkShare, openLoadStates, readLoadStates, settleShares } from '../../../connector/snapshot/load/earlier-runs'
import type { Snapshot } from '../../../connector/snapshot/store/database'
import {
  checkpointMessage,
  createStreamInfo,
  emittedAt,
  finishedMessage,
  instantSchema,
  integerSchema,
  openMemorySnapshot,
  recordsMessage,
  startedMessage,
  writeMessages,
} from '../../support/snapshot-messages'

const [first, second] = [
  { index: 0, count: 2 },
  { index: 1, count: 2 },
] as const
type Share = typeof first | typeof second

const infos = ["it's", 'others'].map((name) =>
  createStreamInfo(name, { id: integerSchema, at: instantSchema }, ['id'], 'at'),
)
/** What a process reads of both streams. */
const readShare = (index: number, isWhole: boolean): ReadonlyArray<Message> =>
  infos.flatMap((info) => [
    startedMessage(info),
    recordsMessage(info.name, `{"id":${index}}`),
    checkpointMessage(info.name, { index }, 1),
    ...(isWhole ? [finishedMessage(info.name)] : []),
  ])

const runShare = async (snapshot: Snapshot, share: Share, isWhole = true): Promise<void> => {
  await openLoadStates(snapshot, share, 'incremental', emittedAt)
  await writeMessages(snapshot, readShare(share.index, isWhole), { share })
  if (isWhole) await settleShares(snapshot, share, () => undefined, emittedAt)
}
const statesOf = (index: number) => ({ "it's": { index }, others: { index } })

const listShares = async ({ db }: Snapshot) =>
  (await db.query('SELECT share, stream FROM _shares WHERE stream IS NOT NULL ORDER BY ALL')).map(
    ({ share, stream }) => `${share} ${stream}`,
  )

describe('the processes that share a backfill', () => {
  it('each go on from their own states, of which a run without them knows nothing', async () => {
    const snapshot = await openMemorySnapshot()
    expect(await openLoadStates(snapshot, first, 'incremental', emittedAt)).toEqual({})
    await runShare(snapshot, first)
    await runShare(snapshot, second, false)
    await runShare(snapshot, first)
    expect(await listShares(snapshot)).toEqual(["0/2 it's", '0/2 others', "1/2 it's", '1/2 others'])
    for (const share of [first, second]) {
      expect(await readLoadStates(snapshot, share)).toEqual(statesOf(share.index))
      expect(await openLoadStates(snapshot, share, 'incremental', emittedAt)).toEqual(statesOf(share.index))
    }
    expect(await openLoadStates(snapshot, undefined, 'incremental', emittedAt)).toEqual({})
    expect(await readLoadStates(snapshot, undefined)).toEqual({})
    expect(
      await snapshot.db.query(
        'SELECT DISTINCT epoch_ms(saved_at) AS "at", count(*)::INTEGER AS loads FROM _shares JOIN _loads USING (load) GROUP BY ALL',
      ),
    ).toEqual([{ at: emittedAt, loads: 4 }])
    snapshot.db.close()
  })

  it('have a state from their first checkpoint on', async () => {
    const snapshot = await openMemorySnapshot()
    await openLoadStates(snapshot, first, 'incremental', emittedAt)
    await writeMessages(snapshot, infos.map(startedMessage), { share: first })
    expect(await listShares(snapshot)).toEqual(["0/2 it's", '0/2 others'])
    expect(await readLoadStates(snapshot, first)).toEqual({})
    snapshot.db.close()
  })

  it('are as many in every config', async () => {
    const snapshot = await openMemorySnapshot()
    await runShare(snapshot, first)
    await expect(openLoadStates(snapshot, { index: 0, count: 3 }, 'incremental', emittedAt)).rejects.toThrow(
      /:memory:: its backfill is shared by 2 processes, and the config says 3\. Set partition\.count/,
    )
    snapshot.db.close()
  })

  it('begin where nothing was read, and go on although a state of all stands beside theirs', async () => {
    const read = await openMemorySnapshot()
    await writeMessages(read, readShare(0, true))
    await expect(openLoadStates(read, first, 'incremental', emittedAt)).rejects.toThrow(
      /:memory: has been read in full\. Take partition out of the config/,
    )
    read.db.close()
    const shared = await openMemorySnapshot()
    await runShare(shared, first)
    await writeMessages(shared, readShare(7, true))
    expect(await openLoadStates(shared, second, 'incremental', emittedAt)).toEqual({})
    shared.db.close()
  })

  it('leave the loads of the others alone: only what a killed run of the same share has left is incomplete', async () => {
    const snapshot = await openMemorySnapshot()
    for (const share of [first, second]) await runShare(snapshot, share)
    await snapshot.db.run("UPDATE _loads SET status = 'running', ended = NULL")
    await openLoadStates(snapshot, first, 'incremental', emittedAt + 1000)
    const ended = await snapshot.db.query(
      'SELECT share, status, epoch_ms(ended) AS ended FROM _loads JOIN _shares USING (load) GROUP BY ALL ORDER BY ALL',
    )
    expect(ended).toEqual([
      { share: '0/2', status: 'incomplete', ended: emittedAt + 1000 },
      { share: '1/2', status: 'running', ended: null },
    ])
    await writeMessages(snapshot, [], { share: first })
    expect(await snapshot.db.scalar("SELECT count(*)::INTEGER FROM _loads WHERE status = 'running'")).toBe(2)
    snapshot.db.close()
  })

  it('cannot be read with a full refresh', () => {
    expect(() => checkShare(first, 'full_refresh')).toThrow(/cannot be read with --full-refresh/)
    for (const [share, mode] of [
      [first, 'incremental'],
      [undefined, 'full_refresh'],
    ] as const)
      expect(() => checkShare(share, mode)).not.toThrow()
  })

  it('of a lake keep out a run of the whole until all are complete', async () => {
    const { db } = await openMemorySnapshot()
    const lake = { db: { ...db, lake: { dataPath: '/data', describeCommit: () => undefined } } }
    expect(await openLoadStates(lake, undefined, 'incremental', emittedAt)).toEqual({})
    await runShare({ db }, first)
    await runShare({ db }, second)
    await expect(openLoadStates(lake, undefined, 'incremental', emittedAt)).rejects.toThrow(
      /:memory:: several processes share its backfill, and not all of them are complete\. Run each share/,
    )
    expect(await settleShares({ db }, first, () => statesOf(9), emittedAt)).toBe(true)
    expect(await openLoadStates(lake, undefined, 'incremental', emittedAt)).toEqual(statesOf(9))
    db.close()
  })
})

describe('shares are settled', () => {
  it('once all are complete: one state of each stream takes the place of theirs', async () => {
    const snapshot = await openMemorySnapshot()
    const asked: unknown[] = []
    const settle = (merged = statesOf(9) as object | undefined) =>
      settleShares(
        snapshot,
        second,
        (states) => {
          asked.push(states)
          return merged as never
        },
        emittedAt,
      )
    await runShare(snapshot, first)
    expect(await settle()).toBe(false)
    await runShare(snapshot, second, false)
    expect(await settle()).toBe(false)
    expect(asked).toEqual([])
    await runShare(snapshot, second)
    expect(await settle(undefined as never)).toBe(true)
    snapshot.db.close()
  })

  it('from the states of all, in their order, and not while these are not complete', async () => {
    const snapshot = await openMemorySnapshot()
    for (const share of [second, first]) await runShare(snapshot, share)
    const asked: unknown[] = []
    const ask = (states: unknown) => void asked.push(states)
    expect(await settleShares(snapshot, first, ask as never, emittedAt)).toBe(false)
    expect(asked).toEqual([[statesOf(0), statesOf(1)]])
    expect(await listShares(snapshot)).toHaveLength(4)
    expect(await settleShares(snapshot, first, () => statesOf(9), emittedAt + 0.5)).toBe(true)
    expect(await listShares(snapshot)).toEqual([])
    expect(await readLoadStates(snapshot, undefined)).toEqual(statesOf(9))
    expect(await snapshot.db.query("SELECT value FROM _meta WHERE name = 'shares settled'")).toEqual([
      { value: String(emittedAt) },
    ])
    await expect(openLoadStates(snapshot, first, 'incremental', emittedAt)).rejects.toThrow(/has been read in full/)
    snapshot.db.close()
  })

  it('not while a complete one, whose process was killed at its end, is read again', async () => {
    const snapshot = await openMemorySnapshot()
    for (const share of [first, second]) await runShare(snapshot, share)
    // What it reads begins only later.
    await openLoadStates(snapshot, first, 'incremental', emittedAt)
    expect(await settleShares(snapshot, second, () => statesOf(9), emittedAt)).toBe(false)
    await writeMessages(snapshot, readShare(0, true), { share: first })
    expect(await settleShares(snapshot, first, () => statesOf(9), emittedAt)).toBe(true)
    expect(await readLoadStates(snapshot, undefined)).toEqual(statesOf(9))
    snapshot.db.close()
  })

  it('though one has been opened and has read nothing, and runs are not kept out by it', async () => {
    const { db } = await openMemorySnapshot()
    const lake = { db: { ...db, lake: { dataPath: '/data', describeCommit: () => undefined } } }
    await openLoadStates(lake, { index: 0, count: 3 }, 'incremental', emittedAt)
    await openLoadStates(lake, first, 'incremental', emittedAt)
    expect(await openLoadStates(lake, undefined, 'incremental', emittedAt)).toEqual({})
    for (const share of [first, second]) {
      await runShare({ db }, share)
      expect(await settleShares({ db }, share, () => statesOf(9), emittedAt)).toBe(share === second)
    }
    db.close()
  })

  it('not while one of them has no state', async () => {
    const snapshot = await openMemorySnapshot()
    await runShare(snapshot, first)
    expect(await settleShares(snapshot, first, () => statesOf(9), emittedAt)).toBe(false)
    snapshot.db.close()
  })
})

describe('a full refresh', () => {
  it('goes on from the states of a full refresh alone, not from an unfinished scan of another run', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(snapshot, readShare(7, false))
    const read = (syncMode: 'incremental' | 'full_refresh') => openLoadStates(snapshot, undefined, syncMode, emittedAt)
    expect(await read('full_refresh')).toEqual({})
    await snapshot.db.run(`UPDATE _streams SET refreshing = true WHERE stream = 'others'`)
    expect(await read('full_refresh')).toEqual({ others: { index: 7 } })
    expect(await read('incremental')).toEqual(statesOf(7))
    snapshot.db.close()
  })
})
