import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import * as E from 'fp-ts/Either'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Command } from '../../connector/cdk/program/command'
import { personConventions } from '../../connector/cdk/program/exit'
import { progressDelay } from '../../connector/cdk/program/progress'
import { compactCommand } from '../../connector/cli/compact'
import { diffCommand } from '../../connector/cli/diff'
import { queryCommand } from '../../connector/cli/query'
import { replayCommand } from '../../connector/cli/replay'
import { reportCommand } from '../../connector/cli/report'
import { snapshotCommand } from '../../connector/cli/snapshot'
import { stateCommand } from '../../connector/cli/state'
import { statusCommand } from '../../connector/cli/status'
import { verifyCommand } from '../../connector/cli/verify'
import { openDatabase } from '../../connector/snapshot/store/database'
import { runCommand } from '../support/run-command'

const folder = mkdtempSync(join(tmpdir(), 'verbs-'))
afterAll(() => rmSync(folder, { recursive: true }))
const path = (name: string) => join(folder, name)
const written = (name: string, content: string) => {
  writeFileSync(path(name), content)
  return path(name)
}

const catalog = written(
  'catalog.json',
  JSON.stringify({
    streams: [
      {
        stream: {
          name: 'reviews',
          json_schema: {
            properties: {
              id: { type: 'integer' },
              modifiedTime: { type: 'string', format: 'date-time' },
              rating: { type: ['null', 'number'] },
            },
          },
        },
        sync_mode: 'incremental',
        destination_sync_mode: 'append_dedup',
        primary_key: [['id']],
        cursor_field: ['modifiedTime'],
      },
    ],
  }),
)
const record = (id: string, day: string, rating = 4) =>
  `{"type":"RECORD","record":{"stream":"reviews","data":{"id":${id},` +
  `"modifiedTime":"2026-01-${day}T00:00:00.000Z","rating":${rating}},"emitted_at":1}}`
const stateLine = (day: string, count: number) =>
  '{"type":"STATE","state":{"type":"STREAM","stream":{"stream_descriptor":{"name":"reviews"},' +
  `"stream_state":{"modifiedTimeFrom":"2026-01-${day}T00:00:00.000Z","recent":[],"more":[9007199254740993]}},` +
  `"sourceStats":{"recordCount":${count}.0}}}`
const status = (value: string) =>
  '{"type":"TRACE","trace":{"type":"STREAM_STATUS","stream_status":{"stream_descriptor":{"name":"reviews"},' +
  `"status":"${value}"}}}`
const messages = [record('9007199254740993', '01'), record('2', '02', 5), stateLine('02', 2), status('COMPLETE')].join(
  '\n',
)

const db = path('reviews.duckdb')
beforeAll(async () => {
  const outcome = await runCommand(snapshotCommand, ['--db', db, '--catalog', catalog], messages)
  expect(outcome).toMatchObject({ status: 0, stdout: '' })
  expect(outcome.stderr).toMatch(/reviews +complete +2/)
})

