import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { personConventions } from '../../connector/cdk/program/exit'
import { auditCommand } from '../../connector/cli/audit'
import { stateCommand } from '../../connector/cli/state'
import { syncCommand } from '../../connector/cli/sync'
import { verifyCommand } from '../../connector/cli/verify'
import { auditedStreams } from '../../connector/runtime'
import type { Sandbox } from '../../connector/sandbox/start'
import { newTempPath } from '../support/files'
import { runCommand } from '../support/run-command'
import { reviewsConfig, startChangingSandbox, startTestSandbox } from '../support/sandbox'
import { useDatabase } from '../support/snapshot-messages'

const folder = mkdtempSync(join(tmpdir(), 'audit-'))
const path = (name: string): string => join(folder, name)
const config = path('config.json')
const db = path('reviews.duckdb')
const state = path('state.json')
let sandbox: Sandbox

const settings = (service = sandbox) => reviewsConfig(service, { page_size: 50 })

const useDb = <A>(body: (run: (sql: string) => Promise<ReadonlyArray<unknown>>) => Promise<A>): Promise<A> =>
  useDatabase(db, 'change', ({ query }) => body(query))

const audit = (...args: ReadonlyArray<string>) =>
  runCommand(auditCommand, ['--config', config, '--dialect', 'duckdb', '--loader', 'snapshot', ...args])

/** What the statement answers for a table of the file. */
const answer = async (...args: ReadonlyArray<string>) => {
  const { status, stdout, stderr } = await audit(...args)
  expect([status, stderr]).toEqual([0, ''])
  return useDb((run) => run(stdout))
}

beforeAll(async () => {
  sandbox = await startTestSandbox({ reviews: 300, until: Date.now() - 3_600_000 })
  writeFileSync(config, JSON.stringify(settings()))
  expect(await runCommand(syncCommand, ['--config', config, '--db', db])).toMatchObject({ status: 0 })
  expect(await runCommand(stateCommand, ['export', '--db', db, '--out', state])).toMatchObject({ status: 0 })
})
afterAll(async () => {
  await sandbox.close()
  rmSync(folder, { recursive: true })
})

