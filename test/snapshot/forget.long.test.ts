import { spawn } from 'node:child_process'
import { createHash, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Message, SyncMode } from '../../connector/cdk/message'
import { exportParquet } from '../../connector/snapshot/export-parquet'
import { type ForgetReceipt, forgetPersons } from '../../connector/snapshot/forget'
import type { Snapshot } from '../../connector/snapshot/store/database'
import { openDatabase, quoteIdentifier } from '../../connector/snapshot/store/database'
import { closeSnapshot } from '../../connector/snapshot/store/file'
import { verifySnapshot } from '../../connector/snapshot/verify/verify'
import { draws } from '../support/draws'
import { newTempPath } from '../support/files'
import {
  commitInParts,
  createStreamInfo,
  deletedReviewsInfo,
  emittedAt,
  instantSchema,
  integerSchema,
  openSnapshotFile,
  reviewContentsInfo,
  streamMessages,
  timeAtMinute,
  useDatabase,
  writeMessages,
} from '../support/snapshot-messages'

const textSchema = { type: ['null', 'string'] }
const reviewsInfo = (mode?: SyncMode) =>
  createStreamInfo(
    'reviews',
    {
      id: integerSchema,
      modifiedTime: instantSchema,
      mentionTime: instantSchema,
      surveyBarCode: textSchema,
      visitRecordId: textSchema,
      contents: { type: ['null', 'array'] },
    },
    ['id'],
    'modifiedTime',
    mode,
  )
const contentsInfo = (mode?: SyncMode) => {
  const info = reviewContentsInfo(mode)
  return {
    ...info,
    schema: { ...info.schema, properties: { ...(info.schema.properties as object), response: textSchema } },
  }
}
const commentsInfo = () =>
  createStreamInfo(
    'comments',
    {
      entityType: textSchema,
      entityId: textSchema,
      id: integerSchema,
      mentionTime: instantSchema,
      surveyKey: textSchema,
      comment: textSchema,
    },
    ['entityType', 'entityId', 'id'],
    'mentionTime',
  )
const publicReviewsInfo = () =>
  createStreamInfo(
    'transparency_reviews',
    {
      entityType: textSchema,
      entityId: textSchema,
      documentId: integerSchema,
      mentionTime: instantSchema,
      surveyKey: textSchema,
      comment: { type: ['null', 'object'] },
    },
    ['entityType', 'entityId', 'documentId'],
    'mentionTime',
  )

/** Characters of no language that DuckDB could compress, so that its file shows the text as it is. */
const randomText = (): string => String.fromCodePoint(...Array.from({ length: 60 }, () => randomInt(0x4e00, 0x9f00)))

type Person = { readonly id: number; readonly visit: string; readonly survey: string; readonly text: string }
const person = (n: number): Person => ({ id: 1000 + n, visit: `VR-${n}`, survey: `SB${n}`, text: randomText() })

const reviewOf = ({ id, visit, survey, text }: Person, minute: number): string =>
  JSON.stringify({
    id,
    modifiedTime: timeAtMinute(minute),
    mentionTime: timeAtMinute(id % 60),
    surveyBarCode: survey,
    visitRecordId: visit,
    contents: [{ id: id * 10, response: text }],
  })
const contentOf = ({ id, text }: Person, minute: number): string =>
  JSON.stringify({ reviewId: id, reviewModifiedTime: timeAtMinute(minute), id: id * 10, response: text })
const commentOf = ({ id, text }: Person, surveyKey: string | null = null): string =>
  JSON.stringify({
    ...{ entityType: 'location', entityId: '1', id: id * 10, surveyKey, comment: text },
    mentionTime: timeAtMinute(id % 60),
  })
const publicReviewOf = ({ id, text }: Person): string =>
  JSON.stringify({
    ...{
      entityType: 'location',
      entityId: '1',
      documentId: id,
      surveyKey: '',
      comment: { commentId: id * 10, comment: text },
    },
    mentionTime: timeAtMinute(id % 60),
  })

