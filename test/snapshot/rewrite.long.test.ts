import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { diffSnapshots, hashContent, isIdentical } from '../../connector/snapshot/diff'
import { compactSnapshot } from '../../connector/snapshot/rewrite'
import { closeSnapshot } from '../../connector/snapshot/store/file'
import { setReportingTimeZone } from '../../connector/snapshot/store/views'
import { verifySnapshot } from '../../connector/snapshot/verify/verify'
import { drawCount } from '../support/draws'
import { newTempPath, writeTempFile } from '../support/files'
import { killOnceWritten, runProgram, startProgram } from '../support/program'
import {
  contentJson,
  openSnapshotFile,
  reviewContentsInfo,
  reviewJson,
  reviewsInfo,
  streamMessages,
  useDatabase,
  writeMessages,
} from '../support/snapshot-messages'

const ids = Array.from({ length: 2000 }, (_, i) => i + 1)

/** A file with a history, views, states, several loads and its own time zone, with much free space. */
const createSnapshot = async (): Promise<string> => {
  const path = newTempPath('duckdb')
  const snapshot = await openSnapshotFile(path)
  await setReportingTimeZone(snapshot, 'Europe/Berlin')
  for (const minute of [1, 2, 3]) {
    await writeMessages(
      snapshot,
      [
        ...streamMessages(reviewsInfo(), ...ids.map((id) => reviewJson(id, minute, `${minute} of ${id} `.repeat(20)))),
        ...streamMessages(reviewContentsInfo(), ...ids.map((id) => contentJson(id, minute, id))),
      ],
      { history: true },
    )
    await snapshot.db.checkpoint()
  }
  await closeSnapshot(snapshot)
  return path
}

let original: string
beforeAll(async () => {
  original = await createSnapshot()
})

/** A new file with that content. */
const writeSnapshot = async (path = newTempPath('duckdb')): Promise<string> => {
  copyFileSync(original, path)
  return path
}

/** Everything that a snapshot holds. */
const read = async (path: string) => {
  const snapshot = await openSnapshotFile(path, 'read')
  const { query } = snapshot.db
  const all = (table: string) => query(`SELECT * FROM ${table} ORDER BY ALL`)
  const content = {
    hash: await hashContent(snapshot),
    history: await all('_history_reviews'),
    metadata: [
      await all('_loads'),
      await all('_streams'),
      await all('_state'),
      await all('_meta'),
      await all('_deletions'),
    ],
    views: await query('SELECT view_name, comment, sql FROM duckdb_views() WHERE NOT internal ORDER BY ALL'),
    days: await query('SELECT * FROM review_daily'),
    failed: (await verifySnapshot(snapshot)).filter(({ ok }) => !ok),
  }
  await closeSnapshot(snapshot)
  return content
}

const filesBeside = (path: string): ReadonlyArray<string> =>
  readdirSync(dirname(path)).filter((name) => name.startsWith(basename(path)))

