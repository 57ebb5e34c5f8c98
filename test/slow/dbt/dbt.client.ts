import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { drawnCase } from '../../support/drawn-reviews'
import { loadReviews } from '../../support/loaded-reviews'
import { readModelRows, toComparable } from '../../support/model-rows'
import { expectedModels, type ModelRows } from '../../support/oracle'
import { expectedAnswers } from '../../support/oracle-answers'
import { expectedScorecards } from '../../support/oracle-scorecards'
import { type LoadedService, loadChangingService } from './loads'
import { createProject, type Project, packageFolder, type Relations } from './project'

const modelsOf = (folder: string): ReadonlyArray<string> =>
  readdirSync(join(packageFolder, 'models', folder))
    .filter((name) => name.endsWith('.sql'))
    .map((name) => name.replace('.sql', ''))
const staging = modelsOf('staging')
const scorecards = modelsOf('scorecards')
const marts = modelsOf('marts')
const relations = [...staging, ...scorecards, ...marts]

/** The instant that ages are counted to, in every run. */
const asOf = new Date(Date.now() + 3_600_000).toISOString()

let service: LoadedService
let project: Project
/** The relations that dbt made over the snapshot. */
let wanted: Relations

beforeAll(async () => {
  service = await loadChangingService(600, ['snapshot', 'meltano', 'tombstones', 'airbyte', 'cache'])
  const adapters = ['duckdb', 'postgres', 'snowflake', 'bigquery']
  project = await createProject(service.sandbox, service.postgres, service.files.path, adapters)
})
afterAll(() => service?.close())

const expectSame = (found: Relations, without: ReadonlyArray<string> = []) => {
  const names = relations.filter((name) => !without.includes(name))
  const lines = (all: Relations) => Object.fromEntries(names.map((name) => [name, toComparable(all[name] ?? [])]))
  expect(lines(found)).toEqual(lines(wanted))
}
/** Depends on how deletions came: tombstones do not report those before the first read, and have no source. */
const ofDeletions = ['deleted_reviews_current', 'deleted_reviews_by_source']
const deletions = (all: Relations) =>
  toComparable(all.deleted_reviews_current ?? [], ['source_id', 'source_name', 'mention_time'])

it('dbt deps takes the package from git, and the page names every variable', async () => {
  expect(await project.runSection('Install')).toMatch(/and subdirectory dbt/)
  const declared =
    readFileSync(join(packageFolder, 'dbt_project.yml'), 'utf8')
      .split(/^vars:$/m)[1]
      ?.split(/^\S/m)[0] ?? ''
  const page = readFileSync(join(packageFolder, '..', 'docs', 'models.md'), 'utf8')
  const variables = [...declared.matchAll(/^ {2}(\w+):/gm)].map(([, name]) => name)
  expect(variables.length).toBeGreaterThan(10)
  expect(variables.filter((name) => !page.includes(`\`${name}\``))).toEqual([])
  // What the runs below have in common; the server of the test is not in UTC.
  const file = join(service.files.path, 'dbt_project.yml')
  writeFileSync(file, `${readFileSync(file, 'utf8')}    as_of: '${asOf}'\n    feedback_naive_time_zone: Asia/Kolkata\n`)
})

it('runs over a snapshot, and keeps what the service has', async () => {
  const output = await project.runSection('Over a snapshot')
  expect(output).toMatch(/PASS freshness of feedback\._loads/)
  wanted = await project.readRows('duckdb', join(service.files.path, 'analytics.duckdb'), relations)
  const { reviews } = await service.sandbox.truth()
  const versions = (wanted.reviews_current ?? []).map((row) => `${row.review_id} ${row.modified_time}`)
  expect(versions.sort()).toEqual(reviews.map(({ id, modifiedTime }) => `${id} ${modifiedTime}`).sort())
  for (const name of relations) expect([name, wanted[name]?.length]).not.toEqual([name, 0])
  const manifest = JSON.parse(readFileSync(join(service.files.path, 'target', 'manifest.json'), 'utf8'))
  const bare = relations.flatMap((name) => {
    const { description, columns } = manifest.nodes[`model.feedback.${name}`]
    const described = (column: string) => (columns[column]?.description ?? '') !== ''
    const held = Object.keys(wanted[name]?.[0] ?? {})
    return [
      ...(description === '' ? [name] : []),
      ...held.filter((column) => !described(column)).map((column) => `${name}.${column}`),
    ]
  })
  expect(bare).toEqual([])
})

