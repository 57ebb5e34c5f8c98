import { existsSync, mkdtempSync, readdirSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import { exportParquet, exportQuery, nameFolders } from '../../connector/snapshot/export-parquet'
import { createSnapshotWriter } from '../../connector/snapshot/load/writer'
import { listModelNames } from '../../connector/snapshot/questions'
import { closeSnapshot, openSnapshot } from '../../connector/snapshot/store/file'
import { newTempPath } from '../support/files'
import { fillReviews } from '../support/report-reviews'
import {
  deletedReviewsInfo,
  openSnapshotFile,
  reviewJson,
  reviewsInfo,
  streamMessages,
  writeMessages,
} from '../support/snapshot-messages'

const foldersOf = (...streams: ReadonlyArray<string>): ReadonlyArray<string> => [...nameFolders(streams).values()]

describe('the folder of a stream', () => {
  it.each([
    ['reviews', 'reviews'],
    ['north.products', 'north.products'],
    ['Bewertungen für Ärzte', 'Bewertungen für Ärzte'],
    ['../../x', '%2E.%2F..%2Fx'],
    ['..', '%2E%2E'],
    ['.', '%2E'],
    ['', '%'],
    ['/', '%2F'],
    ['/etc/passwd', '%2Fetc%2Fpasswd'],
    ['a\\\\b', 'a%5C%5Cb'],
    ['C:', 'C%3A'],
    ['a\0b\n', 'a%00b%0A'],
    ['x ', 'x%20'],
    ['month=2026', 'month%3D2026'],
    ['100%', '100%25'],
    ['~root', '%7Eroot'],
    ['nul', '%nul'],
    ['\ud800', '%EF%BF%BD'],
  ])('%j is %j', (stream, folder) => {
    expect(foldersOf(stream)).toEqual([folder])
  })

  it('is another one for each stream, on every file system', () => {
    const streams = [
      'a',
      'A',
      'a~2',
      'é',
      'e\u0301',
      'ß',
      'SS',
      '%2F',
      '/',
      'x'.repeat(300),
      `${'x'.repeat(300)}y`,
      '💊'.repeat(90),
    ]
    const folders = foldersOf(...streams)
    expect(new Set(folders.map((name) => name.normalize('NFKC').toLowerCase())).size).toBe(streams.length)
    for (const name of folders) {
      expect(Buffer.byteLength(name)).toBeLessThan(256)
      expect(Buffer.from(name).toString()).toBe(name)
    }
  })
})

describe('a Parquet export', () => {
  it('stays in its folder, keeps columns named like the partition, and is for its owner only', async () => {
    const root = mkdtempSync(join(tmpdir(), 'parquet-'))
    const snapshot = await openSnapshot(join(root, 'a.duckdb'))()
    if (E.isLeft(snapshot)) throw new Error(snapshot.left.message)
    const writer = await createSnapshotWriter(snapshot.right, { now: () => 0 })
    const stream = '../../escaped'
    const properties = {
      id: { type: 'integer' },
      month: { type: 'string' },
      at: { type: 'string', format: 'date-time' },
    }
    await writer.write({
      _tag: 'Started',
      stream: {
        name: stream,
        schema: { properties },
        primaryKey: ['id'],
        cursor: O.some('at'),
        syncMode: 'incremental',
      },
    })
    const json = Buffer.from('{"id":1,"month":"own","at":"2026-02-03T00:00:00Z"}')
    await writer.write({ _tag: 'Records', stream, rows: [{ json }], at: 1 })
    await writer.write({ _tag: 'Finished', stream, extent: 'changes' })
    await writer.finish()
    const out = join(root, 'deep', 'out')
    const [exported] = await exportParquet(snapshot.right, out, 'month')
    expect(exported).toMatchObject({ stream, rows: 1, folder: join(out, '%2E.%2F..%2Fescaped') })
    const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter(({ name }) =>
      name.endsWith('.parquet'),
    )
    expect(files.map(({ parentPath }) => parentPath)).toEqual([join(exported?.folder ?? '', 'month_=2026-02')])
    expect(existsSync(join(root, 'escaped'))).toBe(false)
    for (const { parentPath, name } of files) expect(statSync(join(parentPath, name)).mode & 0o777).toBe(0o600)
    expect(statSync(out).mode & 0o777).toBe(0o700)
    const rows = await snapshot.right.db.query(`SELECT id, month FROM read_parquet('${out}/*/*/*.parquet')`)
    expect(rows).toEqual([{ id: 1, month: 'own' }])
    await closeSnapshot(snapshot.right)
  })

  it.each([undefined, 'month'] as const)(
    'partitioned by %s has a file for a stream without rows',
    async (partition) => {
      const [snapshot, folder] = [await openSnapshotFile(newTempPath('duckdb')), newTempPath('parquet')]
      await writeMessages(snapshot, streamMessages(deletedReviewsInfo()))
      expect(await exportParquet(snapshot, folder, partition)).toMatchObject([{ stream: 'deleted_reviews', rows: 0 }])
      const columns = await snapshot.db.query(`DESCRIBE FROM '${folder}/deleted_reviews/*.parquet'`)
      expect(columns.map(({ column_name }) => column_name)).toEqual([
        ...[
          'id',
          'modifiedTime',
          '_airbyte_raw_id',
          '_airbyte_extracted_at',
          '_airbyte_meta',
          '_airbyte_generation_id',
        ],
        ...(partition === undefined ? [] : [partition]),
      ])
      await closeSnapshot(snapshot)
    },
  )

  it('has the models too, where views are asked for, under the names that they have in the file', async () => {
    const [snapshot, folder] = [await openSnapshotFile(newTempPath('duckdb')), newTempPath('parquet')]
    await snapshot.db.giveAllMemory()
    await fillReviews(snapshot)
    await snapshot.db.run('DROP VIEW owner_scorecard; CREATE TABLE owner_scorecard (own INTEGER)')
    const exported = await exportParquet(snapshot, folder, 'month', true)
    const rows = new Map(exported.map(({ stream, rows }) => [stream, rows]))
    const names = listModelNames().map((name) => (name === 'owner_scorecard' ? 'owner_scorecard_' : name))
    for (const name of names) {
      const file = join(folder, name, 'data_0.parquet')
      const [counted] = await snapshot.db.query(`
        SELECT (SELECT count(*) FROM ${name}) AS view_rows, (SELECT count(*) FROM '${file}') AS file_rows`)
      expect([name, counted?.view_rows, counted?.file_rows]).toEqual([name, rows.get(name), rows.get(name)])
      expect(statSync(file).mode & 0o777).toBe(0o600)
    }
    expect(rows.get('nps_monthly')).toBeGreaterThan(10)
    await closeSnapshot(snapshot)
  })

  it('has JSON, ids and large integers as types that every reader knows, also inside others', async () => {
    const [snapshot, folder] = [await openSnapshotFile(newTempPath('duckdb')), newTempPath('parquet')]
    await writeMessages(snapshot, streamMessages(reviewsInfo(), reviewJson(1, 1)))
    await exportParquet(snapshot, folder, undefined)
    const listTypes = (path: string) =>
      snapshot.db.query(`SELECT DISTINCT logical_type AS type FROM parquet_schema('${path}') ORDER BY ALL`)
    expect(JSON.stringify(await listTypes(join(folder, 'reviews', '*.parquet')))).not.toContain('Json')
    const path = join(folder, 'query.parquet')
    const sql = `
      SELECT '{"a":1}'::JSON AS json, ['[]'::JSON] AS list, {'JSON': '2'::JSON, 'a "JSON"': 1::HUGEINT} AS struct,
      MAP {'k': '3'::JSON} AS map, [uuid()] AS ids, 'JSON'::ENUM ('JSON') AS kind`
    await exportQuery(snapshot, sql, path)
    expect(JSON.stringify(await listTypes(path))).not.toMatch(/Json|UUID/i)
    expect(await snapshot.db.query(`SELECT * EXCLUDE ids FROM '${path}'`)).toEqual([
      {
        ...{ json: '{"a":1}', list: ['[]'], map: [{ key: 'k', value: '3' }], kind: 'JSON' },
        struct: { JSON: '2', 'a "JSON"': 1 },
      },
    ])
    await closeSnapshot(snapshot)
  })
})