const messagesOf = (people: ReadonlyArray<Person>, minute: number, mode?: SyncMode): ReadonlyArray<Message> => [
  ...streamMessages(reviewsInfo(mode), ...people.map((each) => reviewOf(each, minute))),
  ...streamMessages(contentsInfo(mode), ...people.map((each) => contentOf(each, minute))),
  ...streamMessages(commentsInfo(), ...people.map((each) => commentOf(each))),
  ...streamMessages(publicReviewsInfo(), ...people.map(publicReviewOf)),
]

/** Texts that are searched in the bytes of a file must be there unchanged. */
const withoutCompression = ({ db }: Snapshot): Snapshot => ({
  db: {
    ...db,
    run: (sql, ...rest) => db.run(sql.replace("force_compression = 'zstd'", "force_compression = 'auto'"), ...rest),
  },
})

const load = async (path: string, messages: ReadonlyArray<Message>, history = false, inParts = false) => {
  const snapshot = withoutCompression(await openSnapshotFile(path))
  await writeMessages(inParts ? commitInParts(snapshot) : snapshot, messages, { history })
  await closeSnapshot(snapshot)
}

const forget = (path: string, request: Partial<Parameters<typeof forgetPersons>[1]>): Promise<ForgetReceipt> =>
  forgetPersons(path, { reviews: [], visitRecords: [], exports: [], ...request }, emittedAt)

/** Every row of every table but the tombstones, as text. */
const dump = (path: string): Promise<string> =>
  useDatabase(path, 'read', async (db) => {
    const tables = await db.query(
      `SELECT schema_name || '.' || table_name AS name FROM duckdb_tables()
       WHERE database_name = current_database() AND table_name <> '_forgotten' ORDER BY ALL`,
    )
    const texts: string[] = []
    for (const { name } of tables) {
      const [schema = '', table = ''] = String(name).split('.')
      const rows = await db.query(
        `SELECT t::VARCHAR AS row FROM ${quoteIdentifier(schema)}.${quoteIdentifier(table)} AS t`,
      )
      texts.push(`${name}\n${rows.map(({ row }) => row).join('\n')}`)
    }
    return texts.join('\n')
  })

/** The bytes of a file and of all files next to it whose names begin with its name. */
const bytesAt = (path: string): Buffer =>
  Buffer.concat(
    readdirSync(dirname(path))
      .filter((name) => name.startsWith(basename(path)))
      .map((name) => join(dirname(path), name))
      .flatMap((file) => (statSync(file).isDirectory() ? readdirSync(file).map((name) => join(file, name)) : [file]))
      .map((file) => readFileSync(file)),
  )

const failedChecks = async (path: string): Promise<ReadonlyArray<string>> => {
  const snapshot = await openSnapshotFile(path, 'read')
  const results = await verifySnapshot(snapshot)
  await closeSnapshot(snapshot)
  expect(results.find(({ name }) => name === 'what was forgotten is gone')?.outcome).toBe('holds')
  return results.filter(({ ok }) => !ok).map(({ name, examples }) => `${name}: ${examples.join(', ')}`)
}

const people = Array.from({ length: 40 }, (_, n) => person(n))
const [gone, other] = [people[7] as Person, people[8] as Person]