describe('feedback snapshot', () => {
  it('prints the outcome as JSON, and exits with 1 if a stream is not complete', async () => {
    const outcome = await runCommand(
      snapshotCommand,
      ['--db', path('cut.duckdb'), '--catalog', catalog, '--json'],
      messages.split('\n').slice(0, 3).join('\n'),
    )
    expect(outcome.status).toBe(1)
    expect(JSON.parse(outcome.stdout)).toMatchObject([{ stream: 'reviews', status: 'incomplete', records: 2 }])
  })

  it.each(['', 'Traceback (most recent call last):\n'])('fails if the input holds no messages: %j', async (text) => {
    const outcome = await runCommand(snapshotCommand, ['--db', path('nothing.duckdb')], text)
    expect(outcome).toMatchObject({ status: 1, stderr: expect.stringContaining('stdin holds no messages') })
  })

  it('does not change a file that is not a snapshot', async () => {
    const text = written('notes.txt', 'some notes, not a database')
    expect((await runCommand(snapshotCommand, ['--db', text], messages)).stderr).toContain('is not a DuckDB file')
    expect(readFileSync(text, 'utf8')).toBe('some notes, not a database')

    const other = path('other.duckdb')
    const opened = await openDatabase(other)()
    if (E.isLeft(opened)) throw new Error(opened.left.message)
    await opened.right.run('CREATE TABLE mine (a INTEGER)')
    opened.right.close()
    const outcome = await runCommand(snapshotCommand, ['--db', other], messages)
    expect(outcome).toMatchObject({ status: 1 })
    expect(outcome.stderr).toContain('not a snapshot: it holds the tables mine')
  })

  it.each([
    ['keep.json', '{"a":1}'],
    ['g.csv', 'a,b\n1,2\n'],
    ['e.parquet', 'PAR1 and more than twelve bytes'],
  ])('refuses %s, which DuckDB would read as a table, before it is changed', async (name, content) => {
    const file = written(name, content)
    chmodSync(file, 0o644)
    for (const [command, args] of [
      [snapshotCommand, [catalog]],
      [replayCommand, [catalog]],
      [queryCommand, ['SELECT 1']],
    ] as const) {
      const outcome = await runCommand(command, [...args, '--db', file], messages)
      expect(outcome.stderr).toContain(`${file} exists and is not a DuckDB file. It was not changed`)
      expect(outcome.status).not.toBe(0)
    }
    expect([readFileSync(file, 'utf8'), statSync(file).mode & 0o777]).toEqual([content, 0o644])
  })

  it('writes a new file with any name, and replaces an empty one', async () => {
    for (const file of [path('new.csv'), written('empty.csv', ''), written('empty.duckdb', '')]) {
      expect(await runCommand(snapshotCommand, ['--db', file, '--catalog', catalog], messages)).toMatchObject({
        status: 0,
      })
      expect(
        (await runCommand(queryCommand, ['--db', file, 'SELECT count(*) AS n FROM reviews', '--format', 'json']))
          .stdout,
      ).toContain('2')
    }
  })

  it('does not show an address that is given as a path', async () => {
    for (const address of [
      'postgres:host=db password=hunter2xyz',
      'postgresql://u:hunter2xyz@db/x',
      'host=db password=hunter2xyz',
    ])
      for (const command of [snapshotCommand, queryCommand]) {
        const { status, stderr } = await runCommand(command, ['SELECT 1', '--db', address], messages)
        expect([status, stderr]).toEqual([1, expect.stringContaining('An address was given as the path')])
        expect(stderr).not.toContain('hunter2xyz')
      }
  })

  it('refuses a lake that is given as --db where --lake takes it, without showing its password', async () => {
    for (const [command, ...args] of [[queryCommand, 'SELECT 1'], [verifyCommand], [statusCommand]] as const) {
      const { status, stderr } = await runCommand(command, [
        ...args,
        '--db',
        'ducklake:postgres:dbname=x password=hunter2xyz',
      ])
      expect([status, stderr]).toEqual([2, expect.stringContaining('give a lake with --lake')])
      expect(stderr).not.toContain('hunter2xyz')
    }
  })

  it('says which folder of an export cannot be written', async () => {
    for (const target of [catalog, join(catalog, 'folder')])
      expect((await runCommand(snapshotCommand, ['--db', db, '--export', 'parquet', target])).stderr).toContain(
        `${target} is not a folder, or leads through a file`,
      )
  })

  it('refuses a catalogue that is not a DuckDB file, and storage that a lake cannot use', async () => {
    const json = written('catalogue.json', '{"a":1}')
    const open = async (...args: string[]) => (await runCommand(stateCommand, ['export', ...args])).stderr
    expect(await open('--lake', `ducklake:${json}`)).toContain('the file is not the catalogue of a lake')
    for (const data of ['azure://a/b', 'ftp://a/b', 's3:/bucket'])
      expect(await open('--lake', `ducklake:${path('new.ducklake')}`, '--data', data)).toContain(
        `--data ${data} is neither a folder`,
      )
  })

  it('takes no empty path', async () => {
    for (const command of [snapshotCommand, replayCommand, queryCommand, compactCommand])
      expect(await runCommand(command, ['--db', ''], messages)).toMatchObject({
        status: 2,
        stderr: expect.stringContaining(`feedback ${command.name}: --db is empty.`),
      })
    expect((await runCommand(queryCommand, ['SELECT 1', '--lake', ''])).stderr).toContain('--lake is empty')
  })

  it('refuses a snapshot in a newer format', async () => {
    const newer = path('newer.duckdb')
    await runCommand(snapshotCommand, ['--db', newer, '--catalog', catalog], messages)
    const opened = await openDatabase(newer)()
    if (E.isLeft(opened)) throw new Error(opened.left.message)
    await opened.right.run(`UPDATE _meta SET value = '99' WHERE name = 'format'`)
    opened.right.close()
    expect((await runCommand(verifyCommand, ['--db', newer])).stderr).toContain('format 99; this version supports')
  })

  it('says what is wrong with the catalog', async () => {
    const wrong = written('wrong.json', '{"streams": [{}]}')
    expect(
      (await runCommand(snapshotCommand, ['--db', path('x.duckdb'), '--catalog', wrong], messages)).stderr,
    ).toMatch(/wrong\.json.*streams\.0\.stream/)
    expect(existsSync(path('x.duckdb'))).toBe(false)
  })
})

