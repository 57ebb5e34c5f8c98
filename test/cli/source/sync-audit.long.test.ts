import { createHash } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import { sourceReadCommand, tapCommand } from '../../../connector/cli/feedback-source'
import { syncCommand } from '../../../connector/cli/sync'
import { verifyCommand } from '../../../connector/cli/verify'
import { parseExact } from '../../support/destination'
import { newTempPath, writeTempFile } from '../../support/files'
import { airbyteState, recordTexts, singerLines, singerState } from '../../support/lines'
import { runCommand } from '../../support/run-command'
import { applicationCredentials, sandboxConfig, startChangingSandbox } from '../../support/sandbox'
import { openSnapshotFile } from '../../support/snapshot-messages'

type Data = Readonly<Record<string, unknown>>
type SentRow = { readonly data: Data; readonly at: number }

/** By stream: its primary key, and what its hashes are made of. */
const keys: Readonly<Record<string, readonly [key: ReadonlyArray<string>, hashed: ReadonlyArray<string>]>> = {
  deleted_reviews: [['id'], ['id', 'modifiedTime']],
  reviews: [['id'], ['id', 'modifiedTime']],
  locations: [['id'], ['id', 'reviewModifiedTime']],
  providers: [['id'], ['id', 'reviewModifiedTime']],
  sources: [['id'], ['id', 'reviewModifiedTime']],
  categories: [['id'], ['id', 'reviewModifiedTime']],
  questions: [['id'], ['id', 'reviewModifiedTime']],
  review_contents: [
    ['reviewId', 'id'],
    ['reviewId', 'reviewModifiedTime'],
  ],
  review_sentiments: [
    ['reviewId', 'contentId', 'id'],
    ['reviewId', 'reviewModifiedTime'],
  ],
  review_liabilities: [
    ['reviewId', 'contentId', 'liabilityId'],
    ['reviewId', 'reviewModifiedTime'],
  ],
  review_tasks: [['reviewId'], ['reviewId', 'reviewModifiedTime']],
  review_engagements: [
    ['reviewId', 'position'],
    ['reviewId', 'reviewModifiedTime'],
  ],
  comments: [
    ['entityType', 'entityId', 'id'],
    ['entityType', 'entityId', 'id', 'mentionTime'],
  ],
  transparency_reviews: [
    ['entityType', 'entityId', 'documentId'],
    ['entityType', 'entityId', 'documentId', 'mentionTime'],
  ],
  entity_ratings: [
    ['entityType', 'entityId'],
    ['entityType', 'entityId'],
  ],
}
const deletedAt = ['_ab_cdc_deleted_at', '_sdc_deleted_at']

/**
 * The rows of the newest version of each parent that are not deleted, and the sum of their hashes, computed only from
 * the rows.
 */
const expectedOf = (stream: string, sent: ReadonlyArray<SentRow>) => {
  const [key, hashed] = keys[stream] ?? [[], []]
  const timeColumn = hashed.find((name) => /Time$/.test(name))
  const timeOf = ({ data }: SentRow) => (timeColumn === undefined ? 0 : Date.parse(String(data[timeColumn])))
  const parentOf = ({ data }: SentRow) =>
    hashed.flatMap((name) => (name === timeColumn ? [] : [String(data[name])])).join(':')
  const newest = new Map<string, number>()
  for (const row of sent) newest.set(parentOf(row), Math.max(timeOf(row), newest.get(parentOf(row)) ?? 0))
  const current = sent.filter((row) => timeOf(row) === newest.get(parentOf(row)))
  const kept = current.filter(({ data }) => deletedAt.every((name) => (data[name] ?? null) === null))
  const rows = new Map(kept.map((row) => [key.map((name) => String(row.data[name])).join('\n'), row]))
  const hashes = [...rows.values()].map((row) =>
    BigInt(
      `0x${createHash('md5')
        .update(timeColumn === undefined ? parentOf(row) : `${parentOf(row)}:${timeOf(row)}`)
        .digest('hex')
        .slice(0, 15)}`,
    ),
  )
  return {
    rows: rows.size,
    digest: String(hashes.reduce((sum, hash) => sum + hash, 0n)),
    digestColumns: hashed.join(','),
  }
}

