import { spawn, spawnSync } from 'node:child_process'
import {
  existsSync,
  linkSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Writable } from 'node:stream'
import * as E from 'fp-ts/Either'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { personConventions } from '../../connector/cdk/program/exit'
import { createLineEditor } from '../../connector/cdk/program/line-editor'
import { queryCommand } from '../../connector/cli/query'
import { snapshotCommand } from '../../connector/cli/snapshot'
import { openDatabase } from '../../connector/snapshot/store/database'
import { createTestIo, toInput } from '../support/command-io'
import { programPath } from '../support/program'
import { runCommand } from '../support/run-command'

const folder = mkdtempSync(join(tmpdir(), 'query-'))
afterAll(() => rmSync(folder, { recursive: true }))
const path = (name: string) => join(folder, name)
const db = path('reviews.duckdb')
const catalog = path('catalog.json')

const nullable = (type: string, more: object = {}) => ({ type: ['null', type], ...more })
const schema = {
  type: 'object',
  properties: {
    id: { type: 'integer' },
    modifiedTime: { type: 'string', format: 'date-time' },
    location: nullable('object', {
      properties: {
        id: nullable('integer'),
        name: nullable('string'),
        'the "house"': nullable('string'),
        opened: nullable('string', { format: 'date' }),
        isOpen: nullable('boolean'),
        share: nullable('number'),
        address: nullable('object', { properties: { city: nullable('string') } }),
      },
    }),
    source: nullable('object', { properties: { name: nullable('string') } }),
    contents: nullable('array', { items: nullable('object', { properties: { response: nullable('string') } }) }),
  },
}
const rows = [
  '{"id":1,"modifiedTime":"2026-01-01T00:00:00.000Z","location":{"id":9007199254740993,"name":"North, ' +
    `\\"one\\"","the ` +
    `\\"house\\"":"h","opened":"2020-02-29","isOpen":true,"share":0.25,"address":{"city":"Köln"},` +
    '"extra":{"n":12345678901234567890}},"source":{"name":"=A1"},"contents":[{"response":"Good"}]}',
  '{"id":2,"modifiedTime":"2026-01-02T00:00:00.000Z","location":{"id":2,"name":"South","isOpen":false},' +
    '"source":{"name":""},"contents":[]}',
  `{"id":3,"modifiedTime":"2026-01-03T00:00:00.000Z","location":null,"source":{"name":null},"contents":null}`,
]

const query = (...args: ReadonlyArray<string>) => runCommand(queryCommand, ['--db', db, ...args])
const readJson = async (sql: string): Promise<ReadonlyArray<unknown>> => {
  const { status, stdout, stderr } = await query('--json', sql)
  expect([status, stderr]).toEqual([0, ''])
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}
const readError = async (...args: ReadonlyArray<string>): Promise<string> => {
  const { status, stdout, stderr } = await query(...args)
  expect([status, stdout]).toEqual([1, ''])
  return stderr
}

beforeAll(async () => {
  const stream = {
    stream: { name: 'reviews', json_schema: schema },
    sync_mode: 'incremental',
    destination_sync_mode: 'append_dedup',
    primary_key: [['id']],
    cursor_field: ['modifiedTime'],
  }
  writeFileSync(catalog, JSON.stringify({ streams: [stream] }))
  const messages = [
    ...rows.map((data) => `{"type":"RECORD","record":{"stream":"reviews","data":${data},"emitted_at":1}}`),
    '{"type":"TRACE","trace":{"type":"STREAM_STATUS","stream_status":{"stream_descriptor":{"name":"reviews"},' +
      '"status":"COMPLETE"}}}',
  ].join('\n')
  const outcome = await runCommand(snapshotCommand, ['--db', db, '--catalog', catalog, '--history'], messages)
  expect(outcome.status).toBe(0)
})

it('reads SQL from stdin for -, so that a statement may be long and begin with a comment', async () => {
  const sql = `-- Which rows?\nSELECT id FROM reviews ORDER BY id;\n${'-- '.padEnd(200_000, 'x')}\n`
  const { status, stdout } = await runCommand(queryCommand, ['--db', db, '--json', '-'], sql)
  expect([status, stdout]).toEqual([0, '{"id":1}\n{"id":2}\n{"id":3}\n'])
  expect((await runCommand(queryCommand, ['--db', db, '-'], '\n')).status).toBe(2)
})