describe('feedback query', () => {
  it('prints a table with integers in full', async () => {
    expect(await runCommand(queryCommand, ['--db', db, 'SELECT id, rating FROM reviews ORDER BY id'])).toEqual({
      status: 0,
      stdout: ['              id  rating', '               2       5', '9007199254740993       4', ''].join('\n'),
      stderr: '',
    })
  })

  it('prints JSON lines with integers in full', async () => {
    const { stdout } = await runCommand(queryCommand, [
      '--db',
      db,
      '--json',
      `SELECT id, [id] AS ids, {'t': modifiedTime} AS o, NULL AS n FROM reviews ORDER BY id DESC LIMIT 1`,
    ])
    expect(stdout).toBe(
      '{"id":9007199254740993,"ids":[9007199254740993],"o":{"t":"2026-01-01T00:00:00.000Z"},"n":null}\n',
    )
  })

  it('prints nested values as JSON and every other value as JSON can express it', async () => {
    const values: ReadonlyArray<readonly [sql: string, json: string]> = [
      [`'{"id": 9007199254740993,\n"a": [1.50, "é"]}'::JSON`, '{"id": 9007199254740993, "a": [1.50, "é"]}'],
      [`['{"a":1}'::JSON, 'null'::JSON]`, '[{"a":1},null]'],
      [`{'j': '[1]'::JSON, 't': 'a"b'}`, '{"j":[1],"t":"a\\"b"}'],
      [`MAP {'k': '{}'::JSON}`, '{"k":{}}'],
      [`DATE '2026-01-31'`, '"2026-01-31"'],
      [`TIMESTAMPTZ '2026-01-31 01:02:03.000004+02'`, '"2026-01-30T23:02:03.000004Z"'],
      [`TIMESTAMP '1969-12-31 23:59:59.5'`, '"1969-12-31T23:59:59.500"'],
      [`TIMESTAMPTZ 'infinity'`, '"infinity"'],
      [`TIME '01:02:03'`, '"01:02:03"'],
      ['12.10::DECIMAL(20, 2)', '12.10'],
      ['170141183460469231731687303715884105727::HUGEINT', '170141183460469231731687303715884105727'],
      [`'NaN'::DOUBLE`, 'null'],
      ['0.1::DOUBLE', '0.1'],
      [`'\\xAB'::BLOB`, '"ab"'],
      [`'00000000-0000-0000-0000-00000000000a'::UUID`, '"00000000-0000-0000-0000-00000000000a"'],
      [`INTERVAL 1 DAY`, '"1 day"'],
    ]
    const sql = `SELECT ${values.map(([value], i) => `${value} AS c${i}`).join(', ')}`
    const { stdout } = await runCommand(queryCommand, ['--db', db, '--json', sql])
    expect(stdout).toBe(`{${values.map(([, json], i) => `"c${i}":${json}`).join(',')}}\n`)
  })

  it('keeps columns of the same name apart', async () => {
    const { stdout } = await runCommand(queryCommand, ['--db', db, '--json', 'SELECT 1 AS a, 2 AS a'])
    expect(Object.values(JSON.parse(stdout))).toEqual([1, 2])
  })

  it('cannot change the snapshot and names what is wrong', async () => {
    const outcome = await runCommand(queryCommand, ['--db', db, 'DELETE FROM reviews'])
    expect(outcome).toMatchObject({ status: 1, stderr: expect.stringContaining('A query cannot change anything') })
    expect((await runCommand(queryCommand, ['--db', db, 'SELECT nope FROM reviews'])).stderr).toContain('nope')
    expect((await runCommand(queryCommand, ['--db', path('none.duckdb'), 'SELECT 1'])).stderr).toContain('no such file')
    expect(existsSync(path('none.duckdb'))).toBe(false)
  })
})