/** What a run printed, in either protocol; ids keep every digit. */
const sentRows = (stdout: string, stream: string): ReadonlyArray<SentRow> => {
  const times = stdout
    .split('\n')
    .filter((line) => line.startsWith('{"type":"RECORD"') && line.slice(0, 80).includes(`"stream":"${stream}",`))
    .map(
      (line) =>
        Date.parse(/"time_extracted":"([^"]*)"}$/.exec(line)?.[1] ?? '') ||
        Number(/"emitted_at":(\d+)/.exec(line)?.[1]),
    )
  return recordTexts(stdout, stream).map((text, n) => ({ data: parseExact(text) as Data, at: times[n] ?? Number.NaN }))
}

/** Each record of the audit is what the rows say; returns the records by stream. */
const checkAudit = (stdout: string, names: ReadonlyArray<string>) => {
  const audits = recordTexts(stdout, 'sync_audit').map((text) => JSON.parse(text))
  expect(audits.map(({ stream }) => stream)).toEqual(names)
  const lines = stdout.split('\n').filter((line) => line.startsWith('{"type":"RECORD"'))
  expect(lines.slice(-names.length).every((line) => line.slice(0, 80).includes('"stream":"sync_audit"'))).toBe(true)
  for (const { stream, startedAt, endedAt, ...audit } of audits) {
    const sent = sentRows(stdout, stream)
    expect({ stream, ...audit }).toMatchObject({ stream, records: sent.length, ...expectedOf(stream, sent) })
    for (const { at } of sent) {
      expect(at).toBeGreaterThanOrEqual(Date.parse(startedAt))
      expect(at).toBeLessThanOrEqual(Date.parse(endedAt))
    }
  }
  return new Map(audits.map((audit) => [audit.stream, audit]))
}

const startService = async (more: object = {}) => {
  const changing = await startChangingSandbox({
    reviews: 250,
    order: 'ties',
    churn: { change: 2, delete: 1, add: 1, restore: 1 },
    ...more,
  })
  onTestFinished(() => changing.sandbox.close())
  return changing
}

/** `selected`: the attributes to select of each stream besides keys and cursors; by default all. */
const catalogOf = (names: ReadonlyArray<string>, selected: ReadonlyArray<string> = []) => {
  const json_schema = { properties: Object.fromEntries(selected.map((name) => [name, {}])) }
  return writeTempFile({ streams: names.map((name) => ({ stream: { name, json_schema }, sync_mode: 'incremental' })) })
}

const streams = Object.keys(keys)

const auditAttributes = ['cutoff', 'certified', 'resumed', 'records', 'rows', 'digest', 'digestColumns']

it.each<[string, ReadonlyArray<string>]>([
  ['separate', []],
  ['tombstones', []],
  ['tombstones', ['rating', 'endedAt', ...auditAttributes]],
])('an Airbyte source reports what it has sent, with deletes: %s, selecting %j', async (deletes, selected) => {
  const { sandbox, stopChanges } = await startService()
  const config = writeTempFile(
    sandboxConfig(sandbox, { audit: true, page_size: 50, entities: { location_ids: ['1001'] }, deletes }),
  )
  const args = ['--config', config, '--catalog', catalogOf(['sync_audit', ...streams], selected)]
  const first = await runCommand(sourceReadCommand, args)
  expect(first.status, first.stderr).toBe(0)
  const audits = checkAudit(first.stdout, streams)
  expect(audits.get('reviews')).toMatchObject({ certified: true, resumed: false })
  expect(Date.parse(audits.get('reviews').cutoff)).not.toBeNaN()
  expect(audits.get('entity_ratings')).toMatchObject({ certified: false, cutoff: null })
  stopChanges(600_000)
  await sandbox.churn({ change: 60, delete: 30, add: 5 })
  stopChanges(600_000)
  const state = writeTempFile(airbyteState(first.stdout))
  const second = await runCommand(sourceReadCommand, [...args, '--state', state])
  expect(second.status, second.stderr).toBe(0)
  const { rows, records } = checkAudit(second.stdout, streams).get('reviews')
  expect(rows).toBeLessThan(320)
  if (deletes === 'tombstones') expect(records).toBeGreaterThan(rows + 20)
})