describe('feedback compact', () => {
  it('keeps rows, versions, views, states, loads and the time zone, and gives free place back', async () => {
    const path = await writeSnapshot()
    const before = await read(path)
    expect(before.views.length).toBeGreaterThan(3)
    expect(before.history).toHaveLength(4000)
    const size = statSync(path).size
    const { status, stdout, stderr } = await runProgram('feedback', ['compact', '--db', path, '--json'])
    expect(status, stderr).toBe(0)
    expect(JSON.parse(stdout)).toEqual({ before: size, after: statSync(path).size })
    expect(statSync(path).size).toBeLessThan(size)
    expect(await read(path)).toEqual(before)
    expect(before.failed).toEqual([])
    expect([statSync(path).mode & 0o777, filesBeside(path)]).toEqual([0o600, [basename(path)]])
  })

  it('leaves a file that the next load writes on, and replaces what a link leads to', async () => {
    const target = await writeSnapshot()
    const link = newTempPath('duckdb')
    symlinkSync(target, link)
    await compactSnapshot(link)
    expect([lstatSync(link).isSymbolicLink(), lstatSync(target).isFile()]).toEqual([true, true])
    const other = await writeSnapshot()
    for (const path of [link, other]) {
      const snapshot = await openSnapshotFile(path)
      await writeMessages(snapshot, streamMessages(reviewsInfo(), reviewJson(1, 9), reviewJson(5000, 9)))
      await closeSnapshot(snapshot)
    }
    const snapshot = await openSnapshotFile(link, 'read')
    expect((await diffSnapshots(snapshot, other)).filter((stream) => !isIdentical(stream))).toEqual([])
    expect((await verifySnapshot(snapshot)).filter(({ name }) => name === 'row counts')).toMatchObject([{ ok: true }])
    await closeSnapshot(snapshot)
  })

  it('brings the log of a killed run into the new file', async () => {
    const path = newTempPath('duckdb')
    const script = `
      const { DuckDBInstance } = require('@duckdb/node-api')
      DuckDBInstance.create(${JSON.stringify(path)}).then(async (instance) => {
        const db = await instance.connect()
        await db.run("UPDATE _state SET state = '{\\"after\\":\\"kill\\"}'")
        process.kill(process.pid, 'SIGKILL')
      })`
    await writeSnapshot(path)
    await once(spawn(process.execPath, ['-e', script]), 'exit')
    expect(existsSync(`${path}.wal`)).toBe(true)
    await compactSnapshot(path)
    expect((await read(path)).metadata[2]).toMatchObject([{ state: '{"after":"kill"}' }, { state: '{"after":"kill"}' }])
  })

  it('leaves a whole file whenever it is killed, and the next one cleans up', async () => {
    const path = await writeSnapshot()
    const { hash } = await read(path)
    expect((await runProgram('feedback', ['compact', '--db', path])).status).toBe(0)
    const bytes = statSync(path).size
    const kills = drawCount(4)
    for (let kill = 0; kill < kills; kill += 1) {
      const run = startProgram('feedback', ['compact', '--db', path])
      await killOnceWritten(run, `${path}.compact`, (bytes * kill) / kills)
      expect((await read(path)).hash).toEqual(hash)
    }
    writeFileSync(`${path}.compact`, 'left by a run that was killed')
    expect((await runProgram('feedback', ['compact', '--db', path])).status).toBe(0)
    expect(filesBeside(path)).toEqual([basename(path)])
    expect((await read(path)).hash).toEqual(hash)
  })

  it('waits for no other process unless asked, and changes nothing', async () => {
    const path = await writeSnapshot()
    const script = `
      require('@duckdb/node-api').DuckDBInstance.create(${JSON.stringify(path)}).then(() => console.log('held'))
      process.stdin.resume().on('end', () => process.exit())`
    const holder = spawn(process.execPath, ['-e', script])
    await once(holder.stdout, 'data')
    const bytes = readFileSync(path)
    const { status, stderr } = await runProgram('feedback', ['compact', '--db', path])
    expect([status, stderr]).toEqual([75, expect.stringMatching(/is in use by process \d+ .*--wait 10m waits for it/)])
    const waiting = runProgram('feedback', ['compact', '--db', path, '--wait', '1m'])
    holder.stdin.end()
    expect((await waiting).status).toBe(0)
    expect(bytes.length).toBeGreaterThanOrEqual(statSync(path).size)
  })

  it.each([
    ['that is missing', () => newTempPath('duckdb'), 78, /no such file/],
    [
      'that is no database',
      () => writeTempFile('not a database at all, but a text of some length'),
      78,
      /not a DuckDB file/,
    ],
  ])('refuses a file %s', async (_, make, expected, reason) => {
    const path = make()
    const { status, stderr } = await runProgram('feedback', ['compact', '--db', path])
    expect([status, stderr]).toEqual([expected, expect.stringMatching(reason)])
    expect(filesBeside(path).filter((name) => name !== basename(path))).toEqual([])
  })

  it('refuses tables with foreign keys by their names, and changes nothing', async () => {
    const path = await writeSnapshot()
    await useDatabase(path, 'change', (db) =>
      db.run(`CREATE TABLE parts (i INTEGER PRIMARY KEY); CREATE TABLE a_use (j INTEGER REFERENCES parts (i));
        CREATE SCHEMA own; CREATE TABLE own.tree (i INTEGER PRIMARY KEY, parent INTEGER REFERENCES own.tree (i));
        INSERT INTO parts VALUES (1); INSERT INTO a_use VALUES (1)`),
    )
    const bytes = readFileSync(path)
    const { status, stderr } = await runProgram('feedback', ['compact', '--db', path])
    expect([status, stderr]).toEqual([78, expect.stringMatching(/foreign keys.*: a_use, tree\. Nothing was changed/)])
    expect(readFileSync(path).equals(bytes)).toBe(true)
    expect(filesBeside(path)).toEqual([basename(path)])
  })

  it('copies what else a user has made', async () => {
    const path = await writeSnapshot()
    const read = (sql: string) => useDatabase(path, 'read', (db) => db.query(sql))
    await useDatabase(path, 'change', (db) =>
      db.run(`
        CREATE TYPE mood AS ENUM ('good', 'bad');
        CREATE SEQUENCE numbers START 7;
        CREATE SCHEMA own;
        CREATE TABLE own.moods (
          i INTEGER DEFAULT nextval('main.numbers'), m mood, g INTEGER GENERATED ALWAYS AS (i * 2));
        INSERT INTO own.moods (m) VALUES ('good'), ('bad');
        CREATE UNIQUE INDEX by_number ON own.moods (i);
        CREATE MACRO twice(a) AS 2 * a;
        CREATE VIEW own.twices AS SELECT twice(i) AS n, m, g FROM own.moods;
        COMMENT ON VIEW own.twices IS 'twice each'`),
    )
    await compactSnapshot(path)
    expect(await read('FROM own.twices ORDER BY n')).toEqual([
      { n: 14, m: 'good', g: 14 },
      { n: 16, m: 'bad', g: 16 },
    ])
    expect(await read(`SELECT index_name AS name, is_unique FROM duckdb_indexes()`)).toEqual([
      { name: 'by_number', is_unique: true },
    ])
    expect(await read(`SELECT comment FROM duckdb_views() WHERE view_name = 'twices'`)).toEqual([
      { comment: 'twice each' },
    ])
    await useDatabase(path, 'change', (db) => db.run(`INSERT INTO own.moods (m) VALUES ('good')`))
    expect(await read('SELECT max(i) AS i FROM own.moods')).toEqual([{ i: 9 }])
  })

  it('says what a memory limit is too small for, and changes nothing', async () => {
    const path = await writeSnapshot()
    const bytes = readFileSync(path)
    await expect(compactSnapshot(path, { memoryLimit: 3e6 })).rejects.toThrow(/needs more memory than the limit of 3MB/)
    expect(readFileSync(path).equals(bytes)).toBe(true)
    expect(filesBeside(path)).toEqual([basename(path)])
  })
})