describe('feedback audit', () => {
  it('writes what the service has as a seed of dbt, whose digests are those of the table', async () => {
    const seed = path('seed.csv')
    expect(await audit('--stream', 'review_contents', '--table', 't', '--seed', seed, '--buckets', '8')).toMatchObject({
      status: 0,
      stdout: '',
    })
    const [head, scope, ...lines] = readFileSync(seed, 'utf8').trimEnd().split('\n')
    expect(head).toBe('expected')
    expect(scope).toMatch(/^scope 946684800000 \d{13} 8 review_contents$/)
    const expected = await useDb((run) =>
      run(`WITH versions AS (
        SELECT
          "reviewId"::VARCHAR AS id,
          md5("reviewId"::VARCHAR) AS digits,
          md5("reviewId" || ':' || epoch_ms("reviewModifiedTime")) AS version,
          count(*) AS rows
        FROM review_contents GROUP BY ALL
      ), hashes AS (
        SELECT
          ('0x' || digits[1:15])::BIGINT % 8 AS bucket,
          rows,
          ('0x' || digits[18:32])::BIGINT::HUGEINT AS id,
          ('0x' || version[1:15])::BIGINT::HUGEINT AS version
        FROM versions
      )
      SELECT concat_ws(' ', 'bucket', bucket, count(*), sum(rows), sum(id), sum(version), sum(version * rows)) AS line
      FROM hashes
      GROUP BY bucket`),
    )
    expect([...lines].sort()).toEqual(expected.map((row) => (row as { readonly line: string }).line).sort())
    const refused = await audit('--stream', 'reviews', '--table', 't', '--seed', seed, '--ids', '1')
    expect(refused).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('--seed needs a stream made from reviews'),
    })
  })

  it.each(auditedStreams)('finds a table of %s equal that holds what the service has', async (stream) => {
    const { stdout } = await audit('--stream', stream, '--table', stream, '--json')
    const { reviews, rows, sql, cutoff } = JSON.parse(stdout)
    const [count] = await useDb((run) =>
      run(
        `SELECT
          count(*)::INTEGER AS rows,
          count(DISTINCT "${stream.startsWith('review_') ? 'reviewId' : 'id'}")::INTEGER AS reviews
        FROM ${stream}`,
      ),
    )
    expect({ reviews, rows }).toEqual({ ...(count as object) })
    expect(sql).toContain(`-- Compares ${stream} with the stream ${stream} of the service, as of ${cutoff}.`)
    expect(await useDb((run) => run(sql))).toEqual([])
  })

  it.each(auditedStreams)('finds the content of %s equal that the snapshot holds', async (stream) => {
    const { stdout, stderr } = await audit('--stream', stream, '--table', stream, '--deep', '--json')
    expect(stderr).toBe('')
    const { sql, columns } = JSON.parse(stdout)
    expect(sql).toContain(`-- Compares the content of each row: ${columns[0] ?? 'nothing'}`)
    expect(await useDb((run) => run(sql))).toEqual([])
    const ids = await answer(
      '--stream',
      stream,
      '--table',
      stream,
      '--deep',
      '--buckets',
      '8',
      '--ids',
      '0,1,2,3,4,5,6,7',
    )
    expect(ids).toEqual([])
  })

  it('names the bucket and the review that is missing, extra, stale or doubled', async () => {
    const [first, second, third] = (await useDb((run) =>
      run('SELECT id::VARCHAR AS id FROM reviews ORDER BY id LIMIT 3'),
    )) as ReadonlyArray<{ readonly id: string }>
    await useDb((run) => run('CREATE TABLE damaged AS FROM reviews'))
    await useDb(async (run) => {
      await run(`DELETE FROM damaged WHERE id = ${first?.id}`)
      await run(`INSERT INTO damaged FROM damaged WHERE id = ${second?.id}`)
      await run(`UPDATE damaged SET "modifiedTime" = "modifiedTime" - INTERVAL 1 MILLISECOND WHERE id = ${third?.id}`)
      await run(`INSERT INTO damaged (id, "modifiedTime") VALUES (7, '2020-01-01')`)
    })
    const buckets = (await answer('--stream', 'reviews', '--table', 'main.damaged')) as ReadonlyArray<{
      readonly bucket: bigint
    }>
    const ids = buckets.map(({ bucket }) => String(bucket)).join(',')
    expect(await answer('--stream', 'reviews', '--table', 'main.damaged', '--ids', ids)).toMatchObject([
      { id: '7', difference: 'extra', expected_rows: 0, found_rows: 1 },
      { id: first?.id, difference: 'missing', expected_rows: 1, found_rows: 0 },
      { id: second?.id, difference: 'doubled', expected_rows: 1, found_rows: 2 },
      { id: third?.id, difference: 'stale' },
    ])
    await useDb((run) => run('DROP TABLE damaged'))
  })

  it('names the columns whose content was changed, and leaves out those that are not to be compared', async () => {
    await useDb((run) => run('CREATE TABLE damaged AS FROM review_contents; CREATE TABLE lean AS FROM reviews'))
    const [longest] = (await useDb((run) =>
      run(
        `
          SELECT "reviewId"::VARCHAR AS id, response
          FROM damaged
          WHERE response IS NOT NULL
          ORDER BY length(response) DESC LIMIT 1`,
      ),
    )) as ReadonlyArray<{ readonly id: string; readonly response: string }>
    const cut = longest?.response.slice(0, -1).replaceAll("'", "''")
    await useDb(async (run) => {
      await run(
        `
          UPDATE damaged SET response = '${cut}', "questionCode" = coalesce("questionCode", '') || ' '
          WHERE "reviewId" = ${longest?.id}`,
      )
      await run('ALTER TABLE lean DROP COLUMN brand; ALTER TABLE lean ALTER location TYPE VARCHAR USING NULL')
    })
    const contents = ['--stream', 'review_contents', '--table', 'damaged', '--buckets', '1', '--deep']
    expect(await answer(...contents)).toMatchObject([{ bucket: 0, difference: 'changed' }])
    expect(await answer(...contents, '--ids', '0')).toMatchObject([
      { id: longest?.id, difference: 'changed', changed_columns: 'response questionCode' },
    ])
    expect(await answer(...contents, '--without', 'response,questionCode')).toEqual([])
    const reviews = ['--stream', 'reviews', '--table', 'lean', '--deep', '--without', 'brand, location']
    expect(await answer(...reviews)).toEqual([])
    await useDb((run) => run('DROP TABLE damaged; DROP TABLE lean'))
  })

  it('expects the attributes that privacy drops to be absent, and the hashed ones to be hashed', async () => {
    const [hidden, file] = [path('hidden.json'), path('hidden.duckdb')]
    const privacy = {
      drop: ['export.location.name'],
      hash: ['export.surveyBarCode', 'export.source.name'],
      hash_key: 'k'.repeat(32),
    }
    writeFileSync(hidden, JSON.stringify({ ...settings(), privacy }))
    const select = ['--select', 'reviews']
    expect(await runCommand(syncCommand, ['--config', hidden, '--db', file, ...select])).toMatchObject({ status: 0 })
    const changed = async (settingsFile: string) => {
      const table = ['--stream', 'reviews', '--table', 'reviews', '--deep', '--buckets', '1', '--ids', '0']
      const { stdout } = await audit(...table, '--config', settingsFile)
      const rows = await useDatabase(file, 'read', ({ query }) => query(stdout))
      return [...new Set(rows.flatMap((row) => String(row.changed_columns).split(' ')))].sort()
    }
    expect(await changed(hidden)).toEqual([])
    expect(await changed(config)).toEqual(['location.name', 'source.name', 'surveyBarCode'])
  })

  it('holds a table against the service as of the state of its last load, whatever has changed since', async () => {
    await sandbox.churn({ change: 5, delete: 2, add: 3 })
    const [lost] = (await useDb((run) =>
      run(`
      CREATE TABLE loaded AS FROM reviews;
      SELECT id::VARCHAR AS id FROM reviews ORDER BY id LIMIT 1`),
    )) as ReadonlyArray<{ readonly id: string }>
    expect(lost).toBeDefined()
    expect(await answer('--stream', 'reviews', '--table', 'loaded', '--state', state)).toEqual([])
    for (const stream of auditedStreams.filter((name) => name !== 'reviews'))
      expect(await answer('--stream', stream, '--table', stream, '--state', state), stream).toEqual([])
    await useDb((run) => run('DROP TABLE loaded'))
  })

  it('repairs what it finds, and the run that starts from the repaired state reads little', async () => {
    const folderOfRepair = path('repair')
    const ids = (
      (await useDb((run) => run('SELECT id::VARCHAR AS id FROM reviews ORDER BY hash(id) LIMIT 6'))) as ReadonlyArray<{
        readonly id: string
      }>
    ).map(({ id }) => id)
    const [dropped, doubled, stale, newer, alsoDropped, changed] = ids
    await useDb(async (run) => {
      await run(`DELETE FROM reviews WHERE id IN (${dropped}, ${alsoDropped})`)
      await run(`INSERT INTO reviews FROM reviews WHERE id = ${doubled}`)
      await run(`UPDATE reviews SET "modifiedTime" = "modifiedTime" - INTERVAL 1 DAY WHERE id = ${stale}`)
      await run(`UPDATE reviews SET "modifiedTime" = '2090-01-01' WHERE id = ${newer}`)
      await run(`INSERT INTO reviews (id, "modifiedTime") VALUES (7, '2020-01-01')`)
      await run(`UPDATE reviews SET rating = coalesce(rating, 0) + 0.001 WHERE id = ${changed}`)
    })
    const table = ['--stream', 'reviews', '--table', 'reviews', '--state', state, '--deep']
    const buckets = (await answer(...table)) as ReadonlyArray<{ readonly bucket: bigint }>
    const named = await answer(...table, '--ids', buckets.map(({ bucket }) => String(bucket)).join(','))
    const csv = [
      'ID,DIFFERENCE',
      ...(named as ReadonlyArray<{ readonly id: string; readonly difference: string }>).map(
        (row) => `${row.id},${row.difference}`,
      ),
    ]
    writeFileSync(path('answer.csv'), csv.join('\n'))
    const smallPages = path('small-pages.json')
    writeFileSync(smallPages, JSON.stringify({ ...settings(), page_size: 10 }))
    expect(
      await audit(...table, '--config', smallPages, '--repair', path('answer.csv'), '--folder', folderOfRepair),
    ).toMatchObject({ status: 0, stdout: '', stderr: expect.stringContaining('To repair') })
    await useDb((run) => run(readFileSync(join(folderOfRepair, 'delete.sql'), 'utf8')))
    for (const file of ['state.json', 'singer-state.json'])
      expect(
        await runCommand(stateCommand, ['import', '--db', db, '--state', join(folderOfRepair, file)]),
      ).toMatchObject({ status: 0 })
    const before = sandbox.stats().requests.exportReviews ?? 0
    const { status, stdout } = await runCommand(syncCommand, [
      '--config',
      smallPages,
      '--db',
      db,
      '--select',
      'deleted_reviews,reviews',
      '--json',
    ])
    expect(status).toBe(0)
    // The six that were damaged, and what has changed since the state.
    expect(JSON.parse(stdout)[1].records).toBeLessThanOrEqual(6 + 8)
    expect((sandbox.stats().requests.exportReviews ?? 0) - before).toBeLessThan(26)
    expect(await runCommand(stateCommand, ['export', '--db', db, '--out', state])).toMatchObject({ status: 0 })
    expect(await answer(...table)).toEqual([])
  })

  it.each([
    ['no row', 'id,difference\n', 'There is nothing to repair'],
    ['nothing', '', 'is empty, as after a client that failed'],
    ['another file', 'a,b\n1,2', 'has no columns bucket and difference, or id and difference'],
    ['a bucket statement', 'bucket,difference\n1,stale', 'names buckets. Give the answer to the statement of --ids'],
    ['half a JSON', '[{"id": 1', 'neither a list of objects nor one object per line'],
  ])('says what to do where the answer to repair is %s', async (_, text, message) => {
    writeFileSync(path('wrong.csv'), text)
    const { stderr } = await audit(
      '--stream',
      'reviews',
      '--table',
      'reviews',
      '--repair',
      path('wrong.csv'),
      '--folder',
      path('none'),
    )
    expect(stderr).toContain(message)
  })

  describe('--answer', () => {
    const judge = (text: string, ...args: ReadonlyArray<string>) =>
      runCommand(auditCommand, ['--answer', '-', ...args], { stdin: text, fail: personConventions.reportFailure })

    it('says that the table is equal where the answer has no rows', async () => {
      const equal = { status: 0, stdout: 'The table equals the service.\n', stderr: '' }
      expect(await judge('bucket,difference,expected_reviews\n')).toEqual(equal)
      expect(await judge('[]')).toEqual(equal)
      expect(JSON.parse((await judge('[]', '--json')).stdout)).toMatchObject({ equal: true, differences: 0 })
    })

    it('names the kinds and what to give --ids, with the status 1', async () => {
      const text = 'bucket,difference\n17,missing\n2048,stale\n30,missing\n'
      const { status, stdout } = await judge(text)
      expect(status).toBe(1)
      expect(stdout).toBe(
        'The table differs from the service in 3 buckets:\n  missing: ' +
          '2\n  stale: 1\nName what differs: --ids 17,2048,30\n',
      )
      const printed = await judge(text, '--json')
      expect([printed.status, JSON.parse(printed.stdout)]).toEqual([
        1,
        { equal: false, of: 'buckets', differences: 3, kinds: { missing: 2, stale: 1 }, buckets: ['17', '2048', '30'] },
      ])
      writeFileSync(path('answer.jsonl'), '{"ID": 9007199254740993, "DIFFERENCE": "extra"}\n')
      expect(await runCommand(auditCommand, [`--answer=${path('answer.jsonl')}`])).toMatchObject({
        status: 1,
        stdout: 'The table differs from the service in 1 review:\n  extra: 1\nRepair them: --repair with this answer\n',
      })
    })

    it('ends with 78 if the file is not an answer, and with 2 if the command line is wrong', async () => {
      expect(await judge('')).toMatchObject({ status: 78, stdout: '' })
      expect(await judge('ERROR: relation "reviews" does not exist')).toMatchObject({ status: 78, stdout: '' })
      expect(await runCommand(auditCommand, ['--answer', path('no-such-file')])).toMatchObject({
        status: 1,
        stderr: expect.stringContaining('cannot be read (ENOENT)'),
      })
      expect(await judge('[]', '--config', 'config.json')).toMatchObject({ status: 2 })
    })
  })

  it('leaves out reviews whose deletion another table has', async () => {
    await useDb(async (run) => {
      await run(`CREATE TABLE undeleted AS FROM reviews`)
      await run(
        `INSERT INTO undeleted (id, "modifiedTime") SELECT id, "modifiedTime" - INTERVAL 1 HOUR FROM deleted_reviews`,
      )
    })
    const table = ['--stream', 'reviews', '--table', 'undeleted', '--state', state]
    expect((await answer(...table)).length).toBeGreaterThan(0)
    expect(await answer(...table, '--deletions', 'deleted_reviews')).toEqual([])
    await useDb((run) => run('DROP TABLE undeleted'))
  })

  it.each([
    [['--stream', 'review', '--table', 't'], 'Did you mean reviews?'],
    [['--stream', 'entity_ratings', '--table', 't'], '--stream must be one of'],
    [['--stream', 'reviews', '--table', 'a b; DROP TABLE c'], '--table must be the name of a table in SQL'],
    [['--stream', 'reviews', '--table', '"a\nDROP TABLE b"'], '--table must be the name of a table in SQL'],
    [['--stream', 'reviews', '--table', 't', '--ids', '4096'], '--ids must be a whole number from 0 to 4095'],
    [['--stream', 'reviews', '--table', 't', '--buckets', '0'], '--buckets must be a whole number from 1'],
    [['--stream', 'reviews', '--table', 't', '--id-type', 'numbr'], 'Did you mean number?'],
    [['--stream', 'reviews', '--table', 't', '--cutoff', 'yesterday'], '--cutoff must be a time such as'],
    [['--stream', 'reviews', '--table', 't', '--cutoff', '2026-01-01T00:00:00Z', '--state', 'x'], 'not both'],
    [['--stream', 'reviews', '--table', 't', '--time-zone', "x' OR"], '--time-zone must be a zone'],
    [['--stream', 'reviews', '--table', 't', '--without', 'brand'], '--without needs --deep'],
    [
      ['--stream', 'reviews', '--table', 't', '--deep', '--without', 'brnd'],
      '--without must be of surveyBarCode, location.id',
    ],
    [['--stream', 'reviews', '--table', 't', '--dialect', 'mysql'], '--dialect must be one of'],
  ])('refuses %j', async (args, message) => {
    const { status, stdout, stderr } = await runCommand(
      auditCommand,
      ['--config', config, ...(args.includes('--dialect') ? [] : ['--dialect', 'duckdb']), ...args],
      { fail: personConventions.reportFailure },
    )
    expect([status, stdout]).toEqual([2, ''])
    expect(stderr).toContain(message)
  })

  it(
    'needs a state of the stream from a run that has ended, a ' +
      'config without shares, and a cutoff after the start date',
    async () => {
      const other = path('other.json')
      writeFileSync(other, JSON.stringify({ comments: { fromDate: '2026-01-01' } }))
      const failed = async (args: ReadonlyArray<string>) => {
        const { status, stdout, stderr } = await runCommand(
          auditCommand,
          ['--dialect', 'snowflake', '--stream', 'reviews', '--table', 't', ...args],
          { fail: personConventions.reportFailure },
        )
        expect([status, stdout]).toEqual([78, ''])
        return stderr
      }
      expect(await failed(['--config', config, '--state', other])).toContain('has no state of reviews')
      const unfinished = { modifiedTimeFrom: settings().start_date, filters: '', scan: {} }
      writeFileSync(other, JSON.stringify({ singer_state: { bookmarks: { reviews: unfinished } } }))
      expect(await failed(['--config', config, '--state', other])).toContain('an unfinished first run')
      const later = { modifiedTimeFrom: '2026-01-01T00:00:00.000Z', startDate: '2025-12-31T00:00:00.000Z' }
      writeFileSync(other, JSON.stringify({ singer_state: { bookmarks: { reviews: later } } }))
      expect(await failed(['--config', config, '--state', other])).toContain('its table lacks the rows in between')
      writeFileSync(other, JSON.stringify({ ...settings(), partition: { index: 0, count: 2 } }))
      expect(await failed(['--config', other])).toContain('partition')
      writeFileSync(
        other,
        JSON.stringify({ ...settings(), start_date: new Date(Date.now() + 86_400_000).toISOString() }),
      )
      expect(await failed(['--config', other, '--state', state])).toContain('nothing would be compared')
      expect(await failed(['--config', config, '--cutoff', '1999-01-01T00:00:00Z'])).toContain(
        'nothing would be compared',
      )
    },
  )

  it('leaves out rows marked as deleted where the table marks them, which that of the parts does not', async () => {
    const marking = path('tombstones.json')
    writeFileSync(marking, JSON.stringify({ ...settings(), deletes: 'tombstones' }))
    const statement = async (stream: string) =>
      (
        await runCommand(auditCommand, [
          '--config',
          marking,
          '--dialect',
          'postgres',
          '--stream',
          stream,
          '--table',
          't',
        ])
      ).stdout
    expect(await statement('reviews')).toContain('WHERE loaded."_ab_cdc_deleted_at" IS NULL')
    expect(await statement('review_tasks')).toContain('FROM t AS loaded')
    expect(await statement('review_tasks')).not.toContain('_ab_cdc_deleted_at')
  })

  it('asks for few pages more than there are', async () => {
    const large = await startTestSandbox({ reviews: 8_000 })
    const largeConfig = path('large.json')
    const credentials = { auth_type: 'access_token', access_token: large.accessToken }
    writeFileSync(largeConfig, JSON.stringify({ ...settings(), base_url: large.url, credentials, page_size: 200 }))
    const { stdout } = await audit('--config', largeConfig, '--stream', 'reviews', '--table', 'reviews', '--json')
    expect(JSON.parse(stdout)).toMatchObject({ reviews: 8_000 })
    const { exportReviews = 0, exportDeletedReviews = 0 } = large.stats().requests
    expect(exportReviews + exportDeletedReviews).toBeLessThanOrEqual(1.3 * 40)
    await large.close()
  })

  it('writes the statement into a file, but never over a database', async () => {
    const out = path('audit.sql')
    expect(await audit('--stream', 'reviews', '--table', 'reviews', '--out', out)).toMatchObject({
      status: 0,
      stdout: '',
    })
    expect(readFileSync(out, 'utf8')).toContain('-- Compares reviews')
    expect(await audit('--stream', 'reviews', '--table', 'reviews', '--out', db)).toMatchObject({ status: 1 })
    expect(existsSync(db)).toBe(true)
  })
})