const regions = [
  { location_id: '1001', location_name: null, region: 'North' },
  { location_id: '1002', location_name: null, region: 'North' },
  { location_id: null, location_name: 'Oak Hill Urgent Care', region: 'South' },
]

const models = [...marts, ...scorecards]
/** Words of patients, which a warehouse has only if it requests them. */
const withoutText = ['justification', 'answer']

/**
 * The rows of every model as plain TypeScript computes them from the service's own data, with the settings of the page.
 */
const compute = async (): Promise<ModelRows> => {
  const { reviews, deleted } = await service.sandbox.truth()
  const settings = { asOf: Date.parse(asOf), timeZone: 'Europe/Berlin', openDays: 14, lowScore: 1.5, minReviews: 5 }
  const input = { reviews, deletions: deleted, earlier: service.earlier, regions, ...settings }
  return { ...expectedModels(input), ...expectedScorecards(input), ...expectedAnswers(input) }
}

it.each(models)('%s equals what plain TypeScript computes from the service', async (name) => {
  const expected = (await compute())[name] ?? []
  expect(expected.length).toBeGreaterThan(0)
  expect(toComparable(wanted[name] ?? [], withoutText)).toEqual(toComparable(expected, withoutText))
})

it("every model equals the snapshot's view of its name", async () => {
  const views = await readModelRows(service.loads.snapshot, { asOf: new Date(asOf), regions }, models)
  for (const name of models)
    expect([name, ...toComparable(wanted[name], withoutText)]).toEqual([
      name,
      ...toComparable(views[name], withoutText),
    ])
})

it('has no words of patients unless they are asked for', () => {
  expect(
    wanted.open_liabilities?.map(({ justification }) => justification ?? null).filter((text) => text !== null),
  ).toEqual([])
})

it('runs over the tables of a real Meltano target, with the same numbers', async () => {
  await project.runSection('Over tables of Meltano')
  expectSame(await project.readRows('postgres', 'analytics', relations))
  const stale = `
    SELECT count(*)
    FROM feedback.review_sentiments JOIN feedback.reviews ON reviews.id = "reviewId"
    WHERE "modifiedTime" <> "reviewModifiedTime"`
  expect(Number(service.postgres.ask(stale))).toBeGreaterThan(0)
  const tables = '{feedback_loader: meltano, feedback_children: tables}'
  await project.dbt('run', '--target', 'warehouse', '--vars', tables)
  expectSame(await project.readRows('postgres', 'analytics', relations))
})

it("runs over Airbyte's tables with every version and every tombstone appended, with the same numbers", async () => {
  expect(
    service.postgres.ask(
      'SELECT count(*) > count(DISTINCT id), count(_ab_cdc_deleted_at) > 20 FROM airbyte.fb_reviews',
    ),
  ).toBe('t|t\n')
  await project.runSection('Over tables of Airbyte')
  const found = await project.readRows('postgres', 'analytics', relations)
  // Tombstones report only deletions since the first read.
  const known = new Set((found.deleted_reviews_current ?? []).map((row) => row.review_id))
  expect(deletions(found)).toEqual(
    deletions({
      deleted_reviews_current: (wanted.deleted_reviews_current ?? []).filter((row) => known.has(row.review_id)),
    }),
  )
  expect(known.size).toBeGreaterThanOrEqual(22)
  expectSame(found, ofDeletions)
})

it('runs over tombstones of Meltano without any other table, with the same numbers', async () => {
  expect(service.postgres.ask('SELECT count(*) > 20 FROM tombstones.reviews WHERE _sdc_deleted_at IS NOT NULL')).toBe(
    't\n',
  )
  await project.dbt(
    'build',
    '--exclude-resource-type',
    'test',
    '--target',
    'warehouse',
    '--vars',
    '{feedback_loader: meltano, feedback_schema: tombstones, feedback_naive_time_zone: UTC}',
  )
  expectSame(await project.readRows('postgres', 'analytics', relations), ofDeletions)
})