describe('a member of a nested value', () => {
  it('is reached as column.member, with its declared type', async () => {
    expect(
      await readJson(
        `
          SELECT location.id, location.name, location.opened, location.isOpen, location.share, location.address.city
          FROM reviews
          WHERE reviews.id = 1`,
      ),
    ).toEqual([{ id: 2 ** 53, name: 'North, "one"', opened: '2020-02-29', isOpen: true, share: 0.25, city: 'Köln' }])
    expect(
      await readJson('SELECT typeof(location.id) AS id, typeof(location.opened) AS day FROM reviews LIMIT 1'),
    ).toEqual([{ id: 'BIGINT', day: 'DATE' }])
    const { stdout } = await query('--json', 'SELECT location.id FROM reviews WHERE location.id > 9007199254740992')
    expect(stdout).toBe('{"id":9007199254740993}\n')
  })

  it.each([
    ["SELECT id FROM reviews WHERE location.name = 'South'", [{ id: 2 }]],
    ["SELECT r.id FROM reviews r WHERE r.location.name = 'South'", [{ id: 2 }]],
    ["SELECT id FROM reviews WHERE reviews.location.name LIKE 'S%'", [{ id: 2 }]],
    ["SELECT id FROM reviews WHERE main.reviews.location.name = 'South'", [{ id: 2 }]],
    ["SELECT id FROM reviews WHERE LOCATION.Name = 'South'", [{ id: 2 }]],
    [`SELECT "location" . "name" FROM reviews WHERE id = 2`, [{ name: 'South' }]],
    ['SELECT location/* of the review */.name AS n FROM reviews WHERE id = 2 -- location.nmae', [{ n: 'South' }]],
    [
      "SELECT 'é location.name' AS é, location.name FROM reviews WHERE id = 2",
      [{ é: 'é location.name', name: 'South' }],
    ],
    [`SELECT location."the ""house""" FROM reviews WHERE id = 1`, [{ 'the "house"': 'h' }]],
    ['SELECT sum(location.id)::VARCHAR AS s FROM reviews', [{ s: '9007199254740995' }]],
    [
      `
        SELECT location.name, count(*) AS n
        FROM reviews
        GROUP BY location.name
        HAVING location.name IS NOT NULL
        ORDER BY location.name DESC`,
      [
        { name: 'South', n: 1 },
        { name: 'North, "one"', n: 1 },
      ],
    ],
    ["SELECT location.isOpen AND true AS o FROM reviews WHERE location.id::VARCHAR || 'x' = '2x'", [{ o: false }]],
    ['SELECT location.name FROM reviews_versions WHERE id = 2', [{ name: 'South' }]],
    ['WITH r AS (SELECT * FROM reviews) SELECT r.location.name FROM r WHERE r.id = 2', [{ name: 'South' }]],
    ['WITH r AS (SELECT * FROM reviews) SELECT q.location.name FROM r AS q WHERE q.id = 2', [{ name: 'South' }]],
    ['SELECT q.location.name FROM (FROM reviews WHERE id = 2) AS q', [{ name: 'South' }]],
    [
      'SELECT a.location.name FROM reviews a JOIN reviews b ON a.location.id = b.location.id + 0 WHERE b.id = 2',
      [{ name: 'South' }],
    ],
    ['SELECT location.name FROM (SELECT 1 AS name) AS location, reviews WHERE reviews.id = 2', [{ name: 1 }]],
    ["SELECT s.name FROM (SELECT {'name': 5} AS s)", [{ name: 5 }]],
    ['SELECT 1 AS a; SELECT location.name FROM reviews WHERE id = 2', [{ name: 'South' }]],
  ])('in %s', async (sql, expected) => expect(await readJson(sql)).toEqual(expected))

  it('leaves the JSON column and its operators as they are', async () => {
    const { stdout } = await query(
      '--json',
      `SELECT
        location, location->>'$.name' AS n, location->'$.extra.n' AS big, location.extra.n AS m, location.address,
        contents[0].response
      FROM reviews
      WHERE id = 1`,
    )
    const location = /"location":(\{.*?\}\}),"source"/.exec(rows[0] ?? '')?.[1]
    expect(stdout).toBe(
      `{"location":${location},"n":"North, ` +
        `\\"one\\"","big":12345678901234567890,"m":12345678901234567890,"address":{"city":"Köln"},` +
        '"(contents[0]).response":"Good"}\n',
    )
  })

  it.each([
    ['SELECT location.nmae FROM reviews', 'location has no member nmae. Did you mean location.name?'],
    ['SELECT location.zzz FROM reviews', 'location has no member zzz. It has id, name,'],
    [
      'SELECT r.location.address.cty FROM reviews r',
      'location.address has no member cty. Did you mean location.address.city?',
    ],
    ['SELECT contents.response FROM reviews', 'contents[0].response'],
    ['SELECT city FROM reviews', 'There is no column city'],
    ['SELECT name FROM reviews', 'Did you mean location.name or source.name?'],
    ['SELECT locaton.name FROM reviews', 'Did you mean location?'],
    ['SELECT modifiedTme FROM reviews', 'There is no column modifiedTme. Did you mean modifiedTime?'],
    ['SELECT r.modifiedTme FROM reviews AS r', 'Did you mean modifiedTime?'],
    ['SELECT x.id FROM reviews AS r', 'no table or column x'],
    ['SELECT qqq FROM _loads', 'There are load, run, stream,'],
    ['FROM reviewz', 'There is no table or view reviewz. Did you mean reviews?'],
    ['FROM nothing_like_it', 'There are answers_monthly, critical_alerts, deleted_reviews_by_source,'],
    ["SELECT uper('a')", 'Did you mean "upper"?'],
    ['SELEC 1', 'Parser Error: syntax error at or near "SELEC"'],
    ['SELECT avg(location) FROM reviews', "avg(JSON)'"],
  ])('that is wrong is named: %s', async (sql, expected) => {
    const message = await readError(sql)
    expect(message).toContain(expected)
    expect(message).not.toMatch(/Candidate|Failed to extract/)
  })
})