describe('feedback forget', () => {
  it.each<[string, Parameters<typeof forget>[1]]>([
    ['the id of the review', { reviews: [String(gone.id)] }],
    ['the id of the visit', { visitRecords: [gone.visit] }],
  ])('removes rows and older versions everywhere by %s, and nobody else’s', async (_, request) => {
    const path = newTempPath('duckdb')
    for (const minute of [1, 2]) await load(path, messagesOf(people, minute), true)
    await useDatabase(path, 'change', (db) =>
      db.run(`
        CREATE SCHEMA mine;
        CREATE TABLE mine.backup AS FROM reviews;
        CREATE TABLE marts AS SELECT id AS review_id, contents FROM reviews;
        CREATE VIEW mine.few AS SELECT id FROM mine.backup;
        CREATE INDEX by_id ON mine.backup (id);
        CREATE TABLE notes (note VARCHAR)`),
    )
    const before = await dump(path)
    for (const { text } of people) expect(before.split(text).length - 1).toBe(8)
    const receipt = await forget(path, request)
    expect(receipt.removed).toEqual([
      { table: 'backup', rows: 1, versions: 0 },
      { table: 'comments', rows: 1, versions: 0 },
      { table: 'marts', rows: 1, versions: 0 },
      { table: 'review_contents', rows: 1, versions: 1 },
      { table: 'reviews', rows: 1, versions: 1 },
      { table: 'transparency_reviews', rows: 1, versions: 0 },
    ])
    expect(receipt.not_searched).toEqual(['notes'])
    const after = await dump(path)
    const count = (text: string) => after.split(text).length - 1
    expect(people.filter(({ text }) => count(text) !== 8)).toEqual([gone])
    expect(count(gone.text)).toBe(0)
    expect(JSON.stringify(receipt)).not.toContain(gone.text)
    expect(JSON.stringify(receipt)).not.toContain(gone.visit)
    expect(await failedChecks(path)).toEqual([])
    expect(await useDatabase(path, 'read', (db) => db.scalar('SELECT count(*) FROM mine.few'))).toBe(39)
  })

  it('leaves no byte of the text in the file or beside it, under the compression that DuckDB chooses', async () => {
    const path = newTempPath('duckdb')
    // A version that a later one has replaced lies in blocks of the file that are free, and the last commits in its
    // log.
    const older = people.map((each) => ({ ...each, text: randomText() }))
    await load(path, messagesOf(older, 1))
    await load(path, messagesOf(people, 2))
    const script = `
      const { DuckDBInstance } = require('@duckdb/node-api')
      DuckDBInstance.create(${JSON.stringify(path)}).then(async (instance) => {
        const db = await instance.connect()
        await db.run("SET checkpoint_threshold = '1TB'; CREATE TABLE log_only AS FROM reviews")
        process.kill(process.pid, 'SIGKILL')
      })`
    await once(spawn(process.execPath, ['-e', script]), 'exit')
    const wal = readFileSync(`${path}.wal`)
    mkdirSync(`${path}.tmp`)
    for (const left of [`${path}.tmp/duckdb_temp_block-1.block`, `${path}.compact`, `${path}.forget`])
      writeFileSync(left, gone.text)
    const before = bytesAt(path)
    const shows = (bytes: Buffer, { text }: Person) => bytes.includes(Buffer.from(text))
    expect(people.filter((each) => !shows(before, each))).toEqual([])
    expect(shows(wal, gone)).toBe(true)
    expect(older.filter((each) => shows(before, each)).length).toBeGreaterThan(0)
    await forget(path, { reviews: [String(gone.id)] })
    const after = bytesAt(path)
    expect(readdirSync(dirname(path)).filter((name) => name.startsWith(basename(path)))).toEqual([basename(path)])
    // That every other text is seen shows that this one would be.
    expect(people.filter((each) => !shows(after, each))).toEqual([gone])
    expect(older.filter((each) => shows(after, each))).toEqual([])
    expect(await dump(path)).not.toContain(gone.text)
  })

  it('takes the review out of the states, which keep digests of the newest rows, now and after each run', async () => {
    const path = newTempPath('duckdb')
    const row = (id: number) => [String(id), emittedAt, `digest${id}`]
    const rows = { recent: [row(gone.id), row(other.id)] }
    const states: ReadonlyArray<Message> = ['reviews', 'comments'].map((stream) => ({
      _tag: 'Checkpoint',
      stream,
      state: { ...rows, scan: { taken: 2, ...rows }, deletions: { ...rows, scan: rows }, note: 'stays' },
      count: 0,
    }))
    const left = { recent: [row(other.id)] }
    const cleaned = { ...left, scan: { taken: 2, ...left }, deletions: { ...left, scan: left }, note: 'stays' }
    const readStates = () =>
      useDatabase(path, 'read', async (db) =>
        (await db.query(`SELECT state FROM _state WHERE stream IN ('reviews', 'comments')`)).map(({ state }) =>
          JSON.parse(String(state)),
        ),
      )
    await load(path, [...messagesOf(people, 1), ...states])
    expect(bytesAt(path).includes(`digest${gone.id}`)).toBe(true)
    await forget(path, { reviews: [String(gone.id)] })
    expect(await readStates()).toEqual([cleaned, cleaned])
    expect(bytesAt(path).includes(`digest${gone.id}`)).toBe(false)
    // As long as the service serves the review, each run remembers it again.
    await load(path, [...messagesOf(people, 2), ...states])
    expect(await readStates()).toEqual([cleaned, cleaned])
  })

  it('removes free blocks with a text that no table has any more', async () => {
    const path = newTempPath('duckdb')
    await load(path, messagesOf(people, 1))
    await load(
      path,
      streamMessages(deletedReviewsInfo(), JSON.stringify({ id: gone.id, modifiedTime: timeAtMinute(5) })),
    )
    await load(path, [])
    const receipt = await forget(path, { reviews: [String(gone.id)] })
    expect(receipt.removed.map(({ table }) => table)).toContain('deleted_reviews')
    expect(bytesAt(path).includes(Buffer.from(gone.text))).toBe(false)
  })

  const loads: ReadonlyArray<[string, (path: string) => Promise<void>]> = [
    ['the same messages', (path) => load(path, messagesOf(people, 1))],
    ['a newer version', (path) => load(path, messagesOf(people, 9))],
    ['a full refresh', (path) => load(path, messagesOf(people, 9, 'full_refresh'))],
    ['a load with history', (path) => load(path, messagesOf(people, 9), true)],
    ['a commit in parts', (path) => load(path, messagesOf(people, 9), false, true)],
    [
      'a number written in another way',
      (path) => load(path, streamMessages(reviewsInfo(), reviewOf(gone, 9).replace(`${gone.id}`, `${gone.id}.0`))),
    ],
    [
      'a comment that names the survey',
      (path) => load(path, streamMessages(commentsInfo(), commentOf({ ...gone, id: 77 }, gone.survey))),
    ],
  ]
  it.each(loads)('keeps %s from bringing it back', async (_, again) => {
    const path = newTempPath('duckdb')
    await load(path, messagesOf(people, 1))
    await forget(path, { visitRecords: [gone.visit] })
    await again(path)
    expect(await dump(path)).not.toContain(gone.text)
    expect(await dump(path)).toContain(other.text)
    expect(bytesAt(path).includes(Buffer.from(gone.text))).toBe(false)
    expect(await failedChecks(path)).toEqual([])
  })

  it('never writes a review that names a forgotten visit later, nor anything that belongs to it', async () => {
    const path = newTempPath('duckdb')
    await load(
      path,
      messagesOf(
        people.filter((each) => each !== gone),
        1,
      ),
    )
    const receipt = await forget(path, { visitRecords: [` ${gone.visit}`.trim(), 'VR-unknown'] })
    expect(receipt.removed).toEqual([])
    // Of a run that reads one stream at a time, the contents come before the review that shows whose they are.
    await load(path, streamMessages(contentsInfo(), contentOf(gone, 3)))
    expect(await dump(path)).toContain(gone.text)
    await load(path, messagesOf(people, 3))
    expect(await dump(path)).not.toContain(gone.text)
    expect(await failedChecks(path)).toEqual([])
    await forget(path, { visitRecords: [gone.visit] })
    expect(bytesAt(path).includes(Buffer.from(gone.text))).toBe(false)
  })

  it('keeps a tombstone of an id that was never there', async () => {
    const path = newTempPath('duckdb')
    await load(path, messagesOf([other], 1))
    const receipt = await forget(path, { reviews: ['9007199254740993', String(gone.id)] })
    expect(receipt).toMatchObject({
      removed: [],
      asked: { reviews: [createHash('sha256').update('9007199254740993').digest('hex'), expect.any(String)] },
    })
    await load(path, messagesOf(people, 2))
    expect(await dump(path)).not.toContain(gone.text)
    expect(
      await useDatabase(path, 'read', (db) =>
        db.query('SELECT id FROM _forgotten WHERE kind = $kind ORDER BY id', { kind: 'review' }),
      ),
    ).toEqual([{ id: '1007' }, { id: '9007199254740993' }])
  })

  it('takes no comment of another with the id of a content, and no key of a survey of several reviews', async () => {
    const path = newTempPath('duckdb')
    const shared = people.map((each) => ({ ...each, survey: 'none' }))
    await load(path, messagesOf(shared, 1))
    const stranger = JSON.stringify({
      ...JSON.parse(commentOf(gone, 'none')),
      entityId: '2',
      mentionTime: timeAtMinute(58),
      comment: 'of another',
    })
    await load(path, streamMessages(commentsInfo(), stranger))
    await forget(path, { reviews: [String(gone.id)] })
    const rows = await dump(path)
    expect(rows).toContain('of another')
    expect(rows).not.toContain(gone.text)
    expect(people.filter(({ text }) => !rows.includes(text))).toEqual([gone])
  })

  it('refuses a file with tables that it cannot fill, and names them', async () => {
    const path = newTempPath('duckdb')
    await load(path, messagesOf([gone], 1))
    await useDatabase(path, 'change', (db) =>
      db.run(`
        CREATE TABLE doubled (a INTEGER, b INTEGER GENERATED ALWAYS AS (a * 2));
        INSERT INTO doubled (a) VALUES (1);
        CREATE TABLE first (id INTEGER PRIMARY KEY); CREATE TABLE second (id INTEGER REFERENCES first (id))`),
    )
    await expect(forget(path, { reviews: ['1007'] })).rejects.toThrow(
      /foreign keys.*: doubled, second\. Nothing was changed/,
    )
    expect(await dump(path)).toContain(gone.text)
    await useDatabase(path, 'change', (db) => db.run('DROP TABLE doubled; DROP TABLE second'))
    await forget(path, { reviews: ['1007'] })
    expect(await dump(path)).not.toContain(gone.text)
  })

  it('is refused by versions that would bring it back', async () => {
    const path = newTempPath('duckdb')
    await load(path, messagesOf([gone], 1))
    const readFormat = () =>
      useDatabase(path, 'read', (db) => db.scalar(`SELECT value FROM _meta WHERE name = 'format'`))
    expect(await readFormat()).toBe('3')
    await forget(path, { reviews: [String(gone.id)] })
    expect(await readFormat()).toBe('4')
  })

  it('says which record is not JSON, as if nothing was forgotten', async () => {
    const path = newTempPath('duckdb')
    await load(path, messagesOf([gone, other], 1))
    await forget(path, { reviews: [String(gone.id)] })
    await expect(load(path, streamMessages(reviewsInfo(), reviewOf(gone, 2), '{"id":'))).rejects.toThrow(
      /Record 2 of the stream reviews/,
    )
  })
})

