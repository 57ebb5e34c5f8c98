import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { BIGINT, DuckDBListValue, DuckDBStructValue, VARCHAR } from '@duckdb/node-api'
import * as E from 'fp-ts/Either'
import { afterAll, describe, expect, it } from 'vitest'
import {
  type Database,
  type DatabaseOptions,
  openDatabase,
  quoteIdentifier,
  quoteLiteral,
} from '../../../connector/snapshot/store/database'

const folder = mkdtempSync(join(tmpdir(), 'database-'))
afterAll(() => rmSync(folder, { recursive: true }))

const openFile = async (path = ':memory:', options?: DatabaseOptions): Promise<Database> => {
  const opened = await openDatabase(path, options)()
  if (E.isLeft(opened)) throw new Error(opened.left.message)
  return opened.right
}

const readFailure = async (path: string, options?: DatabaseOptions) => {
  const opened = await openDatabase(path, options)()
  return E.isLeft(opened) ? opened.left : undefined
}

const marked = '\ufeff'

/** Values of every type that contains text and others, in SQL and as `query` reads them. */
const nestedTexts = [
  [`['${marked}a', NULL]`, [`${marked}a`, null]],
  [`['${marked}a', 'b']::VARCHAR[2]`, [`${marked}a`, 'b']],
  [`{'n': 1, 's': '${marked}a', 'l': ['${marked}']}`, { n: 1, s: `${marked}a`, l: [marked] }],
  [`MAP {'${marked}k': '${marked}v'}`, [{ key: `${marked}k`, value: `${marked}v` }]],
  [`MAP {1: '${marked}v'}`, [{ key: 1, value: `${marked}v` }]],
  [`union_value(s := '${marked}a')::UNION(n INTEGER, s VARCHAR)`, { tag: 's', value: `${marked}a` }],
  [`'"${marked}a"'::JSON`, `"${marked}a"`],
  [`'${marked}a'::ENUM ('${marked}a')`, `${marked}a`],
  [`NULL::STRUCT(s VARCHAR)`, null],
] as const

describe('query', () => {
  it('returns integers exactly, as a number where that is possible', async () => {
    const db = await openFile()
    expect(
      await db.query(`SELECT count(*) AS n, 9007199254740993 AS id, [1::BIGINT] AS list, {'a': 2::BIGINT} AS struct`),
    ).toEqual([{ n: 1, id: 9007199254740993n, list: [1], struct: { a: 2 } }])
    expect(await db.scalar('SELECT $id::BIGINT + 1', { id: 9007199254740993n })).toBe(9007199254740994n)
    expect(await db.scalar('SELECT 1 WHERE false')).toBeUndefined()
    db.close()
  })

  it('keeps a leading byte order mark, in a name and inside every type that holds texts', async () => {
    const db = await openFile()
    const texts = [marked, `${marked}${marked}x`, `${marked}, longer than twelve bytes`, 'x', '', `x${marked}`]
    expect(await db.query('SELECT unnest($texts::VARCHAR[]) AS s', { texts: new DuckDBListValue(texts) })).toEqual(
      texts.map((s) => ({ s })),
    )
    expect(await db.scalar('SELECT $s', { s: marked })).toBe(marked)
    expect(await db.query(`SELECT NULL::VARCHAR AS "${marked}"`)).toEqual([{ [marked]: null }])
    for (const [sql, value] of nestedTexts) expect(await db.scalar(`SELECT ${sql}`), sql).toEqual(value)
    db.close()
  })

  it('reads a time without a zone as UTC', async () => {
    const db = await openFile()
    expect(await db.scalar(`SELECT TIMESTAMPTZ '2026-01-02 03:04:05'`)).toEqual(new Date('2026-01-02T03:04:05Z'))
    db.close()
  })

  it('is run again with more memory where it needs it', async () => {
    const path = join(folder, 'memory.duckdb')
    ;(await openFile(path)).close()
    const sql = 'SELECT len(list(range)) AS n FROM range(3000000)'
    const limited = await openFile(path, { readOnly: true, memory: [20e6] })
    await expect(limited.scalar(sql)).rejects.toThrow(/out of memory/i)
    limited.close()
    const db = await openFile(path, { readOnly: true, memory: [20e6, 1e9] })
    expect(await db.scalar(sql)).toBe(3_000_000)
    db.close()
  })
})