describe('--format', () => {
  const awkward = `
    SELECT
      1 AS "a|b", 'x,"y"' || chr(10) || '=1' AS t, NULL AS n, '' AS e, {'k': [1.5]} AS s, chr(27) || '[2J' AS c,
      '=1+1' AS f`

  it('csv quotes what must be quoted, and distinguishes null from an empty text', async () => {
    const { stdout } = await query('--format', 'csv', awkward)
    expect(stdout).toBe('a|b,t,n,e,s,c,f\n1,"x,""y""\n=1",,"","{""k"":[1.5]}",\u001b[2J,=1+1\n')
  })

  it('csv is read again by DuckDB as it was', async () => {
    const out = path('again.csv')
    await query(
      '--format',
      'csv',
      '--out',
      out,
      'SELECT id, modifiedTime, location, source.name FROM reviews ORDER BY id',
    )
    const opened = await openDatabase(':memory:')()
    if (E.isLeft(opened)) throw new Error(opened.left.message)
    const read = await opened.right.query(`
      SELECT id, location.name AS place, name, modifiedTime::VARCHAR AS time FROM (
        SELECT id, location::JSON AS location, name, "modifiedTime"
        FROM read_csv('${out}', all_varchar = true, allow_quoted_nulls = false)
      )
      ORDER BY id`)
    opened.right.close()
    expect(read).toEqual([
      { id: '1', place: '"North, \\"one\\""', name: '=A1', time: '2026-01-01T00:00:00.000Z' },
      { id: '2', place: '"South"', name: '', time: '2026-01-02T00:00:00.000Z' },
      { id: '3', place: null, name: null, time: '2026-01-03T00:00:00.000Z' },
    ])
  })

  it('csv for a spreadsheet begins no text as a formula', async () => {
    const sql = `SELECT '=1+1' AS "=h", '+1' AS p, '-1' AS m, '@a' AS a, chr(9) || '=' AS t, -1 AS n, 'a=b' AS b`
    const { stdout } = await query('--format', 'csv', '--spreadsheet', sql)
    expect(stdout).toBe(`\ufeff'=h,p,m,a,t,n,b\n'=1+1,'+1,'-1,'@a,"'\t=",-1,a=b\n`)
  })

  it.each([
    [`'\n=1'`, `"'\n=1"`],
    [`'\r=1'`, `"'\r=1"`],
    [`'＝1'`, `'＝1`],
    [`'＋1'`, `'＋1`],
    [`'－1'`, `'－1`],
    [`'＠SUM(1)'`, `'＠SUM(1)`],
    // Some programs treat a semicolon as the separator even inside quotes.
    [`'a;=1'`, `"a;'=1"`],
    [`'a;b;－1'`, `"a;b;'－1"`],
    [`'fine ;-)'`, `"fine ;-)"`],
    [`'a\t=1'`, `"a\t=1"`],
    [`'- slow' || chr(10) || '- rude'`, `"'- slow\n- rude"`],
    // Numbers stay numbers; what is neither a number nor a text is a text.
    ['-1.50', '-1.50'],
    ['-1.5e-300::DOUBLE', '-1.5e-300'],
    ['-9007199254740993', '-9007199254740993'],
    [`'-Infinity'::DOUBLE`, `'-Infinity`],
    [`INTERVAL '-1 day'`, `'-1 day`],
    [`['=1']`, `"[""=1""]"`],
  ])('csv for a spreadsheet has %j as %j', async (sql, cell) => {
    const { stdout } = await query('--format', 'csv', '--spreadsheet', `SELECT ${sql} AS c`)
    expect(stdout).toBe(`\ufeffc\n${cell}\n`)
  })

  it('json is one array, jsonl an object a line, as --json prints it', async () => {
    const sql = 'SELECT id, location FROM reviews ORDER BY id'
    const [json, jsonl, old] = await Promise.all(
      [['--format', 'json'], ['--format', 'jsonl'], ['--json']].map((more) => query(...more, sql)),
    )
    expect(jsonl?.stdout).toBe(old?.stdout)
    expect(JSON.parse(json?.stdout ?? '')).toEqual(
      old?.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    )
    expect((await query('--format', 'json', 'SELECT 1 WHERE false')).stdout).toBe('[\n]\n')
  })

  it('markdown shows each text as it is', async () => {
    const { stdout } = await query(
      '--format',
      'markdown',
      `SELECT 1 AS "a|b", '*x* <b>_y_ a_b &amp; [l](u)' || chr(10) || '~' AS t, NULL AS n`,
    )
    expect(stdout).toBe(
      '| a\\|b | t | n |\n| --- | --- | --- |\n| 1 | \\*x\\* \\<b\\>\\_y\\_ a_b &amp;amp; \\[l\\](u)<br>\\~ |  |\n',
    )
  })

  it('parquet keeps types, and integers that Parquet would round', async () => {
    const out = path('rows.parquet')
    const sql = `SELECT id, modifiedTime, location.id AS place, 170141183460469231731687303715884105::HUGEINT AS big,
      _airbyte_raw_id AS raw, location, [1, 2] AS list, 1 AS a, 2 AS a FROM reviews ORDER BY id DESC -- the end`
    expect(await query('--format', 'parquet', '--out', out, sql)).toEqual({ status: 0, stdout: '', stderr: '' })
    const opened = await openDatabase(':memory:')()
    if (E.isLeft(opened)) throw new Error(opened.left.message)
    const described = await opened.right.query(`DESCRIBE FROM '${out}'`)
    const read = await opened.right.query(`SELECT id, place, big::VARCHAR AS big, a, a_1 FROM '${out}'`)
    opened.right.close()
    expect(described.map(({ column_type }) => column_type)).toEqual([
      'BIGINT',
      'TIMESTAMP WITH TIME ZONE',
      'BIGINT',
      'DECIMAL(38,0)',
      'VARCHAR',
      'VARCHAR',
      'INTEGER[]',
      'INTEGER',
      'INTEGER',
    ])
    const big = '170141183460469231731687303715884105'
    expect(read).toEqual([
      { id: 3, place: null, big, a: 1, a_1: 2 },
      { id: 2, place: 2, big, a: 1, a_1: 2 },
      { id: 1, place: 9007199254740993n, big, a: 1, a_1: 2 },
    ])
    expect(statSync(out).mode & 0o777).toBe(0o600)
  })

  it.each([
    [['--format', 'xml'], '--format must be one of table, csv,'],
    [['--format', 'cvs'], 'Did you mean csv?'],
    [['--format', 'parquet'], 'needs --out FILE'],
    [['--format', 'csv', '--json'], 'Remove one of them'],
    [['--spreadsheet'], '--spreadsheet needs --format csv'],
    [['--limit', '0'], '--limit must be a whole number of at least 1, such as 20, not 0.'],
    [['--limit=-1'], 'not -1'],
    [['--limit', '1e3'], 'not 1e3'],
    [[], 'The question or the SQL is missing'],
    [[';'], 'The question or the SQL is missing'],
    [[' ; /* nothing */ ;; '], 'The question or the SQL is missing'],
    [['/**/ -- nothing'], 'The question or the SQL is missing'],
  ])('is refused with the reason: %j', async (args, expected) => {
    const sql = args.length === 0 || !args[0]?.startsWith('-') ? [] : ['SELECT 1']
    const outcome = await runCommand(queryCommand, ['--db', db, ...args, ...sql], {
      fail: personConventions.reportFailure,
    })
    expect(outcome).toMatchObject({ status: 2, stdout: '' })
    expect(outcome.stderr).toContain(expected)
  })

  it.each([
    ['csv', 'SELECT 1 AS a', 'a\n1\n'],
    ['json', 'SELECT 1 AS a', '[\n{"a":1}\n]\n'],
    ['ndjson', 'SELECT 1 AS a', '{"a":1}\n'],
    ['md', 'SELECT 1 AS a', '| a |\n| --- |\n| 1 |\n'],
    ['txt', 'SELECT 1 AS a', 'a\n1\n'],
  ])('is that of the ending of --out where it is left out: %s', async (ending, sql, expected) => {
    const out = path(`ending.${ending}`)
    expect(await query('--out', out, sql)).toMatchObject({ status: 0, stderr: '' })
    expect(readFileSync(out, 'utf8')).toBe(expected)
  })

  it('hands over a large result in parts', async () => {
    for (const format of ['csv', 'jsonl', 'json', 'markdown']) {
      const parts: string[] = []
      const io = createTestIo((async function* () {})(), async (text) => void parts.push(String(text)))
      const sql = 'SELECT range AS i FROM range(20000)'
      expect(await queryCommand.run(io, 'feedback', ['--db', db, '--format', format, sql])).toBe(0)
      expect(parts.length).toBeGreaterThan(5)
      expect(parts.join('').match(/19999/g)).toHaveLength(1)
    }
  })

  it('escapes what a terminal acts on only where stdout is one', async () => {
    const texts: string[] = []
    const io = createTestIo((async function* () {})(), async (text) => void texts.push(String(text)), {
      printsOnTerminal: true,
    })
    await queryCommand.run(io, 'feedback', ['--db', db, '--format', 'csv', awkward])
    expect(texts.join('')).toContain('\\u001b[2J')
  })
})

