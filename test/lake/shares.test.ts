import { describe, expect, it } from 'vitest'
import type { Message } from '../../connector/cdk/message'
import type { LakeShare } from '../../connector/lake/place'
import { checkShare, endShare, listOpenShares, openLakeStates, readLakeStates } from '../../connector/lake/shares'
import type { Snapshot } from '../../connector/snapshot/store/database'
import { openMemoryLake, writeLakeMessages } from '../support/lake'
import {
  checkpointMessage,
  createStreamInfo,
  emittedAt,
  finishedMessage,
  instantSchema,
  integerSchema,
  recordsMessage,
  startedMessage,
} from '../support/snapshot-messages'

const [first, second] = [
  { index: 0, count: 2 },
  { index: 1, count: 2 },
] as const

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

const statesOf = (index: number) => ({ "it's": { index }, others: { index } })
const merged = () => statesOf(9)

const open = (snapshot: Snapshot, share?: LakeShare, merge: () => ReturnType<typeof merged> | undefined = merged) =>
  openLakeStates(snapshot, share, 'incremental', merge, emittedAt)

/** Reads a share, to its end or until it is killed. Resolves to true if all shares are settled. */
const runShare = async (snapshot: Snapshot, share: LakeShare, isWhole = true): Promise<boolean> => {
  await open(snapshot, share)
  await writeLakeMessages(snapshot, readShare(share.index, isWhole), { share })
  return isWhole && endShare(snapshot, share, merged, emittedAt)
}

describe('the processes that share a backfill', () => {
  it('each go on from their own states, of which a run without them knows nothing', async () => {
    const lake = await openMemoryLake()
    expect(await open(lake, first)).toEqual({})
    await runShare(lake, first)
    await runShare(lake, second, false)
    for (const share of [first, second]) {
      expect(await readLakeStates(lake, share)).toEqual(statesOf(share.index))
      expect(await open(lake, share)).toEqual(statesOf(share.index))
    }
    expect(await readLakeStates(lake, undefined)).toEqual({})
    lake.db.close()
  })

  it('have a state from their first checkpoint on', async () => {
    const lake = await openMemoryLake()
    await open(lake, first)
    await writeLakeMessages(lake, infos.map(startedMessage), { share: first })
    expect(await readLakeStates(lake, first)).toEqual({})
    lake.db.close()
  })

  it('are as many in every config', async () => {
    const lake = await openMemoryLake()
    await runShare(lake, first)
    await expect(open(lake, { index: 0, count: 3 })).rejects.toThrow(
      /:memory:: its backfill is shared by 2 processes, and the config says 3\. Set partition\.count/,
    )
    lake.db.close()
  })

  it('begin where nothing was read', async () => {
    const lake = await openMemoryLake()
    await writeLakeMessages(lake, readShare(0, true))
    await expect(open(lake, first)).rejects.toThrow(/:memory: has been read in full\. Take partition out/)
    lake.db.close()
  })

  it('leave the loads of the others alone, but for what a killed run of the same share has left', async () => {
    const lake = await openMemoryLake()
    for (const share of [first, second]) await runShare(lake, share)
    await lake.db.run("UPDATE _loads_log SET status = 'running', ended = NULL")
    await writeLakeMessages(lake, [], { share: first })
    expect(await lake.db.query('SELECT DISTINCT share, status FROM _loads ORDER BY ALL')).toEqual([
      { share: '0/2', status: 'incomplete' },
      { share: '1/2', status: 'running' },
    ])
    await writeLakeMessages(lake, [])
    expect(await lake.db.query('SELECT DISTINCT status FROM _loads')).toEqual([{ status: 'incomplete' }])
    lake.db.close()
  })

  it('cannot be read with a full refresh', () => {
    expect(() => checkShare(first, 'full_refresh')).toThrow(/cannot be read with --full-refresh/)
    for (const [share, mode] of [
      [first, 'incremental'],
      [undefined, 'full_refresh'],
    ] as const)
      expect(() => checkShare(share, mode)).not.toThrow()
  })
})

describe('the shares are settled', () => {
  it('by the last of them, and keep out a run of everything until then', async () => {
    const lake = await openMemoryLake()
    expect(await open(lake)).toEqual({})
    expect(await runShare(lake, second)).toBe(false)
    await expect(open(lake)).rejects.toThrow(
      /:memory:: several processes share its backfill, and not all of them are complete\. Run each share/,
    )
    expect(await listOpenShares(lake)).toEqual(
      new Map(infos.map(({ name }) => [name, 'has 1 of 2 shares that are not complete'])),
    )
    expect(await runShare(lake, first)).toBe(true)
    expect(await listOpenShares(lake)).toEqual(new Map())
    expect(await open(lake)).toEqual(statesOf(9))
    expect(await lake.db.scalar("SELECT value FROM _meta WHERE name = 'shares settled'")).toBe(String(emittedAt))
    await expect(open(lake, first)).rejects.toThrow(/has been read in full/)
    lake.db.close()
  })

  it('by the next run where the last of them was killed at its end', async () => {
    const lake = await openMemoryLake()
    await runShare(lake, first)
    await runShare(lake, second, false)
    await lake.db.run(`INSERT INTO _shares_log VALUES (9e15::BIGINT, '1/2', 'complete')`)
    await expect(open(lake, undefined, () => undefined)).rejects.toThrow('not all of them are complete')
    expect(await open(lake)).toEqual(statesOf(9))
    lake.db.close()
  })

  it('not while a complete one is read again, nor while one has no state', async () => {
    const lake = await openMemoryLake()
    await runShare(lake, first)
    await open(lake, first)
    expect(await runShare(lake, second)).toBe(false)
    expect(await runShare(lake, first)).toBe(true)
    lake.db.close()
    const other = await openMemoryLake()
    await runShare(other, first)
    await open(other, second)
    expect(await endShare(other, second, merged, emittedAt)).toBe(false)
    other.db.close()
  })

  it('from the states of all, in their order', async () => {
    const lake = await openMemoryLake()
    const asked: unknown[] = []
    for (const share of [second, first]) {
      await open(lake, share)
      await writeLakeMessages(lake, readShare(share.index, true), { share })
      await endShare(lake, share, (states) => void asked.push(states), emittedAt)
    }
    expect(asked).toEqual([[statesOf(0), statesOf(1)]])
    lake.db.close()
  })
})
