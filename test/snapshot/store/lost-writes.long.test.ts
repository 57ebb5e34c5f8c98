import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { CommandError } from '../../../connector/cdk'
import { explainWriteError } from '../../../connector/snapshot/store/failures'
import { openSnapshot } from '../../../connector/snapshot/store/file'
import {
  checkpointMessage,
  openSnapshotFile,
  recordsMessage,
  reviewJson,
  reviewsInfo,
  startedMessage,
  writeMessages,
} from '../../support/snapshot-messages'

const folder = mkdtempSync(join(tmpdir(), 'lost-writes-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** A file and its log, as they were once. */
type Image = { readonly file: Buffer; readonly log: Buffer | undefined }

const [headerBytes, blockBytes, reviews, commits] = [12_288, 262_144, 2_000, 6]

/** The texts of the reviews that a commit brings. */
type ListTexts = (version: number) => ReadonlyArray<string>

/** One version after another of all reviews. */
const changeAll: ListTexts = (version) =>
  Array.from({ length: reviews }, (_, id) => reviewJson(id, version, `${version * id} of ${id}`.repeat(9)))

/** Ten more reviews in each version: so few that they are in the log alone until a checkpoint. */
const addTen: ListTexts = (version) =>
  Array.from({ length: 10 }, (_, n) => reviewJson(10 * version + n, version, `${version}`))

/** Commits one version after another; each state names the version that it covers. */
const writeImages = async (listTexts: ListTexts): Promise<ReadonlyArray<Image>> => {
  const path = join(folder, 'written.duckdb')
  rmSync(path, { force: true })
  const images: Image[] = []
  const snapshot = await openSnapshotFile(path)
  const keepImage = (): void => {
    const log = existsSync(`${path}.wal`) ? readFileSync(`${path}.wal`) : undefined
    images.push({ file: readFileSync(path), log })
  }
  for (let version = 1; version <= commits; version += 1) {
    await writeMessages(snapshot, [
      startedMessage(reviewsInfo()),
      recordsMessage('reviews', ...listTexts(version)),
      checkpointMessage('reviews', { version }),
    ])
    keepImage()
    if (version % 2 === 0) {
      await snapshot.db.checkpoint()
      keepImage()
    }
  }
  snapshot.db.close()
  return images
}

/** A file that has lost a sector of each second block that the other one has otherwise. */
const tearBlocks = (file: Buffer, other: Buffer): Buffer => {
  const torn = Buffer.from(file)
  for (let at = headerBytes; at < torn.length; at += 2 * blockBytes)
    if (!torn.subarray(at, at + blockBytes).equals(other.subarray(at, at + blockBytes))) torn.fill(0, at, at + 512)
  return torn
}

/** How many reviews a file has of each version. */
type CountReviews = (version: number) => ReadonlyArray<{ readonly version: number; readonly n: number }>

/** What a run finds: the version that the state names if each review is there once, as it was then, or the advice. */
const readImage = async ({ file, log }: Image, countReviews: CountReviews): Promise<string> => {
  const path = join(folder, 'read.duckdb')
  for (const suffix of ['', '.wal']) rmSync(path + suffix, { force: true })
  writeFileSync(path, file)
  if (log !== undefined) writeFileSync(`${path}.wal`, log)
  const opened = await openSnapshot(path)()
  if (opened._tag === 'Left') {
    const { _tag, message } = opened.left
    return _tag === 'Config' && /Move .*[.]wal away|read everything again/.test(message) ? 'refused' : message
  }
  const { db } = opened.right
  try {
    const state = await db.scalar(`SELECT state->>'$.version' FROM _state`)
    const tables = await db.scalar(`SELECT count(*) FROM duckdb_tables() WHERE table_name = 'reviews'`)
    // Before its first commit.
    if (state === undefined && tables === 0) return 'a version'
    const version = Number(state)
    const found = await db.query(
      `SELECT minute("modifiedTime")::INTEGER AS version, count(*)::INTEGER AS n,
         count(DISTINCT hash(r))::INTEGER AS rows
       FROM reviews AS r GROUP BY 1 ORDER BY 1`,
    )
    expect(found).toEqual(countReviews(version).map((counted) => ({ ...counted, rows: counted.n })))
    return 'a version'
  } catch (error) {
    // As a run explains it that comes upon the damage.
    const explained = explainWriteError(path, error)
    if (!(explained instanceof CommandError) || !/read everything again/.test(explained.message)) throw error
    return 'refused'
  } finally {
    db.close()
  }
}

describe('a file of which a disk has lost what was synced', () => {
  it('has no commit twice, and lacks none that its state covers, where its log is of another time', async () => {
    const images = await writeImages(addTen)
    const outcomes: string[] = []
    for (const { file } of images)
      for (const { log } of images)
        outcomes.push(
          await readImage({ file, log }, (last) => Array.from({ length: last }, (_, n) => ({ version: n + 1, n: 10 }))),
        )
    expect(new Set(outcomes)).toEqual(new Set(['a version', 'refused']))
  })

  it('is what it was once, or is refused with what to do', async () => {
    const images = await writeImages(changeAll)
    const outcomes: string[] = []
    for (const [i, older] of images.entries())
      for (const newer of images.slice(i + 1, i + 3))
        for (const image of [
          { file: older.file, log: newer.log },
          { file: newer.file, log: older.log },
          { file: tearBlocks(newer.file, older.file), log: newer.log },
          { file: tearBlocks(older.file, newer.file), log: older.log },
        ])
          outcomes.push(await readImage(image, (version) => [{ version, n: reviews }]))
    expect(new Set(outcomes)).toEqual(new Set(['a version', 'refused']))
  })
})