describe('--limit', () => {
  it.each(['csv', 'json', 'jsonl', 'markdown', 'table'])(
    'leaves the first rows of %s, and reads no more',
    async (format) => {
      for (const limit of [1, 2047, 2048, 2049, 5000]) {
        const { status, stdout, stderr } = await query(
          '--format',
          format,
          '--limit',
          String(limit),
          'FROM range(100000000000) AS r (n)',
        )
        expect([status, stderr]).toEqual([0, ''])
        expect(stdout.match(/\d+/g)?.map(Number)).toEqual(Array.from({ length: limit }, (_, i) => i))
      }
    },
  )

  it('leaves the first rows of Parquet', async () => {
    const out = path('limit.parquet')
    await query('--limit', '2', '--out', out, 'SELECT id FROM reviews ORDER BY id DESC')
    const opened = await openDatabase(':memory:')()
    if (E.isLeft(opened)) throw new Error(opened.left.message)
    expect(await opened.right.query(`FROM '${out}'`)).toEqual([{ id: 3 }, { id: 2 }])
    opened.right.close()
  })

  it('says how many rows a table leaves out, unless it was asked to', async () => {
    const sql = 'FROM range(1500)'
    expect(await query(sql)).toMatchObject({ stderr: '500 more rows; --limit N shows more, --json all.\n' })
    expect((await query('--limit', '1400', sql)).stdout.trim().split('\n')).toHaveLength(1401)
  })
})

