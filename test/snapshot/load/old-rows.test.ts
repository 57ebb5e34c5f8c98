import { describe, expect, it } from 'vitest'
import { transientFailure } from '../../../connector/cdk/failure'
import type { Message, StreamInfo } from '../../../connector/cdk/message'
import { CommandError } from '../../../connector/cdk/program/error'
import type { Database } from '../../../connector/snapshot/store/database'
import { closeSnapshot } from '../../../connector/snapshot/store/file'
import { verifySnapshot } from '../../../connector/snapshot/verify/verify'
import { newTempPath } from '../../support/files'
import {
  checkpointMessage,
  contentJson,
  finishedMessage,
  openSnapshotFile,
  recordsMessage,
  reviewContentsInfo,
  reviewJson,
  reviewsInfo,
  startedMessage,
  writeMessages,
} from '../../support/snapshot-messages'

/** More than two transactions remove. */
const reviews = 45_000
const ids = Array.from({ length: reviews }, (_, i) => i + 1)
const kept = [7, 20_000, 44_999]

const rowsOf = (stream: StreamInfo, texts: ReadonlyArray<string>): ReadonlyArray<Message> => [
  startedMessage(stream),
  recordsMessage(stream.name, ...texts),
  checkpointMessage(stream.name, { cursor: texts.length }, texts.length),
]
const load = (mode: 'incremental' | 'full_refresh', wanted: ReadonlyArray<number>): ReadonlyArray<Message> => [
  ...rowsOf(
    reviewsInfo(mode),
    wanted.map((id) => reviewJson(id, 1)),
  ),
  ...rowsOf(
    reviewContentsInfo(mode),
    wanted.map((id) => contentJson(id, 1, id)),
  ),
  finishedMessage('reviews'),
  finishedMessage('review_contents'),
]

/** The transactions that removed old rows, by stream. `stopAfter`: how many there may be; the next one rejects. */
const watchRemovals = (db: Database, stopAfter = Number.POSITIVE_INFINITY) => {
  const removals: string[] = []
  const watched: Database = {
    ...db,
    withMemory: (name, work) => {
      if (!name.startsWith('removing')) return db.withMemory(name, work)
      if (removals.length >= stopAfter) throw new CommandError(transientFailure('stopped here'))
      removals.push(name.replace(/.* of /, ''))
      return db.withMemory(name, work)
    },
  }
  return { removals, db: watched }
}

const counts = async ({ query }: Database) => {
  const [row] = await query(`
    SELECT (SELECT count(*) FROM reviews) AS reviews, (SELECT count(*) FROM review_contents) AS contents,
      (SELECT count(*) FROM _history_reviews) AS old_reviews,
      (SELECT count(*) FROM _history_review_contents) AS old_contents,
      (SELECT list(id ORDER BY id) FROM reviews WHERE _airbyte_generation_id = 1) AS ids`)
  return row
}
const after = {
  reviews: kept.length,
  contents: kept.length,
  old_reviews: reviews - kept.length,
  old_contents: reviews - kept.length,
  ids: kept,
}

describe('a full refresh that most rows do not survive', () => {
  it('removes them in parts, keeps them as versions, and takes up again where it was stopped', async () => {
    const path = newTempPath('duckdb')
    const first = await openSnapshotFile(path)
    await writeMessages(first, load('incremental', ids), { history: true })
    const { db, removals } = watchRemovals(first.db, 2)
    await expect(writeMessages({ db }, load('full_refresh', kept))).rejects.toThrow('stopped here')
    expect(removals).toEqual(['reviews', 'reviews'])
    const stopped = await counts(first.db)
    expect(stopped).toMatchObject({ reviews: reviews - 40_000, old_reviews: 40_000, ids: kept })
    expect(Number(stopped?.contents)).toBeLessThanOrEqual(reviews - 40_000 + kept.length)
    const failed = (await verifySnapshot(first)).filter(
      ({ outcome }) => outcome === 'failed' || outcome === 'unanswered',
    )
    expect(failed.map(({ name }) => name)).toEqual(['loads are complete'])
    await closeSnapshot(first)

    const again = await openSnapshotFile(path)
    await writeMessages(again, load('full_refresh', kept))
    expect(await counts(again.db)).toEqual(after)
    expect((await verifySnapshot(again)).filter(({ ok }) => !ok)).toEqual([])
    await closeSnapshot(again)
  })

  it('gives what one transaction gives', async () => {
    const path = newTempPath('duckdb')
    const snapshot = await openSnapshotFile(path)
    await writeMessages(snapshot, load('incremental', ids), { history: true })
    const { db, removals } = watchRemovals(snapshot.db)
    await writeMessages({ db }, load('full_refresh', kept))
    expect(removals).toEqual(['reviews', 'reviews', 'reviews'])
    expect(await counts(snapshot.db)).toEqual(after)
    expect(await snapshot.db.query('SELECT DISTINCT _ended FROM _history_reviews')).toHaveLength(1)
    await closeSnapshot(snapshot)
  })
})
