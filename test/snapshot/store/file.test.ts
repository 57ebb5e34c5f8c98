import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { afterAll, describe, expect, it } from 'vitest'
import { openSnapshot } from '../../../connector/snapshot/store/file'
import { verifySnapshot } from '../../../connector/snapshot/verify/verify'
import {
  openSnapshotFile,
  reviewJson,
  reviewsInfo,
  streamMessages,
  writeMessages,
} from '../../support/snapshot-messages'

const folder = mkdtempSync(join(tmpdir(), 'opening-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Starts a process that opens the file, runs the SQL and then waits until it is killed. */
const holdFile = async (path: string, sql: string) => {
  const script = `
    const { DuckDBInstance } = require('@duckdb/node-api');
    (async () => {
      const instance = await DuckDBInstance.create(${JSON.stringify(path)});
      await (await instance.connect()).run(${JSON.stringify(sql)});
      console.log('ready');
      setInterval(() => instance, 1000);
    })()`
  const child = spawn(process.execPath, ['-e', script], {
    cwd: join(__dirname, '../../..'),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(child.stdout, 'data')
  return child
}

const createFile = async (name: string): Promise<string> => {
  const path = join(folder, name)
  const snapshot = await openSnapshotFile(path)
  snapshot.db.close()
  return path
}

describe('openSnapshot', () => {
  it.each(['write', 'change', 'read'] as const)(
    'with access %s names the process that holds the file',
    async (access) => {
      const path = await createFile(`${access}.duckdb`)
      const child = await holdFile(path, 'CREATE TABLE t (a INTEGER)')
      const opened = await openSnapshot(path, access)()
      child.kill('SIGKILL')
      await once(child, 'close')
      expect(O.toUndefined(O.fromEither(E.swap(opened)))).toMatchObject({
        _tag: 'Transient',
        message: expect.stringContaining(`is in use by process ${child.pid} (`),
      })
    },
  )

  it('reads what a killed process has committed', async () => {
    const path = await createFile('killed.duckdb')
    const child = await holdFile(path, `INSERT INTO _state VALUES ('reviews', '{"a":1}', now())`)
    child.kill('SIGKILL')
    await once(child, 'close')
    const snapshot = await openSnapshotFile(path, 'read')
    expect(await snapshot.db.scalar('SELECT state FROM _state')).toBe('{"a":1}')
    expect((await verifySnapshot(snapshot)).filter(({ ok }) => !ok)).toEqual([])
    snapshot.db.close()
  })

  // DuckDB writes three pages, in no order, and calls the file made after an fsync.
  it.each([
    ['nothing', 0, []],
    ['one page', 4096, []],
    ['a part of the second page', 6000, []],
    ['two pages', 8192, []],
    ['a part of the third page', 12_000, []],
    ['no first page', 12_288, [0]],
    ['no second page', 12_288, [1]],
    ['no page that is not empty', 12_288, [0, 1, 2]],
  ])('makes a file again of which a power failure or a full disk has left %s', async (_, size, empty) => {
    const path = join(folder, `unfinished-${size}-${empty}.duckdb`)
    const made = join(folder, 'made.duckdb')
    const instance = await DuckDBInstance.create(made)
    instance.closeSync()
    const bytes = Buffer.from(readFileSync(made).subarray(0, size))
    for (const page of empty) bytes.fill(0, page * 4096, (page + 1) * 4096)
    writeFileSync(path, bytes)
    const snapshot = await openSnapshotFile(path)
    expect(await snapshot.db.scalar('SELECT count(*) FROM _loads')).toBe(0)
    snapshot.db.close()
  })

  it('says what to do where a disk has lost a part of the last commit, and that helps', async () => {
    const path = join(folder, 'torn.duckdb')
    const snapshot = await openSnapshotFile(join(folder, 'whole.duckdb'))
    await snapshot.db.run(`INSERT INTO _meta VALUES ('note', 'kept')`)
    await snapshot.db.checkpoint()
    await snapshot.db.run(`INSERT INTO _meta VALUES ('note', 'lost')`)
    copyFileSync(snapshot.db.path, path)
    const log = readFileSync(`${snapshot.db.path}.wal`)
    writeFileSync(`${path}.wal`, log.fill(0, log.length - 20))
    snapshot.db.close()
    expect(O.toUndefined(O.fromEither(E.swap(await openSnapshot(path)())))).toMatchObject({
      _tag: 'Config',
      message: expect.stringContaining(`Move ${path}.wal away and run again`),
    })
    rmSync(`${path}.wal`)
    const opened = await openSnapshotFile(path)
    expect(await opened.db.query(`SELECT value FROM _meta WHERE name = 'note'`)).toEqual([{ value: 'kept' }])
    opened.db.close()
  })

  it('takes the log for damaged where the disk has lost the file that it belongs to', async () => {
    const path = join(folder, 'older.duckdb')
    const instance = await DuckDBInstance.create(path)
    instance.closeSync()
    const empty = readFileSync(path)
    const snapshot = await openSnapshotFile(path)
    await snapshot.db.checkpoint()
    await snapshot.db.run(`INSERT INTO _meta VALUES ('note', 'lost')`)
    const log = readFileSync(`${path}.wal`)
    snapshot.db.close()
    writeFileSync(path, empty)
    writeFileSync(`${path}.wal`, log)
    expect(O.toUndefined(O.fromEither(E.swap(await openSnapshot(path)())))).toMatchObject({
      _tag: 'Config',
      message: expect.stringContaining(`Move ${path}.wal away and run again`),
    })
  })

  it.each(['change', 'read'] as const)('says with access %s that a half-made file is empty', async (access) => {
    const path = join(folder, `half-made-${access}.duckdb`)
    writeFileSync(path, Buffer.alloc(4096))
    expect(O.toUndefined(O.fromEither(E.swap(await openSnapshot(path, access)())))).toMatchObject({
      _tag: 'Config',
      message: expect.stringContaining(`${path} is empty`),
    })
  })

  it('says while it writes that the file is damaged', async () => {
    const path = join(folder, 'damaged.duckdb')
    const made = await openSnapshotFile(path)
    const reviews = streamMessages(reviewsInfo(), ...Array.from({ length: 20_000 }, (_, i) => reviewJson(i * i, 1)))
    await writeMessages(made, reviews)
    await made.db.checkpoint()
    const blocks = (table: string) => `SELECT block_id FROM pragma_storage_info('${table}') WHERE block_id >= 0`
    const others = ['_meta', '_loads', '_streams', '_state'].map(blocks).join(' UNION ')
    const [block] = await made.db.query(
      `SELECT min(block_id) AS id FROM (${blocks('reviews')} AND column_name = 'id' EXCEPT (${others}))`,
    )
    expect(block?.id).not.toBeNull()
    made.db.close()
    const bytes = readFileSync(path)
    const at = 12_288 + Number(block?.id) * 262_144
    writeFileSync(path, bytes.fill(0, at, at + 512))
    const snapshot = await openSnapshotFile(path)
    await expect(writeMessages(snapshot, reviews)).rejects.toMatchObject({
      failure: { _tag: 'Config', message: expect.stringContaining('read everything again into a new file') },
    })
    snapshot.db.close()
  })

  it('does not change a short file that is none of DuckDB', async () => {
    const path = join(folder, 'notes.txt')
    writeFileSync(path, 'My notes')
    expect(E.isLeft(await openSnapshot(path)())).toBe(true)
    expect(readFileSync(path, 'utf8')).toBe('My notes')
  })

  it('makes the file, its log and its temporary folder readable to their owner only, existing ones too', async () => {
    const path = join(folder, 'shared.duckdb')
    mkdirSync(`${path}.tmp`)
    for (let i = 0; i < 2; i += 1) {
      const snapshot = await openSnapshotFile(path)
      chmodSync(`${path}.tmp`, 0o755)
      await writeMessages(snapshot, streamMessages(reviewsInfo(), reviewJson(1, 1)))
      const modes = [path, `${path}.wal`, `${path}.tmp`].flatMap((file) =>
        existsSync(file) ? [[file, statSync(file).mode & 0o77]] : [],
      )
      expect(modes.length).toBeGreaterThan(1)
      expect(modes.filter(([, mode]) => mode !== 0)).toEqual([])
      snapshot.db.close()
      chmodSync(path, 0o644)
    }
  })
})