describe('SQL that does more than read', () => {
  it.each([
    ['DELETE FROM reviews', 'A query cannot change anything, and this DELETE would.'],
    ['CREATE TABLE t AS SELECT 1', 'A query cannot change anything, and this CREATE would.'],
    ["COPY reviews TO '/tmp/none.csv'", 'A query cannot read or write other files, such as /tmp/none.csv.'],
    ["FROM '/etc/hosts.csv'", 'A query cannot read or write other files, such as /etc/hosts.csv.'],
    ['SET threads = 1', 'A query cannot change settings, such as threads.'],
  ])('is refused in plain words: %s', async (sql, expected) => {
    const message = await readError(sql)
    expect(message).toContain(expected)
    expect(message).not.toMatch(/Error:|read-only mode|configuration/)
  })
})

describe('--out', () => {
  const outFormats = ['table', 'csv', 'json', 'jsonl', 'markdown', 'parquet'].map((format) => [format] as const)
  const sql = 'SELECT id, location FROM reviews ORDER BY id'

  it.each(outFormats)('holds what stdout would show, for its owner only: %s', async (format) => {
    const out = path(`out.${format}`)
    writeFileSync(out, 'old', { mode: 0o644 })
    expect(await query('--format', format, '--out', out, sql)).toEqual({ status: 0, stdout: '', stderr: '' })
    expect(statSync(out).mode & 0o777).toBe(0o600)
    if (format !== 'parquet') expect(readFileSync(out, 'utf8')).toBe((await query('--format', format, sql)).stdout)
    rmSync(out)
  })

  it.each(outFormats)('keeps the old file where the query fails, and leaves none beside it: %s', async (format) => {
    const out = path('kept.txt')
    writeFileSync(out, 'old')
    for (const wrong of [
      'SELECT nope FROM reviews',
      "SELECT CASE WHEN range > 9000 THEN 'x' ELSE '1' END::INT FROM range(10000)",
      'DELETE FROM reviews',
    ]) {
      expect(await query('--format', format, '--out', out, wrong)).toMatchObject({ status: 1, stdout: '' })
      expect(readFileSync(out, 'utf8')).toBe('old')
    }
    expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([])
    rmSync(out)
  })

  it.each(outFormats)('is never a database: %s', async (format) => {
    const before = readFileSync(db)
    for (const name of ['link', 'hard', 'other.duckdb']) rmSync(path(name), { force: true })
    symlinkSync(db, path('link'))
    linkSync(db, path('hard'))
    writeFileSync(path('other.duckdb'), before)
    for (const out of [db, path('link'), path('hard'), `${db}.wal`, path('other.duckdb')]) {
      const { status, stderr } = await query('--format', format, '--out', out, sql)
      expect([out, status]).toEqual([out, 1])
      expect(stderr).toContain('--out')
    }
    expect(readFileSync(db).equals(before)).toBe(true)
    expect(readFileSync(path('other.duckdb')).equals(before)).toBe(true)
    expect(existsSync(`${db}.wal`)).toBe(false)
  })

  it.each(outFormats)('has no part of a query that was stopped: %s', async (format) => {
    const out = path('stopped.out')
    for (const endless of [
      'SELECT range FROM range(100000000000)',
      'SELECT count(*) FROM range(100000000000), range(1000)',
    ]) {
      const stop = new AbortController()
      const io = createTestIo((async function* () {})(), async () => undefined, { stop: stop.signal })
      const ended = queryCommand.run(io, 'feedback', ['--db', db, '--format', format, '--out', out, endless])
      setTimeout(() => stop.abort(), 300)
      await expect(ended).rejects.toThrow('The query was stopped')
    }
    expect(readdirSync(folder).filter((name) => name.startsWith('stopped'))).toEqual([])
  })

  it('says what is wrong with the path', async () => {
    expect(await readError('--format', 'csv', '--out', path('no/x.csv'), sql)).toContain('cannot be written. ENOENT')
    expect(await readError('--format', 'parquet', '--out', path('no/x.parquet'), sql)).toContain(
      'cannot be written. ENOENT',
    )
    expect(await readError('--format', 'parquet', '--out', '/dev/null', sql)).toContain('is not a file')
    expect(await query('--format', 'csv', '--out', '/dev/null', sql)).toMatchObject({ status: 0 })
  })
})