it('runs over a cache of PyAirbyte and its child tables, with the same numbers and texts', async () => {
  const profiles = join(service.files.path, 'profiles.yml')
  const cache =
    `    cache:\n      type: duckdb\n      path: cached.duckdb\n      attach: ` +
    `[{ path: ${service.loads.cache}, alias: cache, read_only: true }]\n`
  writeFileSync(profiles, readFileSync(profiles, 'utf8') + cache)
  const vars =
    '{feedback_loader: pyairbyte, feedback_database: cache, feedback_schema: ' +
    'main, feedback_children: tables, feedback_with_text: true}'
  await project.dbt('build', '--exclude-resource-type', 'test', '--target', 'cache', '--vars', vars)
  const found = await project.readRows('duckdb', join(service.files.path, 'cached.duckdb'), relations)
  const texts = new Map(
    (await project.readRows('duckdb', service.loads.snapshot, ['reviews_current'])).reviews_current?.map((row) => [
      row.review_id,
      row.text,
    ]),
  )
  expect(found.reviews_current?.filter((row) => (row.text ?? '') !== (texts.get(row.review_id ?? null) ?? ''))).toEqual(
    [],
  )
  expect(found.reviews_current?.filter((row) => row.text !== null).length).toBeGreaterThan(300)
  const justified = found.open_liabilities?.filter(({ justification }) => (justification ?? '') !== '')
  expect(justified?.length).toBeGreaterThan(0)
  const conceal = (name: string, column: string) => ({
    [name]: (found[name] ?? []).map((row) => ({ ...row, [column]: null })),
  })
  // The cache keeps the rows of deleted reviews, a snapshot with its history too.
  expectSame({
    ...found,
    ...conceal('reviews_current', 'text'),
    ...conceal('review_liabilities_current', 'justification'),
    ...conceal('open_liabilities', 'justification'),
    review_answers: (found.review_answers ?? []).map((row) =>
      ['promoter', 'number', 'date', 'choice'].includes(String(row.kind)) ? row : { ...row, answer: null },
    ),
  })
})

it('runs over drawn reviews, which lack much and have times and values that none can have', async () => {
  const drawn = fc
    .sample(drawnCase(400), { seed: 20261123, numRuns: 10 })
    .find(({ reads }) => (reads.at(-1)?.reviews.length ?? 0) > 150)
  if (drawn === undefined) throw new Error('not enough was drawn')
  const { reads, asOf: at, timeZone, openDays, lowScore, minReviews, minAnswers } = drawn
  const path = join(service.files.path, 'drawn.duckdb')
  const snapshot = await loadReviews(reads, timeZone, path)
  snapshot.db.close()
  const profiles = join(service.files.path, 'profiles.yml')
  const target =
    `    drawn:\n      type: duckdb\n      path: drawn_models.duckdb\n ` +
    `     attach: [{ path: ${path}, alias: drawn, read_only: true }]\n`
  writeFileSync(profiles, readFileSync(profiles, 'utf8') + target)
  const settings =
    `as_of: '${new Date(at).toISOString()}', time_zone: ${timeZone}, alert_open_days: ` +
    `${openDays}, alert_score: ${lowScore}, min_reviews: ${minReviews}, min_answers: ${minAnswers}`
  const vars = `{feedback_loader: snapshot, feedback_database: drawn, feedback_schema: main, ${settings}}`
  await project.dbt('build', '--exclude-resource-type', 'test', '--target', 'drawn', '--vars', vars)
  const found = await project.readRows('duckdb', join(service.files.path, 'drawn_models.duckdb'), marts)
  const toTexts = (texts: ReadonlyArray<string> = []) => texts.map((json) => ({ json }))
  const input = {
    ...{ asOf: at, timeZone, openDays, lowScore, minReviews, minAnswers, regions },
    reviews: toTexts(reads.at(-1)?.reviews),
    deletions: reads.at(-1)?.deletions ?? [],
    earlier: toTexts(reads.slice(0, -1).flatMap(({ reviews }) => reviews)),
  }
  const expected = { ...expectedModels(input), ...expectedAnswers(input) }
  expect(expected.review_facts?.length).toBeGreaterThan(100)
  for (const name of marts)
    expect([name, ...toComparable(found[name], withoutText)]).toEqual([
      name,
      ...toComparable(expected[name], withoutText),
    ])
})