describe('stream and appendColumns', () => {
  it('handle more rows than one chunk holds', async () => {
    const db = await openFile()
    await db.run('CREATE TEMP TABLE t (n BIGINT, text VARCHAR)')
    const numbers = Array.from({ length: 5000 }, (_, n) => BigInt(n))
    await db.appendColumns('t', [BIGINT, VARCHAR], [numbers, numbers.map(String)])
    await db.appendColumns('t', [BIGINT, VARCHAR], [[], []])
    const chunks: number[] = []
    for await (const rows of (await db.stream('SELECT n FROM t')).chunks) chunks.push(rows.length)
    expect(chunks.length).toBeGreaterThan(1)
    expect(chunks.reduce((a, b) => a + b)).toBe(5000)
    expect(await db.query('SELECT count(*) AS n, sum(n) AS sum FROM t WHERE n::VARCHAR = text')).toEqual([
      { n: 5000, sum: 12_497_500 },
    ])
    db.close()
  })

  it('keep a leading byte order mark', async () => {
    const db = await openFile()
    await db.run('CREATE TEMP TABLE t (s VARCHAR)')
    await db.appendColumns('t', [VARCHAR], [[marked, 'x', null]])
    const rows = []
    for await (const chunk of (await db.stream(`SELECT s, {'s': s} AS struct FROM t`)).chunks) rows.push(...chunk)
    expect(rows).toEqual([marked, 'x', null].map((s) => [s, new DuckDBStructValue({ s })]))
    db.close()
  })

  it('append all rows or none where the memory is too little', async () => {
    const db = await openFile(':memory:', { memory: [20e6] })
    await db.run(`SET temp_directory = ''; CREATE TEMP TABLE t (n BIGINT)`)
    const batch = Array.from({ length: 100_000 }, (_, n) => BigInt(n) * 1_000_003n)
    const fill = async () => {
      for (let times = 0; times < 100; times++) await db.appendColumns('t', [BIGINT], [batch])
    }
    await expect(fill()).rejects.toThrow(/out of memory|could not allocate/i)
    expect(Number(await db.scalar('SELECT count(*) FROM t')) % batch.length).toBe(0)
    db.close()
  })
})

describe('transaction', () => {
  it('rolls back a body that fails', async () => {
    const db = await openFile()
    await db.run('CREATE TABLE t (n BIGINT)')
    await expect(
      db.transaction(async () => {
        await db.run('INSERT INTO t VALUES (1)')
        throw new Error('no')
      }),
    ).rejects.toThrow('no')
    await db.transaction(() => db.run('INSERT INTO t VALUES (2)'))
    expect(await db.query('SELECT n FROM t')).toEqual([{ n: 2 }])
    db.close()
  })
})

/** The head of a file that DuckDB 2.0 has made, and of one that DuckDB 0.8 has made. */
const newerHead =
  'H4sIAAAAAAACA+3XsQqCcBDH8b/m0OQqQdDSLP5D0CaHDKJwdGoK7BEKBx/Fh3DzHZwTeoOgxVkQapAIIqPFQfh+lh93BzfcdpO5Vhh1evDD1e' +
  '42En85L0zLlN1zN3JcKe3j0vq9514ml01m6NuqyWenphIAAAAAAKAXVyeOp3vfU76P1Xdfa2PcxprTAQAAAAAwtP8/eNWPD4L/HwAAAACAwXsC' +
  'w66MrQAwAAA='
const olderHead =
  'H4sIAAAAAAACA+3XsQ2CUBiF0f8ZGOH1WjABiQtoZ0FC4gRMwAiWLkbtDMSWGbBAG+ICkHPKW37dTa+xe09tvt4vtzoWRUQcAwAAANiL5+k8VH' +
  '3zSKt9/jpIBAAAAJtX5v+//0chAAAA2L4PRo6jYAAwAAA='

describe('openDatabase', () => {
  it.each([
    [
      newerHead,
      'newer',
      /newer DuckDB\. .*ATTACH '.*it''s newer\.duckdb'.*STORAGE_VERSION 'v1\.4\.0'.*COPY FROM DATABASE/,
    ],
    [olderHead, 'older', /before 0\.10\. Give another path/],
  ])('says what to do with a file of another storage version: %#', async (head, name, message) => {
    const path = join(folder, `it's ${name}.duckdb`)
    writeFileSync(path, gunzipSync(Buffer.from(head, 'base64')))
    expect(await readFailure(path)).toMatchObject({ _tag: 'Config', message: expect.stringMatching(message) })
  })

  it('fails with what is wrong with the path, and does not change the file', async () => {
    const text = join(folder, 'notes.txt')
    writeFileSync(text, 'not a database, some notes')
    expect((await readFailure(text))?.message).toContain('is not a DuckDB file')
    expect(readFileSync(text, 'utf8')).toBe('not a database, some notes')
    expect((await readFailure(folder))?.message).toContain('is a folder')
    expect((await readFailure(join(folder, 'missing.duckdb'), { readOnly: true }))?._tag).toBe('Config')
    expect((await readFailure(join(folder, 'missing', 'a.duckdb')))?.message).toContain('no such file or folder')
  })
})

it('quoteIdentifier and quoteLiteral double the quotes inside', () => {
  expect(quoteIdentifier('a"b')).toBe('"a""b"')
  expect(quoteLiteral("it's")).toBe("'it''s'")
})