describe('SQL with --out', () => {
  it.each([
    ["COPY reviews TO 'OTHER'"],
    ["COPY reviews TO 'DB'"],
    ["ATTACH 'OTHER' AS other"],
    ["SELECT 1; COPY reviews TO 'OTHER'"],
    ["SELECT 1) TO 'OTHER' (FORMAT csv); --"],
    ["SELECT * FROM read_text('CATALOG')"],
    ["SELECT * FROM read_csv('CATALOG')"],
    ["FROM 'CATALOG'"],
    ["SELECT * FROM glob('/*')"],
    ["EXPORT DATABASE 'OTHER'"],
    ['INSTALL httpfs; SELECT 1'],
    ['PRAGMA database_list; SET enable_external_access = true'],
    ["SET allowed_paths = ['OTHER']; SELECT 1"],
    ["SET allowed_directories = ['/']"],
    ['RESET enable_external_access'],
    ["SET temp_directory = 'OTHER'"],
    ['CREATE TABLE main.mine AS SELECT 1 AS a'],
    ['DROP TABLE reviews'],
    ['UPDATE reviews SET id = 0'],
    ['CHECKPOINT; DELETE FROM _state'],
  ])('reaches no other file and no setting: %s', async (text) => {
    const [other, before, out] = [path('other.any'), readFileSync(db), path('reached.out')]
    const sql = text.replaceAll('OTHER', other).replaceAll('DB', db).replaceAll('CATALOG', catalog)
    for (const format of ['csv', 'parquet'])
      expect(await query('--format', format, '--out', out, sql)).toMatchObject({ status: 1, stdout: '' })
    expect([existsSync(other), existsSync(out)]).toEqual([false, false])
    expect(readFileSync(db).equals(before)).toBe(true)
  })

  it('is one SELECT for Parquet', async () => {
    const out = path('one.parquet')
    for (const sql of ['SELECT 1; SELECT 2', 'CREATE TEMP TABLE t AS SELECT 1 AS a'])
      expect(await readError('--format', 'parquet', '--out', out, sql)).toContain('one SELECT')
    expect(existsSync(out)).toBe(false)
  })
})