describe('compiled without an account', () => {
  const folderOf = (dialect: string) => join(service.files.path, 'target', dialect)
  /** Parses every compiled model in the dialect. */
  const expectParsed = async (dialect: string) => {
    const args = [dialect, join(folderOf(dialect), 'compiled', 'feedback', 'models')]
    const output = await project.python(join(__dirname, 'compiled.py'), args, ['sqlglot'])
    for (const name of [...relations, ...modelsOf('staging/base')])
      expect(output).toMatch(new RegExp(`^${name}\\.sql`, 'm'))
  }

  it('over tables of Airbyte, every model is a query of Snowflake and of BigQuery', async () => {
    const profiles = join(service.files.path, 'profiles.yml')
    const login =
      'account: nobody, user: nobody, password: nobody, database: analytics, warehouse: none, schema: feedback'
    const outputs = `    snowflake: { type: snowflake, ${login} }
    bigquery: { type: bigquery, method: oauth-secrets, token: none, project: analytics, dataset: feedback }\n`
    writeFileSync(profiles, readFileSync(profiles, 'utf8') + outputs)
    await project.runSection('Snowflake and BigQuery')
    for (const dialect of ['snowflake', 'bigquery']) await expectParsed(dialect)
  })

  it.each(['snowflake', 'bigquery'])(
    'the marts of %s, translated to DuckDB, give the same numbers',
    async (dialect) => {
      const compiled = join(folderOf(dialect), 'compiled', 'feedback', 'models')
      const args = [dialect, compiled, join(service.files.path, 'analytics.duckdb'), service.loads.snapshot]
      const output = await project.python(join(__dirname, 'translated.py'), args, ['duckdb', 'sqlglot'])
      expect(output).toBe(`COMPARED ${models.length}\n`)
    },
  )

  it.each([
    ['meltano', 'snowflake', '"MODIFIEDTIME"'],
    ['meltano', 'bigquery', '`modifiedTime`'],
    ['pyairbyte', 'snowflake', '"MODIFIEDTIME"'],
    ['pyairbyte', 'bigquery', '`modifiedtime`'],
  ])(
    'over tables of %s and their texts, every model is a query of %s with columns such as %s',
    async (loader, dialect, column) => {
      const vars = `{feedback_loader: ${loader}, feedback_children: tables, feedback_with_text: true}`
      const what = ['--no-introspect', '--no-populate-cache', '--select', 'resource_type:model', '--target', dialect]
      await project.dbt('compile', ...what, '--target-path', folderOf(dialect), '--vars', vars)
      await expectParsed(dialect)
      const base = join(folderOf(dialect), 'compiled', 'feedback', 'models', 'staging', 'base')
      expect(readFileSync(join(base, 'stg_feedback__review_rows.sql'), 'utf8')).toContain(column)
    },
  )
})

describe('bad input', () => {
  const failing = async (...args: ReadonlyArray<string>) => {
    const failure = await project.dbt(...args).then(
      () => undefined,
      (error: Error) => error.message,
    )
    return failure ?? 'it ended well'
  }

  it.each([
    [
      'a schema without tables',
      '{feedback_loader: meltano, feedback_schema: nowhere}',
      /There is no table [\s\S]*Set feedback_database, feedback_schema/,
    ],
    [
      'another loader',
      '{feedback_loader: fivetran}',
      /feedback_loader is 'fivetran'\. Set it to airbyte, pyairbyte, meltano or snapshot/,
    ],
    [
      'another place of the parts',
      '{feedback_children: json}',
      /feedback_children is 'json'\. Set it to auto, reviews or tables/,
    ],
  ])('%s is reported in a sentence', async (_, vars, message) => {
    expect(await failing('run', '--target', 'warehouse', '--vars', vars)).toMatch(message)
  })

  it('a location with two regions fails a test by its name', async () => {
    const file = join(service.files.path, 'seeds', 'regions.csv')
    writeFileSync(file, `${readFileSync(file, 'utf8')},oak hill urgent care ,West\n`)
    const output = await failing(
      'build',
      '--select',
      'regions',
      '--target',
      'warehouse',
      '--vars',
      '{feedback_loader: meltano}',
    )
    expect(output).toMatch(/FAIL 1 regions_are_unambiguous/)
  })
})
