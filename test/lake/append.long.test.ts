import { describe, expect, it } from 'vitest'
import { createSnapshotWriter, type SnapshotWriter } from '../../connector/snapshot/load/writer'
import type { Snapshot } from '../../connector/snapshot/store/database'
import { drawCount, drawSeed } from '../support/draws'
import { createLakeWriter, drawnStarts, drawPages, openMemoryLake, readDrawnRows } from '../support/lake'
import { emittedAt, openMemorySnapshot } from '../support/snapshot-messages'

/**
 * The versions of reviews. A lake also knows of a deletion that came late that it ended a version, where a file has
 * closed that version before.
 */
const readVersions = ({ db }: Snapshot) =>
  db.query(
    'SELECT id, "modifiedTime", text, valid_from, valid_to IS NULL AS is_open FROM reviews_versions ORDER BY ALL',
  )

describe('several writers of a lake', () => {
  it.each(Array.from({ length: drawCount(6) }, (_, n) => drawSeed + n))(
    'leave what one writer leaves in a file: seed %i',
    async (seed) => {
      let clock = emittedAt
      const now = () => (clock += 1000)
      const [file, lake] = [await openMemorySnapshot(), await openMemoryLake()]
      const single = await createSnapshotWriter(file, { now, history: true })
      const writers: SnapshotWriter[] = []
      for (let index = 0; index < 3; index += 1)
        writers.push(await createLakeWriter(lake, { now, share: { index, count: 3 } }))
      for (const writer of [single, ...writers]) for (const message of drawnStarts) await writer.write(message)
      for (const { writer, messages } of drawPages(seed, writers.length))
        for (const message of messages) {
          await single.write(message)
          await writers[writer]?.write(message)
        }
      // Each page ends with a commit, so that the other writers have nothing left.
      for (const writer of [single, writers[0]]) await writer?.finish()
      expect(await readDrawnRows(lake)).toEqual(await readDrawnRows(file))
      expect(await readVersions(lake)).toEqual(await readVersions(file))
      for (const { db } of [file, lake]) db.close()
    },
  )
})
