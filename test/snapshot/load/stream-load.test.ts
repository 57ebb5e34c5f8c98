import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import type { StreamInfo } from '../../../connector/cdk/message'
import type { LoadOptions } from '../../../connector/snapshot/load/target'
import type { Snapshot } from '../../../connector/snapshot/store/database'
import {
  checkpointMessage,
  createStreamInfo,
  instantSchema,
  integerSchema,
  openMemorySnapshot,
  startedMessage,
  streamMessages,
  timeAtMinute,
  writeMessages,
} from '../../support/snapshot-messages'

const thingsInfo = createStreamInfo('things', { id: integerSchema, at: instantSchema }, ['id'], 'at')
const refreshInfo: StreamInfo = { ...thingsInfo, syncMode: 'full_refresh' }
const thing = (id: number, more: object = {}) => JSON.stringify({ id, at: timeAtMinute(1), ...more })
const readStream = async ({ db }: Snapshot) => {
  const [row] = await db.query(
    'SELECT generation, refreshing, primary_key, cursor, schema FROM _streams WHERE stream = $stream',
    { stream: 'things' },
  )
  return row
}
const countStates = ({ db }: Snapshot) => db.scalar('SELECT count(*)::INTEGER FROM _state')

describe('a stream is written', () => {
  it('under the names of its columns, by its key unless it is appended', async () => {
    const snapshot = await openMemorySnapshot()
    const info = createStreamInfo('things', { ID: integerSchema, id: integerSchema, at: instantSchema }, ['id'], 'at')
    await writeMessages(snapshot, streamMessages(info, '{"ID":1,"id":2}', '{"ID":3,"id":2}'))
    const stream = await readStream(snapshot)
    expect([stream?.generation, stream?.refreshing, stream?.cursor]).toEqual([0, false, 'at'])
    expect(JSON.parse(String(stream?.schema))).toEqual(info.schema)
    const [column = ''] = (stream?.primary_key ?? []) as ReadonlyArray<string>
    expect(column).not.toBe('ID')
    expect(await snapshot.db.query(`SELECT "ID" AS other, "${column}" AS key FROM things`)).toEqual([
      { other: 3, key: 2 },
    ])
    await writeMessages(snapshot, streamMessages(info, '{"ID":5,"id":2}'), {
      loadOptions: { things: { mode: 'append' } },
    })
    expect((await readStream(snapshot))?.primary_key).toEqual([])
    expect(await snapshot.db.scalar('SELECT count(*)::INTEGER FROM things')).toBe(2)
    snapshot.db.close()
  })

  it('without a cursor', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(snapshot, streamMessages({ ...thingsInfo, cursor: O.none }, thing(1), thing(1, { at: null })))
    expect((await readStream(snapshot))?.cursor).toBeNull()
    expect(await snapshot.db.query('SELECT id, "at", cursor_from FROM things, _loads')).toEqual([
      { id: 1, at: null, cursor_from: null },
    ])
    snapshot.db.close()
  })

  it('in a new generation with each full refresh, which deletes the state, unless it goes on from it', async () => {
    const snapshot = await openMemorySnapshot()
    const generations: unknown[] = []
    const load = async (info: StreamInfo, options: LoadOptions | undefined): Promise<void> => {
      await writeMessages(
        snapshot,
        [startedMessage(info)],
        options === undefined ? {} : { loadOptions: { things: options } },
      )
      const stream = await readStream(snapshot)
      generations.push([stream?.generation, stream?.refreshing, await countStates(snapshot)])
    }
    await writeMessages(snapshot, streamMessages(thingsInfo, thing(1)))
    await load(refreshInfo, undefined)
    await load(refreshInfo, undefined)
    await writeMessages(snapshot, [startedMessage(refreshInfo), checkpointMessage('things', { page: 1 })])
    await load(refreshInfo, undefined)
    await load(refreshInfo, { mode: 'append_dedup' })
    await load(thingsInfo, { mode: 'overwrite' })
    await load(thingsInfo, { mode: 'overwrite', generation: 9, minimum: 9 })
    await writeMessages(snapshot, [startedMessage(thingsInfo), checkpointMessage('things', { page: 1 })], {
      loadOptions: { things: { generation: 9, minimum: 9 } },
    })
    await load(thingsInfo, { generation: 9, minimum: 9 })
    await load(thingsInfo, { generation: 10, minimum: 0, mode: 'overwrite' })
    await load(thingsInfo, { generation: 11, minimum: 11 })
    expect(generations).toEqual([
      [1, true, 0],
      [2, true, 0],
      [3, true, 1],
      [3, false, 1],
      [4, true, 0],
      [9, true, 0],
      [9, true, 1],
      [10, false, 1],
      [11, true, 0],
    ])
    snapshot.db.close()
  })
})
