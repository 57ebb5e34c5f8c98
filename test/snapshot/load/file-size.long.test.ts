import { statSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { Message } from '../../../connector/cdk/message'
import { hashContent } from '../../../connector/snapshot/diff'
import { compactSnapshot } from '../../../connector/snapshot/rewrite'
import { closeSnapshot } from '../../../connector/snapshot/store/file'
import { verifySnapshot } from '../../../connector/snapshot/verify/verify'
import { newTempPath } from '../../support/files'
import { openSnapshotFile, reviewsInfo, streamMessages, writeMessages } from '../../support/snapshot-messages'

/** With SNAPSHOT_YEAR=1 a whole year; without, a month of a smaller file. */
const isYear = process.env.SNAPSHOT_YEAR !== undefined
const [days, reviews] = isYear ? [365, 20_000] : [30, 1_000]
/** What is rewritten each day takes space in the file twice: as rows, and as free space for the next ones. */
const mostGrowth = 2.5
const changedEachDay = Math.round(reviews * 0.005)
const textBytes = 3_000

const words = 'the staff was very kind and we waited for an hour in a clean room before they called us back'.split(' ')

/** A text that differs for each review and day, and that compresses as text does. */
const writeText = (id: number, day: number): string => {
  let seed = id * 7919 + day * 104_729 + 1
  const parts: string[] = []
  for (let length = 0; length < textBytes; ) {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
    const word = `${words[(seed >>> 8) % words.length]}${seed % 7 === 0 ? seed % 1000 : ''}`
    parts.push(word)
    length += word.length + 1
  }
  return parts.join(' ')
}

const start = Date.parse('2025-01-01T00:00:00Z')
const reviewOf = (id: number, day: number): string =>
  JSON.stringify({
    id,
    modifiedTime: new Date(start + day * 86_400_000 + (id % 1000)).toISOString(),
    rating: id % 6,
    location: { id: id % 40, name: `Clinic ${id % 40}` },
    text: writeText(id, day),
  })

const changedOn = (day: number): ReadonlyArray<number> =>
  Array.from({ length: changedEachDay }, (_, i) => 1 + ((i * 7919 + day * 15_485_863) % reviews))
const allIds = Array.from({ length: reviews }, (_, i) => i + 1)
const messagesOf = (day: number): ReadonlyArray<Message> =>
  streamMessages(reviewsInfo(), ...(day === 0 ? allIds : changedOn(day)).map((id) => reviewOf(id, day)))

const load = async (path: string, runs: ReadonlyArray<ReadonlyArray<Message>>): Promise<number> => {
  const snapshot = await openSnapshotFile(path)
  for (const messages of runs) {
    await writeMessages(snapshot, messages, { history: true })
    // As the end of a run does.
    await snapshot.db.checkpoint()
  }
  await closeSnapshot(snapshot)
  return statSync(path).size
}

const read = async (path: string) => {
  const snapshot = await openSnapshotFile(path, 'read')
  const { hash } = await hashContent(snapshot)
  const [row] = await snapshot.db.query(`
    SELECT (SELECT count(*) FROM _history_reviews) AS versions,
      (SELECT sum(hash(t)::HUGEINT)::VARCHAR FROM _history_reviews AS t) AS history,
      (SELECT count(*) FROM reviews_versions) AS shown`)
  const failed = (await verifySnapshot(snapshot)).filter(({ ok }) => !ok).map(({ name }) => name)
  await closeSnapshot(snapshot)
  return { hash, failed, ...row }
}

describe(`${days} daily syncs with history that change 0.5 % of ${reviews} reviews of 3 KB`, () => {
  it(
    `leave a file of at most ${mostGrowth} times the size of one that is loaded at once; compact leaves none to spare`,
    async () => {
      const daily = newTempPath('duckdb')
      const size = await load(
        daily,
        Array.from({ length: days + 1 }, (_, day) => messagesOf(day)),
      )
      const fresh = await load(newTempPath('duckdb'), [
        Array.from({ length: days + 1 }, (_, day) => messagesOf(day)).flat(),
      ])
      const before = await read(daily)
      expect(before).toMatchObject({ failed: [], versions: days * changedEachDay })
      const compact = await compactSnapshot(daily)
      if (isYear) console.log(`daily ${size}, at once ${fresh}, compact ${compact.after} bytes`)
      expect(compact).toEqual({ before: size, after: statSync(daily).size })
      expect(await read(daily)).toEqual(before)
      expect(size / fresh).toBeLessThan(mostGrowth)
      expect(compact.after / fresh).toBeLessThan(1.05)
    },
    isYear ? 900_000 : 120_000,
  )
})
