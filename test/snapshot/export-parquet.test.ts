import { existsSync, mkdtempSync, readdirSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import { exportParquet, nameFolders } from '../../connector/snapshot/export-parquet'
import { createSnapshotWriter } from '../../connector/snapshot/load/writer'
import { closeSnapshot, openSnapshot } from '../../connector/snapshot/store/file'

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
})
