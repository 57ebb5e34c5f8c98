import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import * as E from 'fp-ts/Either'
import { afterAll, describe, expect, it } from 'vitest'
import { diffCommand } from '../../connector/cli/diff'
import { replayCommand } from '../../connector/cli/replay'
import { snapshotCommand } from '../../connector/cli/snapshot'
import { verifyCommand } from '../../connector/cli/verify'
import { openDatabase } from '../../connector/snapshot/store/database'
import { runCommand } from '../support/run-command'

const folder = mkdtempSync(join(tmpdir(), 'replay-'))
afterAll(() => rmSync(folder, { recursive: true }))
const path = (name: string) => join(folder, name)
const golden = (name: string) => join(__dirname, '../snapshot/golden', name)
const args = (db: string, ...files: string[]) => [
  ...files,
  '--db',
  path(db),
  '--catalog',
  golden('catalog.golden.json'),
]

/** Of the golden snapshot; it changes only on purpose, and then with a word about it in CHANGELOG.md. */
const goldenHash = 'e04b30b42596990d50cb658d40452ddf'

describe('feedback replay', () => {
  it('makes the same golden snapshot of the captured messages each time, also from gzip', async () => {
    const outcome = await runCommand(replayCommand, [
      ...args('a.duckdb', golden('first.jsonl'), golden('second.jsonl')),
      '--json',
    ])
    expect(outcome.status).toBe(0)
    const content = JSON.parse(outcome.stdout)
    expect(content.tables.map(({ table, rows }: { table: string; rows: number }) => [table, rows])).toEqual([
      ['deleted_reviews', 2],
      ['locations', 3],
      ['review_contents', 7],
      ['review_liabilities', 1],
      ['reviews', 7],
      ['_state', 5],
    ])
    expect(content.hash).toBe(goldenHash)

    for (const name of ['first.jsonl', 'second.jsonl'])
      writeFileSync(path(`${name}.gz`), gzipSync(readFileSync(golden(name))))
    const again = await runCommand(replayCommand, [
      ...args('b.duckdb', path('first.jsonl.gz'), path('second.jsonl.gz')),
    ])
    expect(again.stdout).toContain(`\n${goldenHash}\n`)
    expect(await runCommand(verifyCommand, ['--db', path('b.duckdb')])).toMatchObject({ status: 0 })
  })

  it('prints the same hash for any order of the records', async () => {
    const records = Array.from(
      { length: 300 },
      (_, id) =>
        `{"type":"RECORD","record":{"stream":"reviews","data":{"id":${id},` +
        `"modifiedTime":"2026-01-01T00:00:00.000Z"},"emitted_at":${id}}}`,
    )
    const hashes = []
    for (const [name, lines] of [
      ['ahead', records],
      ['back', records.toReversed()],
    ] as const) {
      writeFileSync(path(`${name}.jsonl`), lines.join('\n'))
      const { stdout } = await runCommand(replayCommand, [
        path(`${name}.jsonl`),
        '--db',
        path(`${name}.duckdb`),
        '--json',
      ])
      hashes.push(JSON.parse(stdout).hash)
    }
    expect(hashes[0]).toBe(hashes[1])
  })

  it('names the missing or wrong file', async () => {
    expect((await runCommand(replayCommand, ['--db', path('x.duckdb')])).stderr).toContain('needs a file')
    expect((await runCommand(replayCommand, args('x.duckdb', path('none.jsonl')))).stderr).toContain(
      'none.jsonl cannot be read (ENOENT)',
    )
    writeFileSync(path('torn.gz'), gzipSync(readFileSync(golden('first.jsonl'))).subarray(0, 500))
    expect((await runCommand(replayCommand, args('x.duckdb', path('torn.gz')))).stderr).toContain('cannot be unpacked')
  })
})

