import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { auditCommand } from '../../../connector/cli/audit'
import { runCommand } from '../../support/run-command'
import { requireOutput } from '../interop/shell'
import { type LoadedService, loadChangingService, loadedStreams } from './loads'
import { type Python, startPython } from './python'

let service: LoadedService
let python: Python

beforeAll(async () => {
  service = await loadChangingService(600, ['snapshot', 'meltano', 'tombstones', 'airbyte', 'pyairbyte'])
  python = startPython('dbt', { cwd: service.files.path })
})
afterAll(() => service?.close())

/** The statement of an audit. The first config is for the streams `separate`, the other marks deletions. */
const audit = async (config: 'config.json' | 'tombstones.json', ...args: ReadonlyArray<string>): Promise<string> => {
  const given = ['--config', join(service.files.path, config), ...args]
  const { status, stdout, stderr } = await runCommand(auditCommand, given)
  if (status !== 0) throw new Error(stderr)
  return stdout
}

const answer = (sql: string): ReadonlyArray<string> =>
  service.postgres
    .ask(sql)
    .split('\n')
    .filter((line) => line !== '')

/** What target-postgres wrote: times in the server's zone, and deletions in a separate table. */
const ofMeltano = ['--dialect', 'postgres', '--loader', 'meltano', '--time-zone', 'Asia/Kolkata']

const realTables = loadedStreams.flatMap((stream) => [
  [stream, 'Meltano', 'feedback', ofMeltano] as const,
  [stream, 'PyAirbyte', 'pyairbyte', ['--dialect', 'postgres', '--loader', 'pyairbyte']] as const,
])

it.each(realTables)('finds %s equal that %s wrote into PostgreSQL', async (stream, _loader, schema, options) => {
  const deletions = stream === 'deleted_reviews' ? [] : ['--deletions', `${schema}.deleted_reviews`]
  const table = ['--stream', stream, '--table', `${schema}.${stream}`, ...options, ...deletions]
  for (const depth of [[], ['--deep']]) {
    const sql = await audit('config.json', ...table, ...depth)
    // The parts of a review that has none any more stay: docs/proof.md says so.
    const lines = answer(sql).filter((line) => !stream.startsWith('review_') || !line.includes('|extra|'))
    expect(lines, depth.join()).toEqual([])
  }
})

it('finds tables equal whose rows are marked, and whose versions are all kept', async () => {
  const marked = [
    '--stream',
    'reviews',
    '--dialect',
    'postgres',
    '--loader',
    'meltano',
    '--table',
    'tombstones.reviews',
  ]
  expect(answer(await audit('tombstones.json', ...marked, '--deep'))).toEqual([])
  const appended = ['--stream', 'reviews', '--dialect', 'postgres', '--table', 'airbyte.fb_reviews', '--all-versions']
  expect(answer(await audit('tombstones.json', ...appended))).toEqual([])
  expect(answer(await audit('tombstones.json', ...appended, '--deep'))).toEqual([])
})

/**
 * Damage to the content of a review of `feedback.damaged`: the column that is named, and SQL that sets it and changes
 * something.
 */
const contentDamages: ReadonlyArray<readonly [column: string, assignment: string, condition: string]> = [
  ['rating', 'rating = NULL', 'rating IS NOT NULL'],
  ['rating', 'rating = rating - 0.25', 'rating IS NOT NULL'],
  ['reviewScore', '"reviewScore" = "reviewScore" + 0.000001', '"reviewScore" IS NOT NULL'],
  ['surveyBarCode', `"surveyBarCode" = ''`, '"surveyBarCode" IS NULL'],
  ['surveyBarCode', `"surveyBarCode" = NULL`, '"surveyBarCode" IS NOT NULL'],
  ['surveyBarCode', `"surveyBarCode" = "surveyBarCode" || ' '`, '"surveyBarCode" IS NOT NULL'],
  ['visitRecordId', `"visitRecordId" = left("visitRecordId", 3)`, 'length("visitRecordId") > 3'],
  ['mentionTime', `"mentionTime" = "mentionTime" + interval '5 hours 30 minutes'`, '"mentionTime" IS NOT NULL'],
  [
    'mentionTime',
    `"mentionTime" = date_trunc('second', "mentionTime") - interval '1 millisecond'`,
    '"mentionTime" IS NOT NULL',
  ],
  ['location.name', `location = jsonb_set(location, '{name}', '"x"')`, `location ->> 'name' <> 'x'`],
  ['location.id', `location = location - 'id'`, `location ->> 'id' IS NOT NULL`],
  ['provider.name', `provider = jsonb_set(provider, '{name}', 'null')`, `provider ->> 'name' IS NOT NULL`],
  ['source.name', `source = jsonb_set(source, '{name}', '""')`, `source ->> 'name' <> ''`],
  ['contents', 'contents = contents[2:]', 'array_length(contents, 1) > 0'],
  [
    'taskDetails.status',
    `"taskDetails" = jsonb_set("taskDetails", '{status}', '"closed?"')`,
    `"taskDetails" ->> 'status' IS NOT NULL`,
  ],
]

