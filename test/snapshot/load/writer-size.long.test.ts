import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { verifySnapshot } from '../../../connector/snapshot/verify/verify'
import {
  openSnapshotFile,
  reviewProperties,
  reviewsInfo,
  streamMessages,
  timeAtMinute,
  writeMessages,
} from '../../support/snapshot-messages'

const folder = mkdtempSync(join(tmpdir(), 'size-'))
afterAll(() => rmSync(folder, { recursive: true }))

it.each([3, 19])('a review of %i MB is loaded, and the rows around it', async (megabytes) => {
  const snapshot = await openSnapshotFile(join(folder, `${megabytes}.duckdb`))
  const stream = {
    ...reviewsInfo(),
    schema: { type: 'object', properties: { ...reviewProperties, contents: { type: 'array' } } },
  }
  const review = (id: number, length: number) =>
    JSON.stringify({ id, modifiedTime: timeAtMinute(1), text: 'x', contents: [{ response: 'y'.repeat(length) }] })
  await writeMessages(
    snapshot,
    streamMessages(stream, review(1, 10), review(2, megabytes * 1_000_000), review(3, 10)),
    { history: true },
  )
  expect(await snapshot.db.query('SELECT id, length(contents) > 1000000 AS large FROM reviews ORDER BY id')).toEqual([
    { id: 1, large: false },
    { id: 2, large: true },
    { id: 3, large: false },
  ])
  snapshot.db.close()
})

const attributes = Number(process.env.WIDE_ATTRIBUTES ?? 260)

it.each(['integer', 'string', 'undeclared'])(
  'a record of very many attributes (%s) is loaded as any other',
  async (type) => {
    const snapshot = await openSnapshotFile(join(folder, `${type}.duckdb`))
    const names = Array.from({ length: attributes }, (_, i) => `attribute/${i}`)
    const stream = {
      ...reviewsInfo(),
      schema: {
        type: 'object',
        properties: {
          ...reviewProperties,
          ...(type === 'undeclared' ? {} : Object.fromEntries(names.map((name) => [name, { type }]))),
        },
      },
    }
    const review = (id: number, value: unknown) =>
      JSON.stringify({ id, modifiedTime: timeAtMinute(1), ...Object.fromEntries(names.map((name) => [name, value])) })
    await writeMessages(snapshot, streamMessages(stream, review(1, 5), review(2, 1.5), review(3, null)))
    await writeMessages(snapshot, streamMessages(stream, review(3, 7)))
    const last = `"attribute/${attributes - 1}"`
    const rows = await snapshot.db.query(
      `SELECT ${last}::VARCHAR AS last, json_array_length(_airbyte_meta, '$.changes') AS changes
       FROM reviews ORDER BY id`,
    )
    const isInteger = type === 'integer'
    expect(rows).toEqual([
      { last: '5', changes: 0 },
      { last: isInteger ? null : '1.5', changes: isInteger ? attributes : 0 },
      { last: '7', changes: 0 },
    ])
    expect((await verifySnapshot(snapshot)).filter(({ ok }) => !ok)).toEqual([])
    snapshot.db.close()
  },
)