describe('exports', () => {
  const exported = async (partition?: 'month') => {
    const [path, folder] = [newTempPath('duckdb'), newTempPath('parquet')]
    await load(path, messagesOf(people, 1))
    const snapshot = await openSnapshotFile(path, 'read')
    await exportParquet(snapshot, folder, partition)
    await closeSnapshot(snapshot)
    return { path, folder }
  }
  const readRows = async (folder: string): Promise<ReadonlyArray<string>> => {
    const opened = await openDatabase(':memory:')()
    if (opened._tag === 'Left') throw new Error(opened.left.message)
    const db = opened.right
    const texts: string[] = []
    for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort())
      if (name.endsWith('.parquet')) {
        const rows = await db.query(`SELECT t::VARCHAR AS row FROM '${join(folder, name)}' AS t`)
        texts.push(...rows.map(({ row }) => `${name} ${row}`))
      }
    db.close()
    return texts
  }

  it.each([undefined, 'month'] as const)(
    'are rewritten without the rows, partitioned by %s, and otherwise stay as they were',
    async (partition) => {
      const { path, folder } = await exported(partition)
      const before = await readRows(folder)
      const receipt = await forget(path, { visitRecords: [gone.visit], exports: [folder] })
      expect(await readRows(folder)).toEqual(before.filter((row) => !row.includes(gone.text)))
      expect(before.length - (await readRows(folder)).length).toBe(4)
      expect(receipt.files.map((file) => file.path)).toHaveLength(5)
      for (const { path: file, before: old, after } of receipt.files) {
        expect(createHash('sha256').update(readFileSync(file)).digest('hex')).toBe(after.sha256)
        expect(old.sha256).not.toBe(after.sha256)
        expect(statSync(file).mode & 0o777).toBe(0o600)
      }
      // An export that turns up later is cleaned by what the file remembers; one without rows of theirs is not touched.
      const later = await exported()
      const again = await forget(path, { reviews: ['1'], exports: [later.folder, folder] })
      expect(again.files).toHaveLength(5)
      expect((await readRows(later.folder)).join()).not.toContain(gone.text)
    },
  )

  it('names what it has not searched: Parquet files without a known id, and files of other kinds', async () => {
    const { path, folder } = await exported()
    const mine = join(folder, 'mine')
    mkdirSync(join(mine, 'parts.parquet'), { recursive: true })
    const opened = await openDatabase(':memory:')()
    if (opened._tag === 'Left') throw new Error(opened.left.message)
    for (const [name, sql] of [
      ['renamed.parquet', `SELECT ${gone.id} AS number, 'x' AS words`],
      ['parts.parquet/part-0.parquet', `SELECT ${gone.id} AS review_id, 'x' AS words`],
      // A column of JSON is text in an export.
      ['json.parquet', `SELECT '"${gone.visit}"' AS "visitRecordId" UNION ALL VALUES ('"other'), (NULL)`],
    ])
      await opened.right.run(`COPY (${sql}) TO '${join(mine, String(name))}' (FORMAT parquet)`)
    opened.right.close()
    writeFileSync(join(mine, 'rows.csv'), 'id\n')
    writeFileSync(join(mine, 'renamed.parquet.forget'), 'of a run that was killed')
    const receipt = await forget(path, {
      reviews: [String(gone.id)],
      visitRecords: [gone.visit],
      exports: [folder],
    })
    expect(await readRows(mine)).toContain(`json.parquet {'visitRecordId': '"other'}`)
    expect((await readRows(mine)).join()).not.toContain(gone.visit)
    expect(receipt.not_searched).toEqual([join(mine, 'renamed.parquet'), join(mine, 'rows.csv')])
    expect(receipt.files.map((file) => file.path)).toContain(join(mine, 'parts.parquet', 'part-0.parquet'))
    expect(existsSync(join(mine, 'renamed.parquet.forget'))).toBe(false)
  })

  it('refuses the files of a lake, which knows where each row of them is', async () => {
    const { path, folder } = await exported()
    const name = 'ducklake-01a21468-a02f-7076-b682-1c37f46eaeae.parquet'
    copyFileSync(join(folder, 'reviews', 'data_0.parquet'), join(folder, name))
    for (const exports of [[folder], [join(folder, name)]])
      await expect(forget(path, { visitRecords: [gone.visit], exports })).rejects.toThrow('is a file of a lake')
    expect((await readRows(folder)).join()).toContain(gone.text)
  })

  it('finishes what a kill between the export and the file has left', async () => {
    const { path, folder } = await exported()
    writeFileSync(join(folder, 'reviews', 'data_0.parquet.forget'), 'of a run that was killed')
    const broken = newTempPath('parquet')
    writeFileSync(broken, 'no Parquet')
    await expect(forget(path, { visitRecords: [gone.visit], exports: [folder, broken] })).rejects.toThrow(
      /cannot be read as Parquet/,
    )
    expect(await dump(path)).toContain(gone.text)
    await forget(path, { visitRecords: [gone.visit], exports: [folder] })
    expect((await readRows(folder)).join()).not.toContain(gone.text)
    expect(existsSync(join(folder, 'reviews', 'data_0.parquet.forget'))).toBe(false)
  })

  it('may be dead letters: those of the visit go, cut short or not, and all others stay to the byte', async () => {
    const path = newTempPath('duckdb')
    await load(path, messagesOf([other], 1))
    const letterOf = ({ visit, text }: Person, object = 'visit_records') =>
      `${JSON.stringify({
        ...{ stream: 'visits', object, key: visit, reason: 'email: missing', batch: null, when: timeAtMinute(1) },
        record: { note: text, big: 1.5 },
      })}\n`
    const unread =
      '{"stream":"visits","object":"visit_records","key":null,"reason":"id: ' +
      'missing","batch":null,"when":"","record": 9007199254740993}\n'
    const kept = [letterOf(other), unread, letterOf(gone, 'locations'), '{"stream":"vis\n']
    const lines = [letterOf(gone), ...kept, letterOf(gone), letterOf(gone).slice(0, -20)]
    const file = newTempPath('jsonl')
    writeFileSync(file, lines.join(''))
    writeFileSync(`${file}.resend`, letterOf(gone))
    const receipt = await forget(path, { visitRecords: [gone.visit], exports: [file] })
    expect([readFileSync(file, 'utf8'), existsSync(`${file}.resend`)]).toEqual([kept.join(''), false])
    expect(receipt.files.map((each) => each.path)).toEqual([file, path])
    expect(receipt.files[0]?.after.sha256).toBe(createHash('sha256').update(kept.join('')).digest('hex'))
    expect((await forget(path, { visitRecords: [gone.visit], exports: [file] })).files).toHaveLength(1)
    const csv = newTempPath('csv')
    writeFileSync(csv, 'id,text\n1,x\n')
    await expect(forget(path, { reviews: ['1'], exports: [csv] })).rejects.toThrow(
      /neither Parquet nor a file of dead letters/,
    )
    expect(readFileSync(csv, 'utf8')).toBe('id,text\n1,x\n')
  })

  it.each([
    ['missing', /does not exist/],
    ['.', /holds no Parquet file/],
  ])('that are not there are reported: %s', async (name, message) => {
    const path = newTempPath('duckdb')
    await load(path, messagesOf([gone], 1))
    const folder = newTempPath('folder')
    mkdirSync(folder)
    await expect(forget(path, { reviews: ['1007'], exports: [join(folder, name)] })).rejects.toThrow(message)
    expect(await dump(path)).toContain(gone.text)
  })
})