describe('feedback snapshot --export', () => {
  const read = async (sql: string) => {
    const opened = await openDatabase(':memory:')()
    if (E.isLeft(opened)) throw new Error(opened.left.message)
    const rows = await opened.right.query(sql)
    opened.right.close()
    return rows
  }
  const exported = (folder: string, ...more: string[]) =>
    runCommand(snapshotCommand, ['--db', path('a.duckdb'), '--export', 'parquet', path(folder), ...more])

  it('writes Parquet that other engines read, one file for each stream or folders by month', async () => {
    expect(await exported('whole')).toMatchObject({ status: 0, stdout: expect.stringMatching(/reviews +7 /) })
    expect(await read(`SELECT max(id) AS id, count(*) AS n FROM '${path('whole/deleted_reviews/*.parquet')}'`)).toEqual(
      [{ id: 9007199254741068n, n: 2 }],
    )
    await exported('monthly', '--partition', 'month')
    const months = await read(
      `
        SELECT DISTINCT month, strftime("mentionTime"::TIMESTAMP, '%Y-%m') AS meant
        FROM read_parquet('${path('monthly/reviews/*/*.parquet')}', hive_types = {month: VARCHAR})`,
    )
    expect(months.length).toBeGreaterThan(1)
    expect(months.filter(({ month, meant }) => month !== meant)).toEqual([])
  })

  it('does not write into a folder that is not empty, nor by an unknown partition', async () => {
    expect((await exported('whole')).stderr).toContain('is not empty')
    expect((await exported('new', '--partition', 'week')).stderr).toContain('one of year, month, day')
  })
})

describe('feedback diff', () => {
  const changed = async (name: string, sql: string): Promise<string> => {
    copyFileSync(path('a.duckdb'), path(name))
    const opened = await openDatabase(path(name))()
    if (E.isLeft(opened)) throw new Error(opened.left.message)
    await opened.right.run(sql)
    opened.right.close()
    return path(name)
  }

  it('finds no difference between two replays of the same messages', async () => {
    expect(await runCommand(diffCommand, [path('a.duckdb'), path('b.duckdb')])).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('They are the same.'),
    })
  })

  it('prints rows, columns, types and the first values that differ', async () => {
    const other = await changed(
      'other.duckdb',
      `DELETE FROM locations WHERE id = (SELECT min(id) FROM locations);
       INSERT INTO deleted_reviews SELECT * REPLACE (5 AS id) FROM deleted_reviews LIMIT 1;
       UPDATE reviews SET rating = 3.25 WHERE id = 700000046;
       ALTER TABLE review_contents ALTER "noOfSentiments" TYPE VARCHAR;
       ALTER TABLE review_contents ADD COLUMN extra BIGINT;
       DROP TABLE review_liabilities`,
    )
    const outcome = await runCommand(diffCommand, [path('a.duckdb'), other, '--json'])
    expect(outcome.status).toBe(1)
    const same = { columns: [], onlyA: 0, onlyB: 0, changed: 0, values: [] }
    expect(JSON.parse(outcome.stdout)).toEqual([
      { ...same, stream: 'deleted_reviews', a: 2, b: 3, onlyB: 1 },
      { ...same, stream: 'locations', a: 3, b: 2, onlyA: 1 },
      {
        ...same,
        stream: 'review_contents',
        a: 7,
        b: 7,
        columns: [
          { column: 'noOfSentiments', a: 'BIGINT', b: 'VARCHAR' },
          { column: 'extra', a: null, b: 'BIGINT' },
        ],
      },
      { ...same, stream: 'review_liabilities', a: 1, b: null, onlyA: 1 },
      {
        ...same,
        stream: 'reviews',
        a: 7,
        b: 7,
        changed: 1,
        values: [{ key: 'id 700000046', column: 'rating', a: '1.5', b: '3.25' }],
      },
    ])
    const told = await runCommand(diffCommand, [path('a.duckdb'), other])
    expect(told.stdout).toContain('reviews id 700000046, rating: 1.5 in A, 3.25 in B')
    expect(told.stdout).toContain('review_contents.extra: not in A, BIGINT')
  })

  it('compares files of any name, and a file with itself', async () => {
    const named = await changed('__COMPARED.duckdb', 'SELECT 1')
    for (const pair of [
      [path('b.duckdb'), path('a.duckdb')],
      [path('a.duckdb'), path('a.duckdb')],
      [path('a.duckdb'), named],
    ])
      expect(await runCommand(diffCommand, pair)).toMatchObject({ status: 0, stderr: '' })
  })

  it('needs two snapshots', async () => {
    expect((await runCommand(diffCommand, [path('a.duckdb')])).stderr).toContain('needs two files')
    expect((await runCommand(diffCommand, [path('a.duckdb'), path('none.duckdb')])).stderr).toContain('no such file')
  })
})
