import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runProgram } from '../../support/program'
import { random } from '../../support/random'
import { pythonProgram } from '../interop/shell'
import { type LoadedService, loadChangingService, loadedStreams } from './loads'

let service: LoadedService

beforeAll(async () => {
  service = await loadChangingService(1_500, ['snapshot', 'meltano', 'tombstones', 'airbyte', 'pyairbyte'])
})
afterAll(() => service?.close())

/** The statement of an audit; the first config is that of the streams `separate`, the other marks deletions. */
const audit = async (config: 'config.json' | 'tombstones.json', ...args: ReadonlyArray<string>): Promise<string> => {
  const { status, stdout, stderr } = await runProgram('feedback', [
    'audit',
    '--config',
    join(service.files.path, config),
    ...args,
  ])
  if (status !== 0) throw new Error(stderr)
  return stdout
}

const answer = (sql: string): ReadonlyArray<string> =>
  service.postgres
    .ask(sql)
    .split('\n')
    .filter((line) => line !== '')

/** What target-postgres wrote: times in the zone of the server, deletions in a table of their own. */
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

/** Damage to the content of a review of `feedback.damaged`: the column that is named, and SQL that sets it and changes something. */
const contentDamages: ReadonlyArray<readonly [column: string, assignment: string, condition: string]> = [
  ['rating', 'rating = NULL', 'rating IS NOT NULL'],
  ['rating', 'rating = round(rating::numeric + 0.4)', 'rating IS NOT NULL'],
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

it.each(contentDamages)('finds damage to %s: %s', async (column, assignment, condition) => {
  const table = ['--stream', 'reviews', '--table', 'feedback.damaged', ...ofMeltano, '--deep']
  service.postgres.ask(`DROP TABLE IF EXISTS feedback.damaged; CREATE TABLE feedback.damaged AS SELECT * FROM feedback.reviews r
    WHERE NOT EXISTS (SELECT 1 FROM feedback.deleted_reviews d WHERE d.id = r.id AND d."modifiedTime" >= r."modifiedTime")`)
  const sql = await audit('config.json', ...table)
  const named = await audit('config.json', ...table, '--buckets', '1', '--ids', '0')
  expect([answer(sql), answer(named)]).toEqual([[], []])
  const damaged = answer(
    `UPDATE feedback.damaged SET ${assignment} WHERE id IN (SELECT id FROM feedback.damaged WHERE ${condition} ORDER BY md5(id::text) LIMIT 3) RETURNING id`,
  ).filter((line) => /^\d+$/.test(line))
  expect(damaged.length).toBeGreaterThan(0)
  expect(answer(sql).filter((line) => line.includes('|changed|')).length).toBe(damaged.length)
  const found = answer(named).map((line) => line.split('|'))
  expect(found.map(([id, difference, , , , , columns]) => [id, difference, columns])).toEqual(
    damaged.sort().map((id) => [id, 'changed', column]),
  )
})

/** The kinds of damage, each as SQL for one review of `feedback.damaged`. */
const damages: ReadonlyArray<readonly [difference: string, sql: (id: string, other: string) => string]> = [
  ['missing', (id) => `DELETE FROM feedback.damaged WHERE id = ${id}`],
  ['doubled', (id) => `INSERT INTO feedback.damaged SELECT * FROM feedback.damaged WHERE id = ${id}`],
  [
    'stale',
    (id) => `UPDATE feedback.damaged SET "modifiedTime" = "modifiedTime" - INTERVAL '1 millisecond' WHERE id = ${id}`,
  ],
  [
    'extra',
    (id) =>
      `INSERT INTO feedback.damaged (id, "modifiedTime") SELECT 1, "modifiedTime" FROM feedback.damaged WHERE id = ${id}`,
  ],
  [
    'stale',
    (id, other) =>
      `UPDATE feedback.damaged SET "modifiedTime" = (SELECT max("modifiedTime") FROM feedback.damaged WHERE id <> d.id AND id IN (${id}, ${other})) FROM feedback.damaged d WHERE d.ctid = feedback.damaged.ctid AND feedback.damaged.id IN (${id}, ${other})`,
  ],
]

it('finds each of 200 random damages, with its kind and its review', async () => {
  const table = ['--stream', 'reviews', '--table', 'feedback.damaged', ...ofMeltano]
  const undamaged = `DROP TABLE IF EXISTS feedback.damaged; CREATE TABLE feedback.damaged AS SELECT id, "modifiedTime" FROM feedback.reviews r
    WHERE NOT EXISTS (SELECT 1 FROM feedback.deleted_reviews d WHERE d.id = r.id AND d."modifiedTime" >= r."modifiedTime")`
  service.postgres.ask(undamaged)
  const versions = new Map(
    answer('SELECT id, "modifiedTime" FROM feedback.damaged ORDER BY id').map(
      (line) => line.split('|') as [string, string],
    ),
  )
  const ids = [...versions.keys()]
  const sql = await audit('config.json', ...table)
  expect(answer(sql)).toEqual([])
  // The statement that names reviews is printed once, for all buckets.
  const named = await audit('config.json', ...table, '--buckets', '1', '--ids', '0')
  const draw = random(20_261_123)
  const pick = () => ids[Math.floor(draw() * ids.length)] ?? ''
  for (let trial = 0; trial < 200; trial += 1) {
    const [difference, damage] = damages[trial % damages.length] ?? ['', () => '']
    const [id, other] = [pick(), pick()]
    // Two reviews of one bulk change have the same version: nothing is swapped.
    if (versions.get(id) === versions.get(other)) continue
    const [buckets, reviews] = service.postgres
      .ask(`BEGIN; ${damage(id, other)}; ${sql} SELECT '--'; ${named} ROLLBACK;`)
      .split('--\n')
      .map((part) => part.split('\n').filter((line) => line !== ''))
    expect(buckets?.length, `trial ${trial}: ${difference} ${id}`).toBeGreaterThan(0)
    expect(
      reviews?.map((line) => line.split('|').slice(0, 2).join(' ')),
      `trial ${trial}`,
    ).toContain(`${difference === 'extra' ? '1' : id} ${difference}`)
  }
})

/** Runs the statements of other dialects on the snapshot, translated by sqlglot; prints each row of an answer. */
const translate = (file: string, dialect: string, path: string): string => {
  const { status, stdout, stderr } = spawnSync(pythonProgram('dbt', 'python'), [
    join(__dirname, 'translated_audit.py'),
    dialect,
    path,
    file,
  ])
  if (status !== 0) throw new Error(stderr.toString())
  return stdout.toString()
}

it.each(['duckdb', 'snowflake', 'bigquery', 'redshift', 'databricks'])(
  'the statement of %s finds what was damaged',
  async (dialect) => {
    const damaged = join(service.files.path, `damaged-${dialect}.duckdb`)
    if (!existsSync(damaged)) copyFileSync(service.loads.snapshot, damaged)
    const path = join(service.files.path, `${dialect}.sql`)
    const table = ['--stream', 'reviews', '--dialect', dialect, '--loader', 'snapshot', '--table', 'reviews']
    writeFileSync(path, await audit('config.json', ...table))
    expect(readFileSync(path, 'utf8')).toContain('-- Compares reviews')
    expect(translate(damaged, dialect, path)).toBe('')
    const change =
      "import sys, duckdb; c = duckdb.connect(sys.argv[1]); c.execute('DELETE FROM reviews WHERE id = (SELECT min(id) FROM reviews)')"
    expect(spawnSync(pythonProgram('dbt', 'python'), ['-c', change, damaged]).status).toBe(0)
    expect(translate(damaged, dialect, path)).toMatch(/^\d+ missing\n$/)
  },
)