it('a Singer tap does so too, from its catalog', async () => {
  const { sandbox } = await startService()
  const config = writeTempFile(
    sandboxConfig(sandbox, { audit: true, page_size: 50, entities: { location_ids: ['1001'] } }),
  )
  const { status, stdout, stderr } = await runCommand(tapCommand, ['--config', config])
  expect(status, stderr).toBe(0)
  checkAudit(stdout, streams)
  expect(
    singerLines(stdout)
      .filter(({ type }) => type === 'SCHEMA')
      .at(-1),
  ).toMatchObject({
    stream: 'sync_audit',
    key_properties: ['stream', 'startedAt'],
  })
  expect(singerState(stdout).bookmarks.sync_audit).toHaveProperty('readAt')
})

it('a snapshot has the table, whose digest is that of its rows, and verify accepts it', async () => {
  const { sandbox, stopChanges } = await startService()
  const config = writeTempFile(
    sandboxConfig(sandbox, { audit: true, page_size: 50, entities: { location_ids: ['1001'] } }),
  )
  const path = newTempPath('duckdb')
  const { status, stderr } = await runCommand(syncCommand, ['--config', config, '--db', path])
  expect(status, stderr).toBe(0)
  stopChanges(600_000)
  expect((await runCommand(syncCommand, ['--config', config, '--db', path])).status).toBe(0)
  const snapshot = await openSnapshotFile(path)
  const found = await snapshot.db.query(`
    SELECT a.stream, a.rows::VARCHAR AS rows, a.digest, count(r.id)::VARCHAR AS found_rows,
      coalesce(
        sum(('0x' || md5(r.id || ':' || epoch_ms(r."modifiedTime"))[1:15])::BIGINT::HUGEINT),
        0
      )::VARCHAR AS found_digest
    FROM (SELECT * FROM sync_audit WHERE stream = 'reviews' ORDER BY "endedAt" DESC LIMIT 1) a
    LEFT JOIN reviews r ON r._airbyte_extracted_at BETWEEN a."startedAt" AND a."endedAt"
    GROUP BY ALL`)
  const audits = await snapshot.db.query('SELECT count(*)::VARCHAR AS n FROM sync_audit')
  snapshot.db.close()
  expect(audits).toEqual([{ n: String(2 * streams.length) }])
  expect(found).toHaveLength(1)
  expect(found[0]).toMatchObject({ rows: found[0]?.found_rows, digest: found[0]?.found_digest })
  expect(Number(found[0]?.rows)).toBeGreaterThan(0)
  const verified = await runCommand(verifyCommand, ['--db', path])
  expect(verified.status, verified.stdout + verified.stderr).toBe(0)
})

it('reports nothing about a stream that failed', async () => {
  const { sandbox } = await startService({ denied: ['exportReviews'] })
  const config = writeTempFile(
    sandboxConfig(sandbox, {
      audit: true,
      page_size: 50,
      entities: { location_ids: ['1001'] },
      credentials: applicationCredentials(sandbox),
    }),
  )
  const { stdout } = await runCommand(sourceReadCommand, [
    '--config',
    config,
    '--catalog',
    catalogOf(['reviews', 'deleted_reviews', 'sync_audit']),
  ])
  checkAudit(stdout, ['deleted_reviews'])
})

it('is there only where the config asks for it, and not with a share of a backfill', async () => {
  const { sandbox } = await startService()
  const read = (more: object) =>
    runCommand(sourceReadCommand, [
      '--config',
      writeTempFile(sandboxConfig(sandbox, more)),
      '--catalog',
      catalogOf(['sync_audit']),
    ])
  expect((await read({})).stdout).toContain('a stream \\"sync_audit\\", which does not exist')
  const { status, stderr, stdout } = await read({ audit: true, partition: { index: 0, count: 2 } })
  expect([status, stderr + stdout]).toEqual([1, expect.stringContaining('audit cannot be used with partition')])
})