const copyReviews = `
  DROP TABLE IF EXISTS feedback.damaged;
  CREATE TABLE feedback.damaged AS
  SELECT * FROM feedback.reviews r
  WHERE NOT EXISTS (
    SELECT 1 FROM feedback.deleted_reviews d WHERE d.id = r.id AND d."modifiedTime" >= r."modifiedTime"
  )`

describe('content', () => {
  /** The statements of audits of a copy that is damaged later: one answers with buckets, the other with ids. */
  let [byBucket, byId] = ['', '']
  beforeAll(async () => {
    const table = ['--stream', 'reviews', '--table', 'feedback.damaged', ...ofMeltano, '--deep']
    byBucket = await audit('config.json', ...table)
    byId = await audit('config.json', ...table, '--buckets', '1', '--ids', '0')
  })

  it('of a copy is found equal', () => {
    service.postgres.ask(copyReviews)
    expect([answer(byBucket), answer(byId)]).toEqual([[], []])
  })

  it.each(contentDamages)('that is damaged is found: %s, by %s', (column, assignment, condition) => {
    service.postgres.ask(copyReviews)
    const damaged = answer(`
      UPDATE feedback.damaged
      SET ${assignment}
      WHERE id IN (SELECT id FROM feedback.damaged WHERE ${condition} ORDER BY md5(id::text) LIMIT 3)
      RETURNING id`).filter((line) => /^\d+$/.test(line))
    expect(damaged.length).toBeGreaterThan(0)
    expect(answer(byBucket).filter((line) => line.includes('|changed|')).length).toBe(damaged.length)
    const found = answer(byId).map((line) => line.split('|'))
    expect(found.map(([id, difference, , , , , columns]) => [id, difference, columns])).toEqual(
      damaged.sort().map((id) => [id, 'changed', column]),
    )
  })
})

const run = async (program: string, ...args: ReadonlyArray<string>): Promise<string> =>
  requireOutput(program, await python(join(__dirname, program), args, ['duckdb', 'sqlglot']))

it.each(['duckdb', 'snowflake', 'bigquery', 'redshift', 'databricks'])(
  'the statement of %s finds what was damaged',
  async (dialect) => {
    const damaged = join(service.files.path, `damaged-${dialect}.duckdb`)
    copyFileSync(service.loads.snapshot, damaged)
    const path = join(service.files.path, `${dialect}.sql`)
    /** The answer of a statement, translated by sqlglot: a line a row. */
    const ask = async (stream: string, ...args: ReadonlyArray<string>): Promise<string> => {
      const table = ['--stream', stream, '--dialect', dialect, '--loader', 'snapshot', '--table', stream]
      const sql = await audit('config.json', ...table, ...args)
      expect(sql).toContain(`-- Compares ${stream}`)
      writeFileSync(path, sql)
      return run('translated_audit.py', dialect, path, damaged)
    }
    const damage = (sql: string): Promise<string> => run('execute.py', damaged, sql)
    expect(await ask('reviews')).toBe('')
    // Those two have a decimal number and a whole one in an object.
    for (const stream of ['reviews', 'review_contents', 'review_liabilities'])
      expect(await ask(stream, '--deep'), stream).toBe('')
    await damage(`UPDATE reviews SET rating = -1.5, source = '{"id": 1, "name": "😀"}', contents = '[{}, {}, {}, {}]'
      WHERE id = (SELECT min(id) FROM reviews)`)
    expect(await ask('reviews')).toBe('')
    expect(await ask('reviews', '--deep')).toMatch(/^\d+ changed\n$/)
    expect(await ask('reviews', '--deep', '--buckets', '1', '--ids', '0')).toMatch(
      /^\d+ changed source.id source.name rating contents\n$/,
    )
    await damage('DELETE FROM reviews WHERE id = (SELECT min(id) FROM reviews)')
    expect(await ask('reviews')).toMatch(/^\d+ missing\n$/)
  },
)