describe('forgetPersons', () => {
  it('leaves exactly the rows of others, whoever is forgotten and in whatever order it comes', () => {
    const step = fc.record({
      forget: fc.subarray([0, 1, 2, 3, 4, 5]),
      byVisit: fc.boolean(),
      load: fc.subarray([0, 1, 2, 3, 4, 5]),
      minute: fc.integer({ min: 1, max: 50 }),
    })
    const some = people.slice(0, 6)
    return fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 3 }), async (steps) => {
        const path = newTempPath('duckdb')
        const loaded = new Set<number>()
        const forgotten = new Set<number>()
        await load(path, messagesOf([], 1), true)
        for (const { forget: who, byVisit, load: what, minute } of steps) {
          await load(
            path,
            messagesOf(
              what.map((n) => some[n] as Person),
              minute,
            ),
            true,
          )
          for (const n of what) loaded.add(n)
          const chosen = who.map((n) => some[n] as Person)
          if (chosen.length === 0) continue
          await forget(
            path,
            byVisit ? { visitRecords: chosen.map(({ visit }) => visit) } : { reviews: chosen.map(({ id }) => `${id}`) },
          )
          for (const n of who) forgotten.add(n)
        }
        const rows = await dump(path)
        const left = some.flatMap(({ text }, n) => (rows.includes(text) ? [n] : []))
        expect(left).toEqual([...loaded].filter((n) => !forgotten.has(n)).sort())
      }),
      draws(4),
    )
  })
})