describe('without SQL, on a terminal', () => {
  const prompt = /(feedback| {5}\.\.\.)> $/
  const enter = '\r'
  const ctrlC = '\u0003'
  const ctrlD = '\u0004'
  const up = '\u001b[A'

  /**
   * Types each text once the shell waits for it; `now` are typed while the text before is still at work. Returns all
   * that the terminal shows.
   */
  const type = async (texts: ReadonlyArray<string | { readonly now: string }>, ...args: ReadonlyArray<string>) => {
    const keys = new PassThrough()
    let shown = ''
    const show = (text: string) => {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: what moves the cursor is no text
      shown += text.replaceAll(/\u001b\[[0-9;]*[A-Za-z]/g, '').replaceAll('\r\n', '\n')
    }
    const screen = new Writable({
      write: (chunk, _encoding, done) => {
        show(String(chunk))
        done()
      },
    })
    const stop = new AbortController()
    const io = createTestIo(toInput(''), async (text) => show(String(text)), {
      isInteractive: true,
      printsOnTerminal: true,
      editLines: () => createLineEditor(keys, screen, async () => undefined),
      printWarning: (line) => show(`${line}\n`),
      stop: stop.signal,
    })
    const ended = queryCommand.run(io, 'feedback', ['--db', db, ...args])
    let from = 0
    for (const text of texts) {
      const isLate = typeof text === 'string'
      while (isLate && !prompt.test(shown.slice(from))) await new Promise((resolve) => setTimeout(resolve, 5))
      if (!isLate) await new Promise((resolve) => setTimeout(resolve, 300))
      from = shown.length
      keys.write(isLate ? text : text.now)
    }
    return { shown: () => shown, status: await ended, stop }
  }
  const readShown = async (...texts: Parameters<typeof type>[0]): Promise<string> => {
    const { status, shown } = await type(texts)
    expect(status).toBe(0)
    return shown()
  }

  it('runs query after query, each up to its semicolon, also after one that fails', async () => {
    const shown = await readShown(
      `SELECT id${enter}`,
      `FROM reviews WHERE location.name${enter}`,
      `= 'South';${enter}`,
      `SELECT nope FROM reviews;${enter}`,
      enter,
      `SELECT 7 AS seven; -- the end${enter}`,
      `.exit${enter}`,
    )
    expect(shown).toMatch(/feedback> SELECT id\n {5}\.\.\.> FROM .*\n {5}\.\.\.> = 'South';\nid\n 2\nfeedback> /)
    expect(shown).toMatch(
      /There is no column nope[\s\S]*feedback> \nfeedback> SELECT 7 .*\nseven\n +7\nfeedback> \.exit\n/,
    )
  })

  it('reads a statement to a semicolon that is in no text and no comment', async () => {
    const shown = await readShown(
      `select${enter}`,
      `'a;${enter}`,
      `b''' AS t, "id;" -- ;${enter}`,
      `FROM (SELECT 1 AS "id;") /* ;${enter}`,
      `; */ ;${enter}`,
      ctrlD,
    )
    expect(shown).toMatch(/t +id;\na; b' +1\nfeedback> /)
    expect(shown).not.toContain('Error')
  })

  it('knows texts in dollar quotes and with escapes', async () => {
    const shown = await readShown(
      `SELECT $$it's;${enter}`,
      `$$ || $a_1$ $$ "; $a_1$ AS t;${enter}`,
      String.raw`SELECT E'it\'s; ' AS t;` + enter,
      `SELECT a$b$c AS t FROM (SELECT 1 AS a$b$c);${enter}`,
      ctrlD,
    )
    expect(shown).toMatch(/it's; +\$\$ ";\s*\n/)
    expect(shown).toMatch(/t\nit's;\s*\n/)
    expect(shown).toMatch(/t\n1\nfeedback> /)
    expect(shown).not.toContain('Error')
  })

  it('takes a question with its options, and reports a name that does not exist', async () => {
    const shown = await readShown(
      `source-mix;${enter}`,
      `source-mix --source "No Such" --limit 1${enter}`,
      `source-mixx${enter}`,
      `source-mix --sorce x${enter}`,
      `source-mix --limit none${enter}`,
      `.list${enter}`,
      `.lst${enter}`,
      `help${enter}`,
      `quit${enter}`,
    )
    expect(shown).toMatch(/source-mix;\nsource_id {2}source_name {2}reviews/)
    expect(shown).toContain('No row of reviews_current has the source No Such.')
    expect(shown).toContain('Did you mean source-mix?')
    expect(shown).toContain('there is no option --sorce. Did you mean --source?')
    expect(shown).toContain('--limit must be a whole number')
    expect(shown).toContain('Questions, each with')
    expect(shown).toContain('There is no command .lst. .help lists the commands.')
    expect(shown.match(/SQL ends with a semicolon/g)).toHaveLength(2)
  })

  it('keeps the lines for the arrow keys', async () => {
    const shown = await readShown(
      `SELECT 7 AS seven;${enter}`,
      `SELECT 8 AS eight;${enter}`,
      `${up}${up}${enter}`,
      ctrlD,
    )
    expect(shown.match(/seven\n +7\n/g)).toHaveLength(2)
    expect(shown.match(/eight\n +8\n/g)).toHaveLength(1)
  })

  it('drops the line or the statement at Ctrl-C, and goes on', async () => {
    const shown = await readShown(`SELECT 1,${enter}`, `2 and more${ctrlC}`, `SELECT 9 AS nine;${enter}`, ctrlD)
    expect(shown).toMatch(/2 and more\^C\n ?feedback> SELECT 9 AS nine;\nnine\n +9\nfeedback> /)
  })

  it.each(['SELECT count(*) FROM range(100000000000), range(1000);', 'SELECT range FROM range(100000000000);'])(
    'ends a query at Ctrl-C, and goes on: %s',
    async (sql) => {
      const shown = await readShown(`${sql}${enter}`, { now: ctrlC }, `SELECT 9 AS nine;${enter}`, ctrlD)
      expect(shown).toMatch(/The query was stopped\.\nfeedback> SELECT 9 AS nine;\nnine\n +9\nfeedback> /)
      expect(shown).not.toContain('more rows')
    },
  )

  it('shows the first rows of many, and how many more there are', async () => {
    const shown = await readShown(`FROM range(120);${enter}`, ctrlD)
    expect(shown.match(/^ *\d+$/gm)).toHaveLength(50)
    expect(shown).toContain('70 more rows; --limit N shows more, --json all.')
    const { shown: limited } = await type([`FROM range(120);${enter}`, ctrlD], '--limit', '100')
    expect(limited().match(/^ *\d+$/gm)).toHaveLength(100)
  })

  it('leaves the file to others between two queries', async () => {
    const shown = await readShown(`SELECT 1 AS a;${enter}`, ctrlD)
    expect(shown).toContain('feedback> ')
    const writer = await openDatabase(db)()
    expect(writer._tag).toBe('Right')
    if (E.isRight(writer)) writer.right.close()
  })
})

it.skipIf(spawnSync('script', ['--version']).status !== 0)('a shell on a real terminal', async () => {
  const command = `'${process.execPath}' '${programPath('feedback')}' query --db '${db}'`
  const terminal = spawn('script', ['-qec', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'ignore'] })
  onTestFinished(() => void terminal.kill('SIGKILL'))
  const keys = ['SELECT 41 + 1 AS answer;\r', 'SELECT nothing;\r', 'left\u0003', '\u0004']
  let shown = ''
  let from = 0
  terminal.stdout.on('data', (chunk: Buffer) => {
    shown += chunk
    // After the prompt, the terminal is sent the position of the cursor.
    if (!/feedback> .{0,8}$/.test(shown.slice(from))) return
    from = shown.length
    terminal.stdin.write(keys.shift() ?? '')
  })
  expect(await new Promise((resolve) => terminal.on('close', resolve))).toBe(0)
  expect(shown).toMatch(/answer\r\n +42\r\n/)
  expect(shown).toContain('There is no column nothing.')
  expect(shown).toContain('left^C')
})