describe('SQL of feedback query', () => {
  it.each([
    ["COPY reviews TO 'OUT'", 'OUT'],
    ["COPY reviews TO 'DB'", 'DB'],
    ["COPY (SELECT 1) TO 'OUT' (FORMAT parquet)", 'OUT'],
    ["EXPORT DATABASE 'OUT'", 'OUT'],
    ["ATTACH 'OUT' AS other", 'OUT'],
    ["SELECT * FROM read_text('CATALOG')", ''],
    ["FROM 'CATALOG'", ''],
    ["SELECT * FROM glob('/*')", ''],
    ["SELECT 1; COPY reviews TO 'OUT'", 'OUT'],
    ['SET enable_external_access = true', ''],
    ["SET enable_external_access = true; COPY reviews TO 'OUT'", 'OUT'],
    ['RESET lock_configuration', ''],
    ["SET temp_directory = 'OUT'", 'OUT'],
    ["LOAD 'OUT'", 'OUT'],
  ])('reaches no file and no setting: %s', async (sql, touched) => {
    const [out, before] = [path('out.any'), readFileSync(db)]
    const text = sql.replaceAll('OUT', out).replaceAll('DB', db).replaceAll('CATALOG', catalog)
    for (const more of [[], ['--json']])
      expect(await runCommand(queryCommand, ['--db', db, ...more, text])).toMatchObject({ status: 1, stdout: '' })
    expect([touched, existsSync(out)]).toEqual([touched, false])
    expect(readFileSync(db).equals(before)).toBe(true)
  })

  it('may still sort more than fits into memory, and use temporary tables', async () => {
    const sql = 'SELECT count(*) AS n FROM (SELECT range AS i FROM range(1000) ORDER BY md5(range::VARCHAR))'
    expect((await runCommand(queryCommand, ['--db', db, '--json', sql])).stdout).toBe('{"n":1000}\n')
  })

  const terminal = `
    SELECT 'a' || chr(27) || '[2J' || chr(155) || '31m' || chr(7) || chr(8238) || 'z' AS "x${'\u001b'}]0;t"`
  it('prints no character that a terminal acts on', async () => {
    for (const more of [[], ['--json']]) {
      const { status, stdout } = await runCommand(queryCommand, ['--db', db, ...more, terminal])
      expect(status).toBe(0)
      expect([...stdout].filter((character) => /[^ -~\n]/.test(character))).toEqual([])
      if (more.length > 0) expect(Object.values(JSON.parse(stdout))).toEqual(['a\u001b[2J\u009b31m\u0007\u202ez'])
      else expect(stdout).toContain('a\\u001b[2J\\u009b31m\\u0007\\u202ez')
    }
    const { stderr } = await runCommand(queryCommand, ['--db', db, "SELECT CAST('a' || chr(27) || '[2J' AS INTEGER)"])
    expect(stderr).toContain('\\u001b')
    expect(stderr).not.toContain('\u001b')
  })
})

