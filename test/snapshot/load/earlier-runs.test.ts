import { describe, expect, it } from 'vitest'
import { chooseStates } from '../../../connector/snapshot/load/earlier-runs'
import { readSnapshotState } from '../../../connector/snapshot/store/metadata'
import {
  checkpointMessage,
  createStreamInfo,
  instantSchema,
  integerSchema,
  openMemorySnapshot,
  startedMessage,
  writeMessages,
} from '../../support/snapshot-messages'

const infos = ["it's", 'others'].map((name) =>
  createStreamInfo(name, { id: integerSchema, at: instantSchema }, ['id'], 'at'),
)

describe('a full refresh', () => {
  it('goes on from the states of a full refresh alone, not from an unfinished scan of another run', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(
      snapshot,
      infos.flatMap((info) => [startedMessage(info), checkpointMessage(info.name, { page: 7 }, 0)]),
    )
    const read = async (syncMode: 'incremental' | 'full_refresh') =>
      chooseStates(snapshot, await readSnapshotState(snapshot), syncMode)
    expect(await read('full_refresh')).toEqual({})
    await snapshot.db.run(`UPDATE _streams SET refreshing = true WHERE stream = 'others'`)
    expect(await read('full_refresh')).toEqual({ others: { page: 7 } })
    expect(await read('incremental')).toEqual({ "it's": { page: 7 }, others: { page: 7 } })
    snapshot.db.close()
  })
})
