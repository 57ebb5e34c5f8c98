import { mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { runOrThrow } from '../../connector/cdk'
import { lakeErrorFailure } from '../../connector/lake/errors'
import { type LakePlace, prepareSpillFolder } from '../../connector/lake/place'
import { requireOwnFolder } from '../../connector/lake/storage'
import { openDatabase } from '../../connector/snapshot/store/database'
import { newTempPath } from '../support/files'

const temporary = process.env.TMPDIR

beforeEach(() => {
  process.env.TMPDIR = newTempPath('tmp')
  mkdirSync(process.env.TMPDIR)
})
afterEach(() => {
  if (temporary === undefined) delete process.env.TMPDIR
  else process.env.TMPDIR = temporary
})

/** Makes the folder of a process of this kind, as DuckDB does once it has something to put there; returns its name. */
const leaveFolder = (access: LakePlace['access'], share?: number, dataPath = 's3://lake/a/'): string => {
  const options = share === undefined ? {} : { share: { index: share, count: 8 } }
  const path = prepareSpillFolder(dataPath, { path: 'ducklake:a', name: 'a', isPostgres: true, access, options })
  mkdirSync(path, { recursive: true })
  return basename(path)
}

const listLeft = () => readdirSync(process.env.TMPDIR ?? '').sort()

it('clears the folders of processes that have ended, as far as its locks say so', () => {
  const [share1, share11, reader] = [leaveFolder('write', 1), leaveFolder('write', 11), leaveFolder('read')]
  const other = leaveFolder('write', 1, 's3://lake/b/')
  const again = leaveFolder('write', 1)
  expect(again).not.toBe(share1)
  expect(listLeft()).toEqual([again, share11, reader, other].sort())
  // A run of everything has the lake to itself, except for readers. Those of the day before have ended.
  const old = leaveFolder('read')
  utimesSync(join(process.env.TMPDIR ?? '', old), 0, 0)
  const whole = leaveFolder('change')
  expect(listLeft()).toEqual([reader, other, whole].sort())
})

it('refuses the folder in which another lake has its rows', async () => {
  const db = await runOrThrow(openDatabase(':memory:'))
  const folder = `${newTempPath('lake')}/`
  const name = 'ducklake-01a21468-a02f-7076-b682-1c37f46eaeae.parquet'
  const leave = (table: string, file: string) => {
    mkdirSync(join(folder, 'main', table), { recursive: true })
    writeFileSync(join(folder, 'main', table, file), '')
  }
  await requireOwnFolder(db, folder)
  // A process that was killed as it made this lake has left nothing but its metadata.
  leave('_meta_log', name)
  leave('_versions_reviews', 'mine.parquet')
  await requireOwnFolder(db, folder)
  leave('_versions_reviews', name)
  await expect(requireOwnFolder(db, folder)).rejects.toThrow('has files of another lake')
  db.close()
})

it.each([
  ['Cannot open database "x" in read-only mode: database does not exist', 'Config', 'there is no lake'],
  [
    'IO Error: The file "x" exists, but it is not a valid DuckDB database file!',
    'Config',
    'not the catalogue of a lake',
  ],
  ['data_path is not set - use the DATA_PATH parameter', 'Config', 'needs --data'],
  ['DATA_PATH parameter "a" does not match existing data path', 'Config', 'in a different place than --data'],
  ['HTTP 403 (Forbidden) password=secret', 'Config', 'refuses access'],
  ['Could not connect to server: Connection refused', 'Transient', 'cannot be reached'],
])('explains %s', (message, tag, words) => {
  const failure = lakeErrorFailure('the lake', new Error(message))
  expect(failure).toMatchObject({ _tag: tag, message: expect.stringContaining(words) })
  expect(JSON.stringify(failure)).not.toContain('secret')
})