describe('a file to write to', () => {
  const actions: ReadonlyArray<readonly [string, (out: string) => Promise<{ status: number; stderr: string }>]> = [
    ['report', (out) => runCommand(reportCommand, ['--db', db, '--out', out])],
    ['state export', (out) => runCommand(stateCommand, ['export', '--db', db, '--out', out])],
    ['state merge', (out) => runCommand(stateCommand, ['merge', written('s.json', stateLine('01', 1)), '--out', out])],
  ]
  const aliases = (): ReadonlyArray<string> => {
    for (const name of ['link', 'hard', 'folder', 'dangling']) rmSync(path(name), { force: true })
    symlinkSync(db, path('link'))
    linkSync(db, path('hard'))
    symlinkSync(folder, path('folder'))
    symlinkSync(`${db}.wal`, path('dangling'))
    return [
      db,
      relative(process.cwd(), db),
      `${folder}/./x/../reviews.duckdb`,
      path('link'),
      path('hard'),
      join(path('folder'), 'reviews.duckdb'),
    ]
  }

  it.each(actions)('is never the database: %s', async (name, run) => {
    const before = readFileSync(db)
    const besides = name === 'state merge' ? [] : [`${db}.wal`, path('dangling')]
    for (const out of [...aliases(), ...besides]) {
      const { status, stderr } = await run(out)
      expect([out, status]).toEqual([out, 1])
      expect(stderr).toContain('--out')
      expect(readFileSync(db).equals(before)).toBe(true)
      expect(existsSync(`${db}.wal`)).toBe(false)
    }
  })

  it('is not another database either', async () => {
    const other = path('other.duckdb')
    writeFileSync(other, readFileSync(db))
    expect((await runCommand(reportCommand, ['--db', db, '--out', other])).status).toBe(1)
    expect(readFileSync(other).equals(readFileSync(db))).toBe(true)
  })

  it.each(actions)('is readable to its owner only, an existing one too: %s', async (name, run) => {
    const out = written(`${name}.out`, 'old')
    chmodSync(out, 0o644)
    expect((await run(out)).status).toBe(0)
    expect(readFileSync(out, 'utf8')).not.toBe('old')
    expect(statSync(out).mode & 0o777).toBe(0o600)
    rmSync(out)
    symlinkSync(written('target.out', 'old'), out)
    expect((await run(out)).status).toBe(0)
    expect(lstatSync(out).isSymbolicLink()).toBe(true)
    expect([readFileSync(path('target.out'), 'utf8') === 'old', statSync(path('target.out')).mode & 0o777]).toEqual([
      false,
      0o600,
    ])
  })
})

describe('feedback verify', () => {
  it('passes a complete snapshot', async () => {
    const outcome = await runCommand(verifyCommand, ['--db', db])
    expect(outcome).toMatchObject({ status: 0, stderr: '' })
    expect(outcome.stdout).toContain('All checks passed.')
  })

  it('names what is wrong, as a table, as JSON, and with its SQL', async () => {
    const broken = path('broken.duckdb')
    await runCommand(
      snapshotCommand,
      ['--db', broken, '--catalog', catalog],
      [record('1', '01', 9), stateLine('01', 1), status('COMPLETE')].join('\n'),
    )
    const told = await runCommand(verifyCommand, ['--db', broken])
    expect(told.status).toBe(1)
    expect(told.stdout).toContain('reviews: id 1 has rating 9.0')
    expect(told.stdout).toMatch(/1 of \d+ checks failed\./)
    const { stdout, status: failed } = await runCommand(verifyCommand, ['--db', broken, '--json'])
    expect(failed).toBe(1)
    expect(JSON.parse(stdout).filter(({ ok }: { ok: boolean }) => !ok)).toMatchObject([
      { name: 'ratings', failures: 1 },
    ])
    expect((await runCommand(verifyCommand, ['--db', broken, '--explain'])).stdout).toContain(
      'NOT "rating" BETWEEN 0 AND 5',
    )
  })
})

