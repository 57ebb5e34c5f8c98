import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import * as E from 'fp-ts/Either'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { runOrThrow } from '../../connector/cdk'
import { openLake } from '../../connector/lake/open'
import type { LakeShare } from '../../connector/lake/place'
import { openLakeStates } from '../../connector/lake/shares'
import { isIdentical, type StreamDifference } from '../../connector/snapshot/diff'
import { createSnapshotWriter, type SnapshotWriter } from '../../connector/snapshot/load/writer'
import { openDatabase, quoteIdentifier, quoteLiteral, type Snapshot } from '../../connector/snapshot/store/database'
import { closeSnapshot } from '../../connector/snapshot/store/file'
import { drawSeed } from '../support/draws'
import { newTempPath, writeTempFile } from '../support/files'
import { createLakeWriter, drawnStarts, drawPages, readDrawnRows } from '../support/lake'
import { programPath, type RunningProgram, runProgram, startProgram } from '../support/program'
import { random } from '../support/random'
import { freePort } from '../support/redis'
import {
  emittedAt,
  openMemorySnapshot,
  recordsMessage,
  reviewJson,
  reviewsInfo,
  startedMessage,
} from '../support/snapshot-messages'
import { comparedTables, compareWithTruth, tablesOfReviews } from '../support/truth'
import { type Postgres, startPostgres } from './dbt/postgres'

/** What the largest test reads, how many of its processes are killed, and how many there are. */
const [reviewCount, killCount] = [Number(process.env.LAKE_REVIEWS || 30_000), Number(process.env.LAKE_KILLS || 20)]
const shareCount = Number(process.env.LAKE_WRITERS || 8)
const seed = drawSeed
const minutes = 60_000

const lakeSecrets = { key: 'lake-key', secret: 'lake-s3cret' }

let postgres: Postgres
let storage: ChildProcess
let env: Readonly<Record<string, string>>

