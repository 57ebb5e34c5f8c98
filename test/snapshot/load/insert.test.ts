import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, expect, it } from 'vitest'
import { createSpool } from '../../../connector/snapshot/load/insert'
import { openMemorySnapshot } from '../../support/snapshot-messages'

const folder = mkdtempSync(join(tmpdir(), 'spool-'))
afterAll(() => rmSync(folder, { recursive: true }))

const row = (json: string | Buffer, changes?: ReadonlyArray<object>) => ({
  json: Buffer.from(json as string),
  ...(changes === undefined ? {} : { changes: changes as never }),
})

it('gives DuckDB each record with its place, its time and its changes, whatever its text holds', async () => {
  const { db } = await openMemorySnapshot()
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({
          value: fc.oneof(
            fc.jsonValue(),
            fc.tuple(fc.string({ unit: 'binary' }), fc.nat(3000)).map(([text, times]) => `é${text}`.repeat(times)),
          ),
          at: fc.nat(),
          field: fc.option(fc.string({ unit: 'binary' }), { nil: undefined }),
        }),
        { maxLength: 20 },
      ),
      async (records) => {
        const spool = createSpool(join(folder, 'db'))
        const texts = records.map(({ value }) => JSON.stringify({ value }))
        records.forEach(({ at, field }, i) => {
          spool.add(row(texts[i] ?? '', field === undefined ? undefined : [{ field }]), at)
        })
        const sql = `SELECT _seq AS seq, _at AS "at", _changes AS changes, _json AS json FROM ${spool.toSql()} ORDER BY _seq`
        expect(await db.query(sql)).toEqual(
          records.map(({ at, field }, seq) => ({
            seq,
            at,
            changes: field === undefined ? null : JSON.stringify({ field }),
            json: texts[seq],
          })),
        )
        expect([...spool.records()].map(({ json }) => json)).toEqual(texts)
        expect(spool.count()).toBe(records.length)
        spool.close()
      },
    ),
    { seed: 20261123, numRuns: 40 },
  )
  db.close()
})

it('keeps no file with a name', () => {
  const spool = createSpool(join(folder, 'db'))
  for (let i = 0; i < 3; i += 1) spool.add(row(`{"text":"${'x'.repeat(100_000)}"}`), 1)
  spool.toSql()
  expect(readdirSync(folder)).toEqual([])
  spool.close()
})

it.each([
  ['a carriage return between tokens', '{"a":\r1}', '{"a": 1}'],
  ['half of a surrogate pair', '{"a":"\\ud800"}', '{"a":"\\ufffd"}'],
  ['a surrogate pair', '{"a":"\\ud83d\\ude00"}', '{"a":"\\ud83d\\ude00"}'],
  ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22]), '"\ufffd"'],
  ['nothing at all', '', ' '],
])('%s', async (_, text, expected) => {
  const { db } = await openMemorySnapshot()
  const spool = createSpool(join(folder, 'db'))
  spool.add({ json: Buffer.from(text as string) }, 1)
  expect(await db.scalar(`SELECT _json FROM ${spool.toSql()}`)).toBe(expected)
  spool.close()
  db.close()
})

it('tells whether a record may be a tombstone', () => {
  const spool = createSpool(join(folder, 'db'))
  spool.add(row('{"id":1}'), 1)
  expect(spool.mentionsTombstones()).toBe(false)
  spool.add(row('{"_sdc_deleted_at":1}'), 1)
  expect(spool.mentionsTombstones()).toBe(true)
  spool.close()
})