describe('progress', () => {
  const readSteps = async (command: Command, args: ReadonlyArray<string>) => {
    const lines: Array<readonly [line: string, after: number | undefined]> = []
    await runCommand(command, args, { printProgress: (line, after) => lines.push([line, after]) })
    expect(lines.at(-1)?.[0]).toBe('')
    const steps = lines.slice(0, -1)
    expect(steps.filter(([, after]) => after !== progressDelay)).toEqual([])
    return steps.map(([line]) => line)
  }

  it('of verify numbers the checks', async () => {
    const steps = await readSteps(verifyCommand, ['--db', db])
    expect(steps[3]).toBe(`Check 4 of ${steps.length}: column types`)
    expect(steps.length).toBeGreaterThan(20)
  })

  it('of diff numbers the streams', async () => {
    expect(await readSteps(diffCommand, [db, db])).toEqual(['Stream 1 of 1: reviews'])
  })

  it('of report names the sections, and the checks in the last', async () => {
    const steps = await readSteps(reportCommand, ['--db', db, '--out', path('progress.html')])
    expect(steps[0]).toBe('Reading reviews')
    expect(steps.at(-1)).toMatch(/^Reading health of the data\. Check (\d+) of \1: /)
  })
})

describe('the exit status', () => {
  it.each([
    ['78 where verify cannot answer', verifyCommand, ['--db', path('none.duckdb')], 78],
    ['78 where diff cannot answer', diffCommand, [db, path('none.duckdb')], 78],
    ['2 where diff lacks a file', diffCommand, [db], 2],
    ['0 where there is no difference', diffCommand, [db, db], 0],
    ['2 where an option is missing', queryCommand, ['SELECT 1'], 2],
    ['2 where an option is unknown', queryCommand, ['--db', db, '--yes', 'SELECT 1'], 2],
    ['78 where the SQL is wrong', queryCommand, ['--db', db, 'SELEC 1'], 78],
  ] as const)('is %s', async (_what, verb, args, status) => {
    expect(await runCommand(verb, args, { fail: personConventions.reportFailure })).toMatchObject({ status })
  })
})

describe('feedback state', () => {
  it('exports states that it can import again unchanged', async () => {
    const out = path('state.json')
    expect(await runCommand(stateCommand, ['export', '--db', db, '--out', out])).toMatchObject({
      status: 0,
      stdout: '',
    })
    expect(readFileSync(out, 'utf8')).toBe(
      '[\n{"type":"STREAM","stream":{"stream_descriptor":{"name":"reviews"},' +
        '"stream_state":{"modifiedTimeFrom":"2026-01-02T00:00:00.000Z","recent":[],' +
        '"more":[9007199254740993]}}}\n]\n',
    )
    const earlier = written('earlier.json', stateLine('01', 1))
    expect((await runCommand(stateCommand, ['import', '--db', db, '--state', earlier])).status).toBe(0)
    expect((await runCommand(stateCommand, ['export', '--db', db])).stdout).toContain('2026-01-01')
    await runCommand(stateCommand, ['import', '--db', db, '--state', out])
    expect((await runCommand(verifyCommand, ['--db', db])).status).toBe(0)
  })

  it('names the action or option that is missing', async () => {
    expect((await runCommand(stateCommand, ['--db', db])).stderr).toContain('needs one of export, import')
    expect((await runCommand(stateCommand, ['toString', '--db', db])).stderr).toContain('needs one of export, import')
    expect((await runCommand(stateCommand, ['import', '--db', db])).stderr).toContain('--state is missing')
  })
})
