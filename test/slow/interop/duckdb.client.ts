import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Sandbox, startSandbox } from '../../../connector/sandbox/start'
import { newTempPath, writeTempFile } from '../../support/files'
import { runProgram } from '../../support/program'
import { sandboxConfig } from '../../support/sandbox'
import { pythonProgram, runShellOrThrow } from './shell'

const versions = ['1.4', '1.5', '2.0'] as const
const newest = '2.0'

/** What a script of Python prints as JSON, with DuckDB of that version. */
const ask = async (version: (typeof versions)[number], script: string, ...args: ReadonlyArray<string>) => {
  const python = pythonProgram(`duckdb-${version}`, 'python')
  return JSON.parse(await runShellOrThrow(python, ['-c', `import duckdb, json, sys\n${script}`, ...args], { cwd: '.' }))
}

const feedback = async (...args: ReadonlyArray<string>): Promise<string> => {
  const { status, stdout, stderr } = await runProgram('feedback', args)
  expect(status, stderr).toBe(0)
  return stdout
}

const isInstalled = versions.every((version) => existsSync(pythonProgram(`duckdb-${version}`, 'python')))

describe.skipIf(!isInstalled)("Python's readers of our files", () => {
  let sandbox: Sandbox
  let db: string

  beforeAll(async () => {
    sandbox = await startSandbox({ reviews: 500 })
    db = newTempPath('duckdb')
    await feedback('sync', '--config', writeTempFile(sandboxConfig(sandbox)), '--db', db, '--history')
    return () => sandbox.close()
  })

  it.each(versions)('DuckDB %s opens a file: its tables, JSON columns and every view', async (version) => {
    const script = `
db = duckdb.connect(sys.argv[1], read_only=True)
rows = lambda sql: db.execute(sql).fetchall()
views = [name for name, in rows("SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL")]
counts = {name: rows(f'SELECT count(*) FROM "{name}"')[0][0] for name in ['reviews'] + views}
print(json.dumps([duckdb.__version__, counts, rows('SELECT count(DISTINCT location.name) FROM reviews')[0][0]]))`
    const [found, counts, locations] = await ask(version, script, db)
    expect(found).toMatch(new RegExp(`^${version}`))
    expect(counts).toMatchObject({ reviews: 500, reviews_current: 500, reviews_versions: 500, review_facts: 500 })
    expect(locations).toBeGreaterThan(1)
  })

  it.each(versions)('what DuckDB %s has written into a file is read, and the next run goes on', async (version) => {
    const script = `
db = duckdb.connect(sys.argv[1])
db.execute('CREATE OR REPLACE TABLE mine AS SELECT id FROM reviews LIMIT 7; CHECKPOINT')
db.execute('DELETE FROM mine WHERE id IN (SELECT min(id) FROM mine)')
print('0', flush=True)
import os; os._exit(0)`
    await ask(version, script, db)
    expect(await feedback('query', '--db', db, '--json', 'SELECT count(*) AS n FROM mine')).toBe('{"n":6}\n')
    await feedback('sync', '--config', writeTempFile(sandboxConfig(sandbox)), '--db', db)
    await feedback('verify', '--db', db)
  })

  it('the SQL in the message about a file of a newer DuckDB makes one that is read', async () => {
    const [newer, copy] = [newTempPath('duckdb'), newTempPath('duckdb')]
    const run = "db = duckdb.connect(); db.execute(sys.argv[1]); print('0')"
    await ask(newest, run, `ATTACH '${db}' AS old (READ_ONLY); ATTACH '${newer}' AS new; COPY FROM DATABASE old TO new`)
    const { status, stderr } = await runProgram('feedback', ['query', '--db', newer, 'FROM reviews'])
    expect([status, stderr]).toEqual([78, expect.stringContaining('newer DuckDB')])
    const [sql = ''] = /ATTACH .*;/.exec(stderr) ?? []
    await ask(newest, run, sql.replace("'copy.duckdb'", `'${copy}'`))
    expect(await feedback('query', '--db', copy, '--json', 'SELECT count(*) AS n FROM reviews_current')).toBe(
      '{"n":500}\n',
    )
    await feedback('verify', '--db', copy)
  })

  it('pandas and pyarrow read an export, its JSON as text that they compare and write as CSV', async () => {
    const folder = newTempPath('parquet')
    await feedback('snapshot', '--db', db, '--export', 'parquet', folder)
    const script = `
import io, pandas, pyarrow.compute, pyarrow.csv, pyarrow.parquet
table = pyarrow.parquet.read_table(sys.argv[1])
pyarrow.csv.write_csv(table, io.BytesIO())
same = pyarrow.compute.equal(table.column('location'), table.column('location'))
frame = pandas.read_parquet(sys.argv[1])
print(json.dumps([len(same), str(table.schema.field('location').type), json.loads(frame.location.dropna().iloc[0])]))`
    const path = join(folder, 'reviews', 'data_0.parquet')
    expect(await ask(newest, script, path)).toEqual([
      500,
      'string',
      expect.objectContaining({ id: expect.any(Number) }),
    ])
  })
})