beforeAll(async () => {
  postgres = await startPostgres()
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const folder = newTempPath('objects')
  mkdirSync(folder)
  const properties = newTempPath('properties')
  const settings = [
    `s3proxy.endpoint=${url}`,
    's3proxy.authorization=none',
    'jclouds.provider=filesystem-nio2',
    `jclouds.filesystem.basedir=${folder}`,
  ]
  writeFileSync(properties, settings.map((line) => `${line}\n`).join(''))
  // It begins in half the time of the processor so.
  const java = ['-Xmx1g', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-cp', '.venv/s3proxy/*']
  storage = spawn('java', [...java, 'org.gaul.s3proxy.Main', '--properties', properties], { stdio: 'ignore' })
  env = {
    ...postgres.env,
    AWS_ACCESS_KEY_ID: lakeSecrets.key,
    AWS_SECRET_ACCESS_KEY: lakeSecrets.secret,
    AWS_ENDPOINT_URL: url,
  }
  // Clients of PostgreSQL read the environment of their process, which the tests' own are too.
  Object.assign(process.env, env)
  for (let tries = 0; ; tries += 1)
    try {
      await fetch(`${url}/lake`, { method: 'PUT' })
      break
    } catch (error) {
      if (tries > 400) throw error
      await sleep(200)
    }
}, 2 * minutes)

afterAll(async () => {
  storage?.kill('SIGKILL')
  await postgres?.stop()
})

type Service = {
  readonly url: string
  readonly token: string
  readonly data: string
  readonly stop: () => Promise<void>
}

/**
 * A sandbox in a separate process, so that its work is not counted as a writer's. `before`: the service whose data and
 * address it takes over.
 */
const startService = async (reviews: number, before?: Service): Promise<Service> => {
  const data = before?.data ?? newTempPath('duckdb')
  const running = spawn(process.execPath, [
    '--min-semi-space-size=16',
    programPath('feedback'),
    'sandbox',
    '--reviews',
    `${reviews}`,
    '--db',
    data,
    ...(before === undefined ? [] : ['--port', new URL(before.url).port]),
  ])
  onTestFinished(() => void running.kill('SIGKILL'))
  const line = await new Promise<string>((resolve) => running.stdout.once('data', (text: Buffer) => resolve(`${text}`)))
  const { url, access_token } = JSON.parse(line)
  const stop = () =>
    new Promise<void>((resolve) => {
      running.once('exit', () => resolve())
      running.kill('SIGTERM')
    })
  return { url, token: access_token, data, stop }
}

const writeConfig = ({ url, token }: Service, index?: number): string =>
  writeTempFile({
    base_url: url,
    credentials: { auth_type: 'access_token', access_token: token },
    start_date: '2020-01-01',
    page_size: 1000,
    ...(index === undefined ? {} : { partition: { index, count: shareCount } }),
  })

/** The storage, but for requests by these methods, which it refuses. */
const startDenyingStorage = async (refused: RegExp): Promise<string> => {
  const server = createServer((request, response) => {
    if (refused.test(request.method ?? '')) {
      request.resume()
      response.writeHead(403, { 'content-type': 'application/xml' })
      response.end('<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>')
      return
    }
    const { method, headers } = request
    const forwarded = httpRequest(`${env.AWS_ENDPOINT_URL}${request.url}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(response)
    })
    request.pipe(forwarded)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const findExtension = (name: string): string => {
  const file = `${name}.duckdb_extension`
  const found = spawnSync('find', [process.env.VIRTUAL_ENV ?? '', '-name', file], { encoding: 'utf8' })
  return found.stdout.trim().split('\n')[0] ?? ''
}

/** A new lake for each test. */
const newLake = (name: string): ReadonlyArray<string> => {
  postgres.ask(`CREATE DATABASE ${name}`)
  return ['--lake', `ducklake:postgres:dbname=${name}`, '--data', `s3://lake/${name}`]
}
const placeOf = (lake: ReadonlyArray<string>): ReadonlyArray<string> => lake.slice(0, 2)

const feedback = (...args: ReadonlyArray<string>) => runProgram('feedback', args, { env })

/** Runs a command that must succeed. If it fails, the test shows its output. */
const feedbackWell = async (...args: ReadonlyArray<string>): Promise<void> => {
  const { status, stdout, stderr } = await feedback(...args)
  expect(status, `${stdout}\n${stderr}`).toBe(0)
}

/** The rows of a lake in a DuckDB file, which can be compared with the service. */
const copyToFile = async (lake: ReadonlyArray<string>): Promise<string> => {
  const opened = await openLake(lake[1] ?? '', 'read', { lake: { env: process.env } })()
  if (E.isLeft(opened)) throw new Error(opened.left.message)
  const { db } = opened.right
  const path = newTempPath('duckdb')
  await db.run(`ATTACH ${quoteLiteral(path)} AS copy`)
  for (const { name } of await db.query('SELECT stream AS name FROM _streams'))
    await db.run(`CREATE TABLE copy.${quoteIdentifier(String(name))} AS FROM ${quoteIdentifier(String(name))}`)
  await db.run('DETACH copy')
  db.close()
  return path
}

/** How many Parquet files of a lake hold these words, and how many files of its catalogue's database. */
const findWords = async (
  name: string,
  words: string,
): Promise<{ readonly files: number; readonly catalogue: number }> => {
  const opened = await openLake(`ducklake:postgres:dbname=${name}`, 'read', { lake: { env: process.env } })()
  if (E.isLeft(opened)) throw new Error(opened.left.message)
  const { db } = opened.right
  let files = 0
  for (const { file } of await db.query(`SELECT file FROM glob('s3://lake/${name}/**/*.parquet')`)) {
    const count = await db.scalar(`
      SELECT count(*) FROM read_parquet(${quoteLiteral(String(file))}) AS t
      WHERE contains(t::VARCHAR, ${quoteLiteral(words)})`)
    if (Number(count) > 0) files += 1
  }
  db.close()
  postgres.ask('CHECKPOINT')
  const folder = postgres.ask('SHOW data_directory').trim()
  const database = postgres.ask(`SELECT oid FROM pg_database WHERE datname = '${name}'`).trim()
  const found = spawnSync('grep', ['-rlaF', words, join(folder, 'base', database)], { encoding: 'utf8' })
  return { files, catalogue: found.stdout.split('\n').filter((line) => line !== '').length }
}

const storageUrl = (path: string): string => `${env.AWS_ENDPOINT_URL}/lake/${path}`

const listObjects = async (prefix: string): Promise<ReadonlyArray<string>> =>
  [...(await (await fetch(storageUrl(`?list-type=2&prefix=${prefix}`))).text()).matchAll(/<Key>(.*?)<\/Key>/g)].map(
    ([, key]) => key ?? '',
  )

/** A number that the catalogue of a lake answers; 0 as long as it has no such table. */
const askCatalogue = (name: string, table: string, sql: string): number => {
  const question = `SELECT to_regclass('${table}') IS NOT NULL AS known \\gset\n\\if :known\n${sql};\n\\endif`
  return Number(postgres.ask(`\\c ${name}\n${question}`))
}

/** Resolves once the catalogue has the tables of a lake and this many versions. */
const waitForVersions = async (name: string, count: number): Promise<void> => {
  while (askCatalogue(name, 'ducklake_snapshot', 'SELECT count(*) FROM ducklake_snapshot') < count) await sleep(50)
}

/** How many reviews the writers of a lake have committed. */
const countCommitted = (name: string): number =>
  askCatalogue(
    name,
    'ducklake_data_file',
    `SELECT sum(record_count)
     FROM ducklake_data_file AS file JOIN ducklake_table USING (table_id)
     WHERE table_name = '_versions_reviews' AND file.end_snapshot IS NULL`,
  )

/** The version that a reader sees, and how many tables it has. */
const readCounts = async (
  name: string,
  version?: number,
): Promise<ReadonlyArray<{ readonly version: number; readonly tables: number }>> => {
  const { db } = await runOrThrow(
    openLake(`ducklake:postgres:dbname=${name}`, 'read', { lake: { env: process.env, version } }),
  )
  const rows = await db.query(`
    SELECT id::INTEGER AS version,
      (SELECT count(*)::INTEGER FROM duckdb_tables() WHERE database_name = 'lake') AS tables
    FROM ducklake_current_snapshot('lake')`)
  db.close()
  return rows.map(({ version, tables }) => ({ version: Number(version), tables: Number(tables) }))
}

const newestVersion = async (name: string): Promise<string> => `${(await readCounts(name))[0]?.version}`

const writeParquet = async (sql: string): Promise<Buffer> => {
  const path = newTempPath('parquet')
  const db = await runOrThrow(openDatabase(':memory:'))
  await db.run(`COPY (${sql}) TO ${quoteLiteral(path)} (FORMAT parquet)`)
  db.close()
  return readFileSync(path)
}

/** The Parquet files in the folder of a lake that its catalogue does not know. */
const listOrphans = async (name: string): Promise<ReadonlyArray<string>> => {
  const known = postgres.ask(`\\c ${name}
    SELECT path FROM ducklake_data_file
    UNION SELECT path FROM ducklake_delete_file
    UNION SELECT path FROM ducklake_files_scheduled_for_deletion`)
  const files = (await listObjects(`${name}/`)).filter((key) => key.endsWith('.parquet'))
  return files.filter((key) => !known.includes(key.split('/').at(-1) ?? ''))
}

const holdWords = async (keys: ReadonlyArray<string>, words: string): Promise<boolean> => {
  const db = await runOrThrow(openLake('ducklake:postgres:dbname=forgetful', 'read', { lake: { env: process.env } }))
  const files = keys.map((key) => quoteLiteral(`s3://lake/${key}`)).join(', ')
  const found = await db.db.scalar(`
    SELECT count(*) FROM read_parquet([${files}], union_by_name => true) AS t
    WHERE contains(t::VARCHAR, ${quoteLiteral(words)})`)
  db.db.close()
  return Number(found) > 0
}

/** Kills a writer once it has written rows of contents that are not committed. */
const killAsItCommits = async (name: string, args: ReadonlyArray<string>): Promise<void> => {
  const folder = `${name}/main/_versions_review_contents/`
  for (let tries = 0; tries < 10; tries += 1) {
    const before = (await listObjects(folder)).length
    const running = startProgram('feedback', args, { env })
    while ((await listObjects(folder)).length === before) await sleep(5)
    running.kill('SIGKILL')
    await running.ended
    if ((await listOrphans(name)).some((key) => key.startsWith(folder))) return
  }
  throw new Error('Each of ten commits was over before the kill.')
}

/**
 * What does not depend on which of two writers was first that bring other rows of one version: that is a matter of
 * chance.
 */
const omitTies = (rows: Readonly<Record<string, unknown>>) => {
  const pick = (table: string, ...names: ReadonlyArray<string>) =>
    (rows[table] as ReadonlyArray<Readonly<Record<string, unknown>>>).map((row) => names.map((name) => row[name]))
  return { ...rows, reviews: pick('reviews', 'id', 'modifiedTime', 'text'), locations: pick('locations', 'id', 'seen') }
}

/** What queries that read all rows cost, of views and of the tables below them. */
const timeViews = async (name: string) => {
  const { db } = await runOrThrow(openLake(`ducklake:postgres:dbname=${name}`, 'read', { lake: { env: process.env } }))
  const time = async (table: string, column: string): Promise<string> => {
    const sql = `SELECT count(*), max(length(${column}::VARCHAR)) FROM ${table}`
    // What object storage serves for the first time is kept.
    await db.query(sql)
    const begun = performance.now()
    await db.query(sql)
    return `${Math.round(performance.now() - begun)} ms`
  }
  const times = {
    view: await time('reviews', 'contents'),
    table: await time('_versions_reviews', 'contents'),
    child: await time('review_contents', 'response'),
    childTable: await time('_versions_review_contents', 'response'),
  }
  db.close()
  return times
}

const countDoubles = async (path: string): Promise<number> => {
  const opened = await openDatabase(path, { readOnly: true })()
  if (E.isLeft(opened)) throw new Error(opened.left.message)
  const doubles = await opened.right.scalar('SELECT count(*) - count(DISTINCT id) FROM reviews')
  opened.right.close()
  return Number(doubles)
}

const expectTruth = async (service: Service, path: string, tables: ReadonlyArray<string>): Promise<void> => {
  const differences = await compareWithTruth(service.data, path)
  for (const table of tables)
    expect([table, differences[table]]).toEqual([
      table,
      { rows: expect.any(Number), missing: 0, additional: 0, different: 0 },
    ])
}

/** The most memory that a process has had, in MiB; 0 once it has ended. */
const readPeak = (pid: number | undefined): number => {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
  } catch {
    return 0
  }
}

/** The seconds of CPU that a process has taken; undefined once it has ended. */
const readCpu = (pid: number | undefined): number | undefined => {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ')
    return (Number(fields[11]) + Number(fields[12])) / 100
  } catch {
    return undefined
  }
}

describe('a lake in PostgreSQL and S3', () => {
  it('takes rows and states of one writer, is verified, queried at each version and compared', async () => {
    const service = await startService(3000)
    const config = writeConfig(service)
    const lake = newLake('single')
    await feedbackWell('sync', '--config', config, ...lake)
    const version = await newestVersion('single')
    await fetch(`${service.url}/__sandbox/churn?access_token=${service.token}`, {
      method: 'POST',
      body: '{"change": 5, "delete": 2, "add": 3}',
    })
    // A run leaves the deletions of the last five seconds to the next one.
    await sleep(7000)
    await feedbackWell('sync', '--config', config, ...placeOf(lake))
    await feedbackWell('verify', ...placeOf(lake))
    expect(await feedback('report', ...placeOf(lake), '--format', 'md')).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('| Reviews |'),
    })
    const count = 'SELECT count(*) AS n FROM reviews'
    const now = await feedback(
      ...['query', ...placeOf(lake), '--format', 'csv'],
      `${count} UNION ALL ${count} AT (VERSION => ${version}) ORDER BY n DESC`,
    )
    expect(now.stdout.split('\n').slice(1, 3)).toEqual(['3001', '3000'])
    const at = await feedback('query', ...placeOf(lake), '--at', version, '--format', 'csv', count)
    expect(at.stdout.split('\n')[1]).toBe('3000')
    const diff = await feedback('diff', ...placeOf(lake), '--json', version, await newestVersion('single'))
    expect(JSON.parse(diff.stdout).find(({ stream }: { stream: string }) => stream === 'reviews')).toMatchObject({
      a: 3000,
      b: 3001,
      onlyA: 2,
      onlyB: 3,
      changed: 5,
    })
    await service.stop()
    await expectTruth(service, await copyToFile(lake), ['reviews', 'deleted_reviews', 'review_sentiments'])
  })

  it('goes on where PostgreSQL ends its connections', async () => {
    const service = await startService(20_000)
    const lake = newLake('lost')
    const sync = () => startProgram('feedback', ['sync', '--config', writeConfig(service), ...lake], { env }).ended
    let cuts = 0
    const cutting = (async () => {
      while (cuts < 3) {
        await sleep(1500)
        if (postgres.ask(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'lost'`).includes('t'))
          cuts += 1
      }
    })()
    // DuckLake itself breaks where its connection ends while it reads the catalogue. Then the run ends with 75, after
    // which it is begun again.
    let { status, stderr } = await sync()
    for (let runs = 1; status === 75 && runs < 4; runs += 1) ({ status, stderr } = await sync())
    expect([status, stderr]).toEqual([0, expect.any(String)])
    await cutting
    await feedbackWell('verify', ...placeOf(lake))
    await service.stop()
    await expectTruth(service, await copyToFile(lake), ['reviews', 'review_contents'])
  })

  it('waits if another run took its share while its connections were cut, and has its locks again', async () => {
    postgres.ask('CREATE DATABASE held')
    const dataPath = newTempPath('files')
    const open = () =>
      openLake('ducklake:postgres:dbname=held', 'write', {
        lake: { env: process.env, dataPath, share: { index: 0, count: 2 } },
      })()
    const snapshot = await runOrThrow(open)
    const cut = `
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = 'held' AND pid <> pg_backend_pid()`
    const take = `SELECT pg_advisory_lock(${0x66646c6b}, 1000)`
    let attempts = 0
    let holder: ChildProcess | undefined
    await snapshot.db.transaction(async () => {
      attempts += 1
      await snapshot.db.run(`INSERT INTO _meta_log VALUES (1, 'attempt', '${attempts}')`)
      if (attempts > 1) return
      holder = spawn(join(process.env.PG_BIN ?? '', 'psql'), [
        '-d',
        'held',
        '-c',
        cut,
        '-c',
        take,
        '-c',
        'SELECT pg_sleep(5)',
      ])
      await once(holder.stdout as NonNullable<typeof holder.stdout>, 'data')
      await sleep(500)
      await snapshot.db.query('SELECT * FROM _streams')
    })
    expect(holder?.exitCode).toBe(0)
    expect(await snapshot.db.scalar(`SELECT string_agg(value, ' ') FROM _meta_log WHERE name = 'attempt'`)).toBe('2')
    const second = await open()
    expect(E.isLeft(second) && second.left).toMatchObject({ _tag: 'Transient', message: /in use by another run/ })
    await closeSnapshot(snapshot)
  })

  it('says what is wrong, without secrets', async () => {
    const service = await startService(50)
    const config = writeConfig(service)
    const lake = newLake('refused')
    await feedbackWell('sync', '--config', config, ...lake)
    const cases: ReadonlyArray<readonly [number, RegExp, Readonly<Record<string, string>>, ReadonlyArray<string>]> = [
      [75, /PostgreSQL cannot be reached/, { PGPORT: '1' }, placeOf(lake)],
      [78, /PostgreSQL refuses the catalogue/, { PGPASSWORD: 'wr0ng-pass' }, placeOf(lake)],
      [78, /PostgreSQL refuses the catalogue/, {}, ['--lake', 'ducklake:postgres:dbname=refused password=wr0ng-pass']],
      [78, /has no such version/, {}, [...placeOf(lake), '--at', '999']],
      [
        78,
        /extension ducklake.*not on this machine.*pip install/,
        { VIRTUAL_ENV: '', HOME: '/nonexistent' },
        placeOf(lake),
      ],
      [75, /storage of the lake cannot be reached/, { AWS_ENDPOINT_URL: 'http://127.0.0.1:1' }, placeOf(lake)],
    ]
    for (const [status, message, changed, place] of cases) {
      const result = await runProgram('feedback', ['verify', ...place], { env: { ...env, ...changed } })
      expect([status, result.stderr]).toEqual([result.status, expect.stringMatching(message)])
      expect(result.stderr).not.toMatch(/wr0ng-pass|lake-s3cret|p0stgres-pass/)
    }
    // An extension of another version, which the end of its file names.
    const extensions = newTempPath('extensions')
    mkdirSync(extensions)
    const bytes = readFileSync(findExtension('ducklake'))
    const label = bytes.lastIndexOf('v1.')
    writeFileSync(join(extensions, 'ducklake.duckdb_extension'), bytes.fill('v0.9.9', label, label + 6))
    expect(await feedback('verify', ...placeOf(lake), '--extensions', extensions)).toMatchObject({
      status: 78,
      stderr: expect.stringMatching(/another version, or damaged.*pip install/),
    })
    // A bucket that may be read only, and one that refuses everything.
    for (const refused of [/^(PUT|POST|DELETE)$/, /./]) {
      const denied = { env: { ...env, AWS_ENDPOINT_URL: await startDenyingStorage(refused) } }
      const sync = ['sync', '--config', config]
      for (const args of [
        [...sync, ...placeOf(lake), '--full-refresh'],
        [...sync, ...newLake(`denied${refused.source.length}`)],
      ]) {
        const result = await runProgram('feedback', args, denied)
        expect(result).toMatchObject({ status: 78, stderr: expect.stringContaining('storage refuses access') })
        expect(result.stderr).not.toMatch(/lake-s3cret|p0stgres-pass/)
      }
    }
    for (const sql of [
      "FROM postgres_query('lake_locks', 'SELECT 1')",
      `FROM "Postgres_Scan"('dbname=postgres', 'pg_catalog', 'pg_user')`,
      "CALL postgres_execute('lake_locks', 'SELECT 1')",
      "FROM query -- a remark\n ('FROM postgres' || '_query(1, 2)')",
      `FROM "query"/**/('SELECT 1')`,
      "FROM json_execute_serialized_sql('{}')",
      "FROM query_table('duckdb_' || 'databases')",
      'FROM __ducklake_metadata_lake.pg_catalog.pg_authid',
      'FROM "__DuckLake_Metadata_Lake"."public"."others"',
      'FROM __ducklake_metadata_lake /* */ . public . others',
    ])
      expect(await feedback('query', ...placeOf(lake), sql)).toMatchObject({
        status: 78,
        stderr: expect.stringContaining('A query may read only the lake'),
      })
    for (const sql of [
      'FROM duckdb_databases()',
      'PRAGMA database_list',
      'SELECT file FROM "Pragma_Database_List"()',
      "SELECT current_setting('allowed_paths')",
      'FROM duckdb_settings()',
      'FROM pg_catalog.pg_settings',
    ])
      expect(await feedback('query', ...placeOf(lake), sql)).toMatchObject({
        status: 78,
        stderr: expect.stringContaining('which may hold a password'),
      })
    for (const [sql, wanted] of [
      ['SELECT count(*) AS n FROM reviews', '50'],
      ["SELECT count(*) AS n FROM __ducklake_metadata_lake.ducklake_table WHERE table_name = '_versions_reviews'", '1'],
      ['SELECT min(snapshot_id) AS n FROM "__ducklake_metadata_lake"."public"."ducklake_snapshot"', '0'],
    ] as const)
      expect((await feedback('query', ...placeOf(lake), '--format', 'csv', sql)).stdout.split('\n')[1]).toBe(wanted)
    const other = await feedback(
      'sync',
      '--config',
      config,
      ...placeOf(newLake('other')),
      '--data',
      's3://lake/refused',
    )
    expect(other).toMatchObject({ status: 78, stderr: expect.stringContaining('has files of another lake') })
    const nowhere = await feedback(
      'sync',
      '--config',
      config,
      ...placeOf(newLake('nowhere')),
      '--data',
      's3://no-such-bucket/x',
    )
    expect(nowhere).toMatchObject({ status: 78, stderr: expect.stringContaining('no such bucket') })
    const tight = await feedback('sync', '--config', config, ...newLake('tight'), '--memory-limit', '16MB')
    expect(tight).toMatchObject({ status: 78, stderr: expect.stringContaining('the limit of 16MB. Raise it with') })
    const password = postgres.env.PGPASSWORD
    postgres.ask(`\\c refused\nUPDATE ducklake_metadata SET value = '99.0' WHERE key = 'version'`)
    const newer = await feedback('verify', ...placeOf(lake))
    expect(newer).toMatchObject({ status: 78, stderr: expect.stringContaining('another version of DuckLake') })
    expect(newer.stderr).not.toContain(password)
    await service.stop()
  })

  it('gives a share to one process at a time, and the lake to none who needs all of it', async () => {
    const service = await startService(2000)
    const lake = newLake('busy')
    const running = startProgram('feedback', ['sync', '--config', writeConfig(service, 0), ...lake], { env })
    const locksSql = `
      SELECT count(*)
      FROM pg_locks JOIN pg_database ON pg_database.oid = database
      WHERE datname = 'busy' AND locktype = 'advisory' AND objid >= 1000`
    while (Number(postgres.ask(locksSql)) === 0) await sleep(20)
    await waitForVersions('busy', 2)
    process.kill(running.pid ?? 0, 'SIGSTOP')
    for (const args of [
      ['sync', '--config', writeConfig(service, 0)],
      ['sync', '--config', writeConfig(service)],
      ['forget', '--review', '1'],
    ])
      expect(await feedback(...args, ...placeOf(lake))).toMatchObject({
        status: 75,
        stderr: expect.stringContaining('is in use by another run'),
      })
    // A reader needs no lock, and sees no later version.
    const [{ version, tables } = { version: 0, tables: 0 }] = await readCounts('busy')
    process.kill(running.pid ?? 0, 'SIGCONT')
    expect(await running.ended).toMatchObject({ status: 0 })
    expect((await readCounts('busy', version)).map((counts) => counts.tables)).toEqual([tables])
    await service.stop()
  })

  it('erases a person from its tables, older versions, files and catalogue, though it is killed', async () => {
    const service = await startService(1500)
    const config = writeConfig(service)
    const lake = newLake('forgetful')
    const ask = async (sql: string): Promise<string> =>
      (await feedback('query', ...placeOf(lake), '--format', 'csv', sql)).stdout.trim().split('\n').at(-1) ?? ''
    await feedbackWell('sync', '--config', config, ...lake, '--history')
    await fetch(`${service.url}/__sandbox/churn?access_token=${service.token}`, {
      method: 'POST',
      body: '{"change": 200}',
    })
    await sleep(6000)
    await feedbackWell('sync', '--config', config, ...placeOf(lake))
    const [id = '', words = ''] = (
      await ask(`
        SELECT "reviewId"::VARCHAR || '|' || any_value(response)
        FROM review_contents
        WHERE length(response) > 60
        GROUP BY "reviewId", response
        HAVING count(*) = 1
        ORDER BY max(response) OVER () = response DESC, length(response) DESC
        LIMIT 1`)
    )
      .replaceAll('"', '')
      .split('|')
    const versions = () => ask(`SELECT count(*) FROM ducklake_snapshots('lake')`)

    // Nothing is found of an id that is not there, and no version goes.
    const before = Number(await versions())
    const nobody = await feedback('forget', ...placeOf(lake), '--review', '1', '--json')
    expect(JSON.parse(nobody.stdout)).toMatchObject({ removed: [], lake: { expired: false, unknown_files: [] } })
    expect(Number(await versions())).toBeGreaterThanOrEqual(before)
    expect(await findWords('forgetful', words)).toEqual({ files: expect.any(Number), catalogue: expect.any(Number) })
    expect((await findWords('forgetful', words)).files).toBeGreaterThan(0)

    // A writer that is killed as it commits leaves files with the words that no version names; beside them lies a
    // file of someone else.
    await killAsItCommits('forgetful', ['sync', '--config', config, ...placeOf(lake), '--full-refresh'])
    const left = await listOrphans('forgetful')
    expect(left.some((key) => key.includes('/main/_versions_review_contents/'))).toBe(true)
    expect(await holdWords(left, words)).toBe(true)
    const [stranger, notes] = ['forgetful/main/_versions_review_contents/mine.parquet', 'forgetful/notes.txt']
    for (const key of [stranger, notes])
      await fetch(storageUrl(key), { method: 'PUT', body: await writeParquet(`SELECT 'of someone else' AS "text"`) })

    for (const delay of [900, 1200, 1500, 1800]) {
      const running = startProgram('feedback', ['forget', ...placeOf(lake), '--review', id], { env })
      await sleep(delay)
      running.kill('SIGKILL')
      await running.ended
    }
    const done = await feedback('forget', ...placeOf(lake), '--review', id, '--wait', '30s')
    expect(done).toMatchObject({ status: 0, stdout: expect.stringContaining(stranger) })
    expect(done.stdout).not.toContain(words)
    expect(await listOrphans('forgetful')).toEqual([stranger])
    expect(await listObjects(notes)).toEqual([notes])
    expect(await findWords('forgetful', words)).toEqual({ files: 0, catalogue: 0 })
    expect(await ask(`SELECT count(*) FROM reviews WHERE id = ${id}`)).toBe('0')

    await feedbackWell('sync', '--config', config, ...placeOf(lake), '--full-refresh')
    expect(await ask(`SELECT count(*) FROM reviews WHERE id = ${id}`)).toBe('0')
    expect(await findWords('forgetful', words)).toEqual({ files: 0, catalogue: 0 })
    await feedbackWell('verify', ...placeOf(lake))
    await service.stop()
  })

  it('waits with an erasure for transactions that PostgreSQL keeps deleted rows for', async () => {
    const service = await startService(200)
    const lake = newLake('watched')
    await feedbackWell('sync', '--config', writeConfig(service), ...lake)
    const found = await feedback(
      ...['query', ...placeOf(lake), '--format', 'csv'],
      `SELECT "reviewId", response FROM review_contents WHERE length(response) > 60 ORDER BY response DESC LIMIT 1`,
    )
    const [, id = '', words = ''] = /^(\d+),"?(.*?)"?$/.exec(found.stdout.split('\n')[1] ?? '') ?? []
    const running = startProgram('feedback', ['forget', ...placeOf(lake), '--review', id], { env })
    // A transaction that psql begins at once, which reads no table of the lake and stays open until the erasure has
    // asked for older ones.
    postgres.ask(`\\c watched
        BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1;
        DO $$ BEGIN
          WHILE NOT EXISTS (
            SELECT FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE '%age(backend_xmin)%'
          ) LOOP
            IF clock_timestamp() > now() + interval '5 minutes' THEN RAISE 'Nobody has asked.'; END IF;
            PERFORM pg_sleep(0.001), pg_stat_clear_snapshot();
          END LOOP;
        END $$;
        SELECT pg_sleep(2); COMMIT;`)
    expect(await running.ended).toMatchObject({ status: 0 })
    expect(words.length).toBeGreaterThan(20)
    expect(await findWords('watched', words)).toEqual({ files: 0, catalogue: 0 })
    await service.stop()
  })

  it('erases nobody as a user whom PostgreSQL does not let rewrite the catalogue', async () => {
    const service = await startService(50)
    const lake = newLake('owned')
    await feedbackWell('sync', '--config', writeConfig(service), ...lake)
    postgres.ask(`CREATE ROLE clerk LOGIN PASSWORD '${env.PGPASSWORD}';
        \\c owned
        GRANT ALL ON ALL TABLES IN SCHEMA public TO clerk; GRANT ALL ON SCHEMA public TO clerk;`)
    const count = () => feedback('query', ...placeOf(lake), '--format', 'csv', 'SELECT count(*) FROM reviews')
    const { stdout } = await feedback('query', ...placeOf(lake), '--format', 'csv', 'SELECT min(id) FROM reviews')
    const forget = ['forget', ...placeOf(lake), '--review', stdout.trim().split('\n')[1] ?? '']
    expect(await runProgram('feedback', forget, { env: { ...env, PGUSER: 'clerk' } })).toMatchObject({
      status: 78,
      stderr: expect.stringContaining('only the owner of the database'),
    })
    expect((await count()).stdout).toContain('\n50')
    await feedbackWell(...forget)
    expect((await count()).stdout).toContain('\n49')
    await service.stop()
  })
})

describe('shares that write the same reviews', () => {
  const indexes = [0, 1, 2]

  it.each([1, 2].map((n) => seed + n))('have what one writer has of them all: seed %i', async (own) => {
    const name = `same_${own}`
    postgres.ask(`CREATE DATABASE ${name}`)
    const dataPath = newTempPath('files')
    const open = (share: LakeShare) =>
      runOrThrow(openLake(`ducklake:postgres:dbname=${name}`, 'write', { lake: { env: process.env, dataPath, share } }))
    let clock = emittedAt
    const options = { now: () => (clock += 20_000) }
    const expected = await openMemorySnapshot()
    const single = await createSnapshotWriter(expected, options)
    const snapshots: Snapshot[] = []
    const writers: SnapshotWriter[] = []
    for (const index of indexes) {
      const share = { index, count: indexes.length }
      const snapshot = await open(share)
      snapshots.push(snapshot)
      await openLakeStates(snapshot, share, 'incremental', () => undefined, emittedAt)
      writers.push(await createLakeWriter(snapshot, { ...options, share }))
    }
    const pages = drawPages(own, writers.length)
    for (const writer of [single, ...writers]) for (const message of drawnStarts) await writer.write(message)
    for (const { messages } of pages) for (const message of messages) await single.write(message)
    // Each writes its own pages at its own pace without waiting for the other.
    await Promise.all(
      writers.map(async (writer, index) => {
        for (const page of pages)
          if (page.writer === index) for (const message of page.messages) await writer.write(message)
      }),
    )
    for (const writer of [single, ...writers]) await writer.finish()
    const expectedRows = await readDrawnRows(expected)
    for (const snapshot of [...snapshots, expected]) await closeSnapshot(snapshot)
    const lake = await runOrThrow(openLake(`ducklake:postgres:dbname=${name}`, 'read', { lake: { env: process.env } }))
    const rows = await readDrawnRows(lake)
    await closeSnapshot(lake)
    // Which of two rows of one version and one time came later is not the same any more.
    expect(omitTies(rows)).toEqual(omitTies(expectedRows))
  })
})

it('lets two shares bring the same column at once', async () => {
  postgres.ask('CREATE DATABASE wider')
  const dataPath = newTempPath('files')
  let clock = emittedAt
  const openShare = async (index: number) => {
    const share = { index, count: 2 }
    const snapshot = await runOrThrow(
      openLake('ducklake:postgres:dbname=wider', 'write', { lake: { env: process.env, dataPath, share } }),
    )
    return { snapshot, writer: await createLakeWriter(snapshot, { now: () => (clock += 20_000), share }) }
  }
  const both = [await openShare(0), await openShare(1)]
  for (const { writer } of both) await writer.write(startedMessage(reviewsInfo()))
  const put = async ({ writer }: (typeof both)[0], minute: number, more: object) => {
    const texts = Array.from({ length: 100 }, (_, id) =>
      JSON.stringify({ ...JSON.parse(reviewJson(id, minute)), ...more }),
    )
    await writer.write(recordsMessage('reviews', ...texts))
    await writer.write({ _tag: 'Waiting', stream: 'reviews', until: 0 })
  }
  await Promise.all(both.map((each, i) => put(each, 1 + i, {})))
  await Promise.all(both.map((each, i) => put(each, 3 + i, { later: i, [`own${i}`]: i })))
  const { db } = both[0]?.snapshot ?? (await openShare(0)).snapshot
  const counted = await db.query(
    'SELECT count(*)::INT AS rows, count(DISTINCT id)::INT AS ids, min(later) AS later, max(own1) AS own FROM reviews',
  )
  expect(counted).toEqual([{ rows: 100, ids: 100, later: '1', own: '1' }])
  expect(await db.scalar('SELECT count(*)::INT FROM _versions_reviews WHERE own0 IS NOT NULL')).toBe(100)
  for (const { snapshot } of both) await closeSnapshot(snapshot)
})

describe(
  `${shareCount} processes write ${reviewCount.toLocaleString('en')} ` +
    `reviews, ${killCount} times killed (seed ${seed})`,
  () => {
    it(
      'ends with what the service has, without doubles',
      async () => {
        const service = await startService(reviewCount)
        const lake = newLake('shared')
        const configs = Array.from({ length: shareCount }, (_, index) => writeConfig(service, index))
        const draw = random(seed)
        const running = new Map<number, RunningProgram>()
        const failures: string[] = []
        let [peak, kills, isEnding] = [0, 0, false]
        const start = (index: number, place: ReadonlyArray<string>): RunningProgram =>
          // As the images have it.
          startProgram('feedback', ['sync', '--config', configs[index] ?? '', ...place], {
            env: { ...env, MALLOC_ARENA_MAX: '2' },
          })
        const runShare = async (index: number): Promise<void> => {
          for (;;) {
            const program = start(index, [...lake, '--wait', '60s'])
            running.set(index, program)
            const { signal, status, stderr } = await program.ended
            running.delete(index)
            if (signal === 'SIGKILL') continue
            if (status !== 0) failures.push(`share ${index}: ${status} ${stderr.slice(-500)}`)
            return
          }
        }
        // One share is never killed, and is read into a file too, beside the others: what both cost can be compared.
        const spared = shareCount - 1
        const file = start(spared, ['--db', newTempPath('duckdb')])
        const cpu = { lake: 0, file: 0 }
        const watching = (async () => {
          while (!isEnding) {
            for (const { pid } of running.values()) peak = Math.max(peak, readPeak(pid))
            cpu.lake = readCpu(running.get(spared)?.pid) ?? cpu.lake
            cpu.file = readCpu(file.pid) ?? cpu.file
            await sleep(100)
          }
        })()
        const killing = (async () => {
          // Spread over the reviews, however fast they are written; of few reviews a writer makes one commit only, and
          // is killed at any moment.
          while (kills < killCount && !isEnding) {
            const wanted = reviewCount < 200_000 ? 0 : ((kills + draw()) / (killCount + 1)) * reviewCount
            while (countCommitted('shared') < wanted && !isEnding) await sleep(1000)
            await sleep(500 + 3000 * draw())
            const all = [...running].flatMap(([index, program]) => (index === spared ? [] : [program]))
            const victim = all[Math.floor(draw() * all.length)]
            if (victim === undefined) continue
            victim.kill('SIGKILL')
            kills += 1
          }
        })()
        const started = performance.now()
        await Promise.all(Array.from({ length: shareCount }, (_, index) => runShare(index)))
        isEnding = true
        await Promise.all([watching, killing])
        const fileRun = await file.ended
        expect(fileRun.status, fileRun.stderr.slice(-500)).toBe(0)
        const rate = cpu.file / cpu.lake
        console.log(
          `share ${spared}, not killed: ${cpu.lake.toFixed(1)} s of CPU into ` +
            `the lake, ${cpu.file.toFixed(1)} into a file (${rate.toFixed(2)})`,
        )
        console.log(
          `${kills} kills, ${Math.round((performance.now() - started) / 1000)} ` +
            `s, ${Math.round(peak)} MiB at most a writer`,
        )
        expect(failures).toEqual([])
        expect(kills).toBeGreaterThanOrEqual(killCount / 2)
        await service.stop()
        const checked = performance.now()
        const compareRows = async () => {
          const copy = await copyToFile(lake)
          expect(await countDoubles(copy)).toBe(0)
          await expectTruth(service, copy, comparedTables)
        }
        // Both only read. Each uses one core most of the time.
        await Promise.all([feedbackWell('verify', ...placeOf(lake)), compareRows()])
        // One process goes on where all shares have ended, and finds every review as it is.
        const again = await startService(reviewCount, service)
        const version = await newestVersion('shared')
        await feedbackWell('sync', '--config', writeConfig(again), ...placeOf(lake))
        await again.stop()
        // Each run rewrites the rows of locations, providers, sources and categories.
        const diff = await feedback('diff', ...placeOf(lake), '--json', version, await newestVersion('shared'))
        const differences: ReadonlyArray<StreamDifference> = JSON.parse(diff.stdout)
        expect(differences.map(({ stream }) => stream)).toEqual(expect.arrayContaining([...tablesOfReviews]))
        const changed = differences.filter((one) => tablesOfReviews.includes(one.stream) && !isIdentical(one))
        expect(changed).toEqual([])
        console.log(`verified, compared and read once more in ${Math.round((performance.now() - checked) / 1000)} s`)
        const before = await timeViews('shared')
        await feedbackWell('compact', ...placeOf(lake))
        const compacted = await timeViews('shared')
        console.log(
          `a query of all reviews: ${before.view} of the view, ` +
            `${compacted.view} once compacted; ${compacted.table} of its table`,
        )
        console.log(
          `of all contents: ${before.child} of the view, ${compacted.child} ` +
            `once compacted; ${compacted.childTable} of its table`,
        )
        await feedbackWell('verify', ...placeOf(lake))
        await expectTruth(service, await copyToFile(lake), comparedTables)
        expect(peak).toBeLessThan(300)
      },
      180 * minutes,
    )
  },
)
