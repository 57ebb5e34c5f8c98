import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { CommandError } from '../../../connector/cdk/program/error'
import { startSandbox } from '../../../connector/sandbox/start'
import { openDatabase } from '../../../connector/snapshot/store/database'
import { epochTime, operationPaths, postJson, startSmallSandbox } from '../../support/sandbox'

const folder = mkdtempSync(join(tmpdir(), 'sandbox-'))
const until = Date.parse('2026-06-01T00:00:00Z')

const refusalOf = async (options: Parameters<typeof startSandbox>[0]): Promise<string> => {
  const error = await startSandbox(options).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  return error instanceof CommandError ? error.failure.message : `not refused: ${error}`
}

describe('a sandbox with a file for its data', () => {
  it('keeps the data from one start to the next', async () => {
    const db = join(folder, 'kept.duckdb')
    const first = await startSandbox({ db, reviews: 50, until })
    await first.churn({ change: 5, delete: 2, add: 3 })
    const before = await first.truth()
    await first.close()
    const second = await startSmallSandbox({ db, reviews: 9 })
    expect(await second.truth()).toEqual(before)
    await second.churn({ add: 3 })
    expect((await second.truth()).reviews).toHaveLength(54)
  })

  it.each([
    ['have the deleted rows under another name', 'ALTER TABLE restorable RENAME TO buried', 52],
    ['have no deleted rows', 'DROP TABLE restorable', 50],
  ])('takes files of older versions, which %s', async (_, sql, reviews) => {
    const db = join(folder, `older-${reviews}.duckdb`)
    const first = await startSandbox({ db, reviews: 52, until })
    await first.churn({ delete: 2 })
    await first.close()
    await runSql(db, sql)
    const second = await startSmallSandbox({ db })
    await second.churn({ restore: 2 })
    expect((await second.truth()).reviews).toHaveLength(reviews)
    await second.churn({ delete: 1 })
    await second.churn({ restore: 1 })
    expect((await second.truth()).reviews).toHaveLength(reviews)
  })

  it('refuses a file that has no data of a sandbox', async () => {
    const text = join(folder, 'text.duckdb')
    writeFileSync(text, 'hello '.repeat(1000))
    expect(await refusalOf({ db: text })).toContain('is not a DuckDB file')
    const json = join(folder, 'keep.json')
    writeFileSync(json, '{"a":1}')
    expect(await refusalOf({ db: json })).toContain('is not a DuckDB file')
    expect(await refusalOf({ db: '' })).toContain('is empty')
    expect(await refusalOf({ from: 'ducklake:postgres:password=hunter2xyz' })).toMatch(/^An address.*not shown/)
    const other = join(folder, 'other.duckdb')
    await runSql(other, 'CREATE TABLE mine (a INTEGER)')
    expect(await refusalOf({ db: other })).toContain('tables that do not belong to a sandbox')
  })
})

const runSql = async (path: string, sql: string): Promise<void> => {
  const opened = await openDatabase(path)()
  if (E.isLeft(opened)) throw new Error(opened.left.message)
  await opened.right.run(sql)
  opened.right.close()
}

/** A file as `feedback snapshot` writes it: typed columns, objects as JSON, engagements under one name. */
const createSnapshot = async (name: string): Promise<string> => {
  const path = join(folder, name)
  const contents =
    '[{"id":90071992547409933,"question":"Review","response":"So very kind",' +
    '"questionType":"Free Form (Text Area)","questionCode":"COMMENT","noOfSentiments":1,' +
    '"sentiments":[{"id":900719925474099301,"reviewId":9007199254740993,"score":5.0}]}]'
  await runSql(
    path,
    `CREATE TABLE reviews (
       id BIGINT, "modifiedTime" TIMESTAMPTZ, "surveyBarCode" VARCHAR,
       location JSON, provider JSON, source JSON, avatar JSON,
       "mentionTime" TIMESTAMPTZ, rating DOUBLE, "reviewScore" DOUBLE,
       contents JSON, "taskDetails" JSON, "visitRecordId" VARCHAR,
       "textAnalytics" JSON, brand JSON, engagements JSON, unknown_attributes JSON,
       _ab_cdc_deleted_at TIMESTAMPTZ, _airbyte_raw_id UUID);
     INSERT INTO reviews VALUES
       (9007199254740993, '2026-05-01 10:00:00.123Z', 'SB1',
        '{"id":77,"name":"Old Mill"}', '{"id":8,"name":"Ada","npi":"123"}', '{"id":5,"name":"Forum"}',
        NULL, '2026-04-30 10:00:00Z', 4.0, 5.0, '${contents}', NULL, 'V1', NULL,
        '[{"id":1,"name":"B"}]',
        '[{"engagement":"Thanks"}]', '{"mood":{"a":{"b":1}},"x":2}', NULL, uuid()),
       (2, '2026-05-02 10:00:00Z', NULL, '{"id":77,"name":"New Mill"}', NULL, '{"id":101,"name":"Survey"}',
        NULL, NULL, 0.0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, uuid()),
       (3, '2026-05-03 10:00:00Z', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, now(), uuid());
     CREATE TABLE deleted_reviews (id BIGINT, "modifiedTime" TIMESTAMPTZ);
     INSERT INTO deleted_reviews VALUES (3, '2026-05-03 10:00:00Z');`,
  )
  return path
}

