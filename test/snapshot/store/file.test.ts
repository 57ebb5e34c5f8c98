import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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
