import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, expect, it } from 'vitest'
import { diffSnapshots, isIdentical } from '../../../connector/snapshot/diff'
import { exportParquet } from '../../../connector/snapshot/export-parquet'
import type { Snapshot } from '../../../connector/snapshot/store/database'
import { attributeOf, type Column, listStreamTables } from '../../../connector/snapshot/store/tables'
import { verifySnapshot } from '../../../connector/snapshot/verify/verify'
import { draws } from '../../support/draws'
import {
  createStreamInfo,
  instantSchema,
  openMemorySnapshot,
  openSnapshotFile,
  streamMessages,
  timeAtMinute,
  writeMessages,
} from '../../support/snapshot-messages'

const folder = mkdtempSync(join(tmpdir(), 'names-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Names of DuckDB's and of ours, also in another case, and names that need quotes. */
const nastyNames = [
  ...[
    'rowid',
    'RowId',
    'row',
    'ROW',
    '_at',
    '_meta',
    '_json',
    '_typed',
    '_text',
    '_changes',
    '_listed',
    'lines',
    'first',
  ],
  ...[
    '_airbyte_meta',
    '_airbyte_raw_id',
    '_AIRBYTE_extracted_at',
    '_airbyte_generation_id',
    '_ended',
    'ended',
    'winner',
  ],
  ...[
    'place',
    'raw',
    'generation',
    'cursor',
    'k0',
    't',
    'v',
    'a',
    'b',
    'new',
    'known',
    'best',
    'id',
    'ID',
    'Id',
    'time',
  ],
  ...[
    'valid_from',
    'VALID_TO',
    'month',
    'year',
    'fingerprint',
    'present',
    'what',
    'last',
    'n',
    'rows',
    'stream',
    'key',
  ],
  ...[
    'select',
    'group',
    'x y',
    'a"b',
    "a'b",
    'a.b',
    'a/b',
    'a~0',
    '$',
    '',
    '*',
    'value__varchar',
    'id__bigint',
    'é',
    'É',
  ],
  ...['_gone', '_lost', '_version', 'things', 'archived', 'data_type', 'child', 'review', 'name', 'position', 'text'],
]

const valueSql = ({ name, type }: Column): string => {
  const column = `"${name.replaceAll('"', '""')}"`
  return type === 'JSON' ? column : `to_json(${column})`
}

/** The values of a row by attribute, as JSON; null where the record has none. */
const readRows = async (snapshot: Snapshot, stream: string) => {
  const columns = (await listStreamTables(snapshot.db)).find(({ name }) => name === stream)?.columns ?? []
  const attributes = columns.map(attributeOf)
  const { types, chunks } = await snapshot.db.stream(`SELECT ${columns.map(valueSql).join(', ')} FROM ${stream}`)
  const rows: Array<Record<string, unknown>> = []
  for await (const chunk of chunks)
    for (const row of chunk)
      rows.push(
        Object.fromEntries(
          types.flatMap((_, i) => {
            const attribute = attributes[i]
            const value = row[i] === null ? null : JSON.parse(String(row[i]))
            return attribute === null || attribute === undefined || value === null ? [] : [[attribute, value]]
          }),
        ),
      )
  return rows
}

const sortRows = (rows: ReadonlyArray<Record<string, unknown>>) =>
  rows.map((row) => JSON.stringify(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1)))).sort()

const nameArbitrary = fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...nastyNames) }, fc.string({ maxLength: 4 }))
const scenarioArbitrary = fc.record({
  names: fc.uniqueArray(
    nameArbitrary.filter((name) => !/[\0\ud800-\udfff]|^__proto__$/.test(name)),
    { minLength: 12, maxLength: 30 },
  ),
  declared: fc.integer({ min: 2, max: 12 }),
  keyed: fc.boolean(),
})

it('attributes of any name keep their values, through merges, versions, exports and comparisons', () =>
  fc.assert(
    fc.asyncProperty(scenarioArbitrary, async ({ names, declared, keyed }) => {
      const [key = '', changing = '', ...others] = names
      const declaredNames = others.slice(0, declared)
      const cursor = 'modified time'
      const info = (type: string) =>
        createStreamInfo(
          'things',
          {
            [key]: { type: 'integer' },
            [changing]: { type },
            ...Object.fromEntries(declaredNames.map((name, i) => [name, { type: i % 2 === 0 ? 'string' : 'integer' }])),
            [cursor]: instantSchema,
          },
          keyed ? [key] : [],
          cursor,
        )
      const record = (id: number, minute: number, value: unknown) => ({
        [key]: id,
        [changing]: value,
        ...Object.fromEntries(others.map((name, i) => [name, i % 2 === 0 ? `${name} ${id} ${minute}` : id * 100 + i])),
        [cursor]: timeAtMinute(minute),
      })
      const snapshot = await openSnapshotFile(join(folder, `${Math.random()}.duckdb`))
      const load = (type: string, ...records: object[]) =>
        writeMessages(snapshot, streamMessages(info(type), ...records.map((row) => JSON.stringify(row))), {
          history: keyed,
        })
      const first = [record(1, 1, 'x'), record(2, 1, 'x'), record(1, 3, 'x'), record(3, 2, 'x')]
      await load('string', ...first)
      const second = [record(2, 5, 'y'), record(4, 4, 'y'), record(1, 2, 'y')]
      await load('string', ...second)

      const versions = [...first, ...second].map((row) => ({
        ...row,
        [cursor]: (JSON.parse(JSON.stringify(row)) as Record<string, string>)[cursor]
          ?.replace('T', ' ')
          .replace('.000Z', '+00'),
      }))
      const newest = [versions[2], versions[3], versions[4], versions[5]].filter((row) => row !== undefined)
      expect(sortRows(await readRows(snapshot, 'things'))).toEqual(sortRows(keyed ? newest : versions))
      if (keyed) expect(await snapshot.db.scalar('SELECT count(*) FROM things_versions')).toBe(versions.length)
      expect((await verifySnapshot(snapshot)).filter(({ ok }) => !ok)).toEqual([])

      const parquet = join(folder, String(Math.random()))
      await exportParquet(snapshot, parquet, 'month')
      const other = await openMemorySnapshot()
      expect(await other.db.scalar(`SELECT count(*) FROM '${parquet}/things/*/*.parquet'`)).toBe(keyed ? 4 : 7)
      const { path } = snapshot.db
      snapshot.db.close()
      const copy = join(folder, `${Math.random()}.duckdb`)
      await other.db.run(`ATTACH '${path}' AS x; ATTACH '${copy}' AS y; COPY FROM DATABASE x TO y; DETACH x; DETACH y`)
      other.db.close()
      const again = await openSnapshotFile(path)
      expect((await diffSnapshots(again, copy)).filter((stream) => !isIdentical(stream))).toEqual([])
      again.db.close()
    }),
    { ...draws(4), endOnFailure: true },
  ))