describe('a sandbox from a snapshot', () => {
  it('exports each review as the snapshot has it', async () => {
    const sandbox = await startSmallSandbox({ from: await createSnapshot('read.duckdb') })
    const page = await postJson(sandbox, operationPaths.exportReviews, {
      modifiedTimeFrom: epochTime,
      additionalFields: ['brand', 'visitRecordId'],
    })
    const [text] = (await page.text()).split(',"filter"')
    expect(text).toBe(
      '{"reviews":[{"id":9007199254740993,"modifiedTime":"2026-05-01T10:00:00.123Z","surveyBarCode":"SB1",' +
        '"location":{"id":77,"name":"Old Mill"},"provider":{"id":8,"name":"Ada","npi":"123"},' +
        '"source":{"id":5,"name":"Forum"},' +
        '"mentionTime":"2026-04-30T10:00:00.000Z","rating":4.0,"reviewScore":5.0,' +
        '"contents":[{"id":90071992547409933,"question":"Review","response":"So very kind",' +
        '"questionType":"Free Form (Text Area)","questionCode":"COMMENT","noOfSentiments":1,' +
        '"sentiments":[{"id":900719925474099301,"reviewId":9007199254740993,"score":5.0}]}],' +
        '"engagements":[{"engagement":"Thanks"}],' +
        '"mood":{"a":{"b":1}},"x":2,"visitRecordId":"V1","brand":[{"id":1,"name":"B"}]},{"id":2,' +
        '"modifiedTime":"2026-05-02T10:00:00.000Z","location":{"id":77,"name":"New Mill"},' +
        '"source":{"id":101,"name":"Survey"},"rating":0.0}]',
    )
    expect((await sandbox.truth()).deleted).toEqual([{ id: '3', modifiedTime: '2026-05-03T10:00:00.000Z' }])
  })

  it('answers the other operations from the snapshot, and changes its data', async () => {
    const sandbox = await startSmallSandbox({ from: await createSnapshot('live.duckdb'), now: () => until })
    const answer = await postJson(sandbox, operationPaths.retrieveReviews, { locationId: '77' })
    expect(await answer.json()).toMatchObject({
      data: {
        entities: [
          {
            name: 'New Mill',
            totalCommentCount: 1,
            reviews: [{ documentId: 9007199254740992, comment: { comment: 'So very kind', wordCount: 3 } }],
          },
        ],
      },
    })
    await postJson(sandbox, operationPaths.syncLocations, [{ code: 'LOC-77', active: true, name: 'Newest Mill' }])
    await sandbox.churn({ change: 2, add: 20 })
    const { reviews } = await sandbox.truth()
    expect(reviews).toHaveLength(22)
    const [imported] = reviews.filter(({ id }) => id === '9007199254740993').map(({ json }) => json)
    expect(imported).toContain('"id":90071992547409933')
    expect(JSON.parse(imported ?? '')).toMatchObject({
      modifiedTime: '2026-06-01T00:00:00.000Z',
      location: { name: 'Newest Mill' },
      mood: { a: { b: 1 } },
    })
    expect(reviews.every(({ json }) => JSON.parse(json).location.name === 'Newest Mill')).toBe(true)
  })

  it('takes columns of any name and type as data', async () => {
    const from = await createSnapshot('odd.duckdb')
    const names = [`it's`, `'), ''); DROP TABLE reviews; --`, 'a"b', 'back\\slash', 'Straße 💊']
    await runSql(
      from,
      [
        ...names.map(
          (name) => `ALTER TABLE reviews ADD COLUMN "${name.replaceAll('"', '""')}" VARCHAR DEFAULT 'it''s "x"'`,
        ),
        `ALTER TABLE reviews ADD COLUMN day DATE DEFAULT DATE '2026-01-02'`,
        `ALTER TABLE reviews ADD COLUMN list INTEGER[] DEFAULT [1, 2]`,
      ].join(';'),
    )
    const sandbox = await startSmallSandbox({ from })
    const page = await postJson(sandbox, operationPaths.exportReviews, { modifiedTimeFrom: epochTime })
    const { reviews } = (await page.json()) as { readonly reviews: ReadonlyArray<Record<string, unknown>> }
    expect(reviews).toHaveLength(2)
    for (const review of reviews)
      expect(review).toMatchObject({
        ...Object.fromEntries(names.map((name) => [name, `it's "x"`])),
        day: '2026-01-02',
        list: [1, 2],
      })
  })

  it('reads no other file through a view of the snapshot', async () => {
    const from = join(folder, 'view.duckdb')
    await runSql(
      from,
      `CREATE VIEW reviews AS SELECT 1 AS id, now() AS "modifiedTime", content AS x FROM read_text('${__filename}')`,
    )
    expect(await refusalOf({ from })).toContain('has no reviews')
  })

  it('refuses a file that is not a snapshot', async () => {
    expect(await refusalOf({ from: join(folder, 'nowhere.duckdb') })).toContain('nowhere.duckdb cannot be opened')
    const empty = join(folder, 'empty.duckdb')
    await runSql(empty, 'CREATE TABLE mine (a INTEGER)')
    expect(await refusalOf({ from: empty })).toContain('has no reviews')
    const db = join(folder, 'full.duckdb')
    await (await startSandbox({ db, reviews: 1 })).close()
    expect(await refusalOf({ db, from: empty })).toContain('has data already')
  })
})