describe('a service that changes with every page', () => {
  it('is read to an end, by an audit and by verify, without a false alarm', async () => {
    const { sandbox: changing } = await startChangingSandbox({ reviews: 300, churn: { change: 1, add: 1 } })
    try {
      const [settingsPath, file, saved] = [newTempPath('json'), newTempPath('duckdb'), newTempPath('json')]
      writeFileSync(settingsPath, JSON.stringify(settings(changing)))
      const sync = ['--config', settingsPath, '--db', file, '--select', 'reviews,deleted_reviews']
      expect(await runCommand(syncCommand, sync)).toMatchObject({ status: 0 })
      expect(await runCommand(stateCommand, ['export', '--db', file, '--out', saved])).toMatchObject({ status: 0 })
      const requests = changing.stats().exports
      const table = ['--stream', 'reviews', '--table', 'reviews', '--dialect', 'duckdb', '--loader', 'snapshot']
      const printed = await runCommand(auditCommand, ['--config', settingsPath, '--state', saved, ...table])
      expect(printed).toMatchObject({ status: 0, stderr: '' })
      expect(changing.stats().exports - requests).toBeLessThan(300)
      expect(await useDatabase(file, 'read', ({ query }) => query(printed.stdout))).toEqual([])
      expect(await runCommand(verifyCommand, ['--config', settingsPath, '--db', file])).toMatchObject({ status: 0 })
    } finally {
      await changing.close()
    }
  })
})
