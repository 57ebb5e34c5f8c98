import { chmodSync, cpSync, existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Ajv2020 from 'ajv/dist/2020'
import * as E from 'fp-ts/Either'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { parse, stringify } from 'yaml'
import { sourceFormat } from '../../../connector/config/source'
import { parseFaultList } from '../../../connector/sandbox/faults/plan'
import { type Sandbox, startSandbox } from '../../../connector/sandbox/start'
import manifest from '../../../package.json'
import { formatLines, formatStream, locationRow, singerFormat, visitRow } from '../../support/destination-input'
import { createJsonFolder, type JsonFolder } from '../../support/files'
import { pythonProgram, quickProgram, runShell, runShellOrThrow, type ShellOptions } from './shell'

const root = join(__dirname, '..', '..', '..')
const duckdb = '.meltano/loaders/target-duckdb/venv/bin/python'

let sandbox: Sandbox
/** How far the service's clock is ahead of ours, in milliseconds: a run leaves the last seconds to the next one. */
let ahead = 0
let project: JsonFolder
let how: ShellOptions

beforeAll(async () => {
  sandbox = await startSandbox({ reviews: 3000, now: () => Date.now() + ahead })
  project = createJsonFolder()
  how = {
    cwd: project.path,
    env: {
      TAP_FEEDBACK_BASE_URL: sandbox.url,
      TAP_FEEDBACK_CREDENTIALS_ACCESS_TOKEN: sandbox.accessToken,
      TAP_FEEDBACK_PAGE_SIZE: '200',
    },
  }
})
afterAll(async () => {
  await sandbox.close()
  project.remove()
})

/**
 * What the first scenarios start, and the one that sends a signal; the others run forks of one process that has
 * imported Meltano.
 */
const executable = pythonProgram('meltano', 'meltano')
const forked = quickProgram('meltano', 'meltano')
const start = (...args: ReadonlyArray<string>) => runShellOrThrow(executable, args, how)
const meltano = (...args: ReadonlyArray<string>) => runShellOrThrow(forked, args, how)
const ask = async (sql: string): Promise<ReadonlyArray<ReadonlyArray<string>>> => {
  const script = `import duckdb, json, sys
rows = duckdb.connect('warehouse.duckdb').execute(sys.argv[1]).fetchall()
print(json.dumps([[str(value) for value in row] for row in rows]))`
  return JSON.parse(await runShellOrThrow(join(project.path, duckdb), ['-c', script, sql], how))
}
const counts = async (): Promise<Readonly<Record<string, number>>> => {
  const tables = (
    await ask("SELECT table_name FROM information_schema.tables WHERE table_schema = 'feedback' ORDER BY 1")
  ).flat()
  const sql = tables.map((table) => `SELECT '${table}', count(*) FROM feedback.${table}`).join(' UNION ALL ')
  return Object.fromEntries((await ask(sql)).map(([table = '', count]) => [table, Number(count)]))
}
/** Id and version of each review that the service has, and of each in the file that is not deleted. */
const versions = async () => {
  const { reviews } = await sandbox.truth()
  const there = reviews.map(({ id, modifiedTime }) => `${id} ${modifiedTime}`)
  const here = await ask(`
    SELECT id, strftime(modifiedtime, '%Y-%m-%dT%H:%M:%S.%gZ')
    FROM feedback.reviews
    WHERE id NOT IN (SELECT id FROM feedback.deleted_reviews)`)
  return { there: there.sort(), here: here.map((row) => row.join(' ')).sort() }
}
const lines = (stream: string): ReadonlyArray<string> => {
  const file = join(project.path, 'output', `${stream}.jsonl`)
  return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : []
}
const run = (target: 'target-duckdb' | 'target-jsonl', ...flags: ReadonlyArray<string>) =>
  meltano('run', ...flags, 'tap-feedback', target)

it('Meltano installs the packed connector and the loaders', async () => {
  await runShellOrThrow('npm', ['pack', '--ignore-scripts', root], how)
  await runShellOrThrow(
    'npm',
    ['install', '--no-audit', '--no-fund', '--ignore-scripts', `./feedback-connector-${manifest.version}.tgz`],
    how,
  )
  cpSync(join(root, 'docs', 'meltano.yml'), join(project.path, 'meltano.yml'))
  expect(await start('install')).toMatch(/Installed/)
})

it('meltano select discovers the streams and lists what is selected', async () => {
  const listed = await start('select', 'tap-feedback', '--list')
  expect(listed).toMatch(/\[automatic *\] reviews\.id/)
  expect(listed).toMatch(/\[selected *\] reviews\.rating/)
})

it('meltano config test accepts the config and stops the tap after its first record', async () => {
  expect(await start('config', 'test', 'tap-feedback')).toMatch(/Plugin configuration is valid/)
})

it('target-duckdb receives every row, also ids beyond 2^53', async () => {
  await start('run', 'tap-feedback', 'target-duckdb')
  const { there, here } = await versions()
  expect(here).toEqual(there)
  expect((await ask('SELECT max(id) > 9007199254740992 FROM feedback.reviews')).flat()).toEqual(['True'])
})

it('target-duckdb receives nothing in a second run', async () => {
  const before = await counts()
  const output = await run('target-duckdb')
  expect(output).not.toMatch(/Loading \d+ rows/)
  expect(await counts()).toEqual(before)
})

it('target-duckdb equals the service again after changes, deletions and new reviews', async () => {
  await sandbox.churn({ change: 50, delete: 20, add: 30 })
  ahead += 10_000
  await run('target-duckdb')
  const { there, here } = await versions()
  expect(here).toEqual(there)
  expect((await counts()).deleted_reviews).toBeGreaterThanOrEqual(20)
})

it('target-duckdb equals a service that changed after every page once it is quiet', async () => {
  sandbox.setChurn({ change: 3, delete: 1, add: 1 })
  await run('target-duckdb', '--full-refresh')
  sandbox.setChurn({})
  ahead += 10_000
  await run('target-duckdb')
  const { there, here } = await versions()
  expect(here).toEqual(there)
})

it('meltano state get prints a state of every stream', async () => {
  const output = await meltano('state', 'get', 'dev:tap-feedback-to-target-duckdb')
  const { singer_state } = JSON.parse(output.split('\n').find((line) => line.startsWith('{')) ?? '{}')
  expect(Object.keys(singer_state.bookmarks).length).toBeGreaterThan(5)
  expect(singer_state.bookmarks.reviews.modifiedTimeFrom).toMatch(/Z$/)
  expect(singer_state.currently_syncing).toBeNull()
})

it('target-duckdb keeps one row a key when a full refresh reads everything again', async () => {
  const output = await run('target-duckdb', '--full-refresh')
  expect(output).toMatch(/Loading \d{4} rows/)
  const { there, here } = await versions()
  expect(here).toEqual(there)
})

it('target-duckdb equals the service after a run that SIGTERM ended and a complete one', async () => {
  rmSync(join(project.path, 'warehouse.duckdb'))
  await meltano('state', 'clear', '--force', 'dev:tap-feedback-to-target-duckdb')
  const env = { ...how.env, TAP_FEEDBACK_PAGE_SIZE: '10', TARGET_DUCKDB_BATCH_SIZE_ROWS: '100' }
  const args = ['run', 'tap-feedback', 'target-duckdb']
  const ended = await runShell(executable, args, {
    ...how,
    env,
    until: /Loading \d+ rows into '"warehouse"\."feedback"\."reviews"'/,
  })
  expect(ended.status).not.toBe(0)
  await run('target-duckdb')
  const { there, here } = await versions()
  expect(here).toEqual(there)
})

it('target-jsonl receives one line a record, and none if nothing is new', async () => {
  await run('target-jsonl')
  const { reviews } = await sandbox.truth()
  expect(lines('reviews')).toHaveLength(reviews.length)
  await run('target-jsonl')
  expect(lines('reviews')).toHaveLength(reviews.length)
})

it('meltano select keeps back deselected attributes and streams', async () => {
  rmSync(join(project.path, 'output'), { recursive: true })
  await meltano('select', 'tap-feedback', '--exclude', 'reviews', 'contents')
  await meltano('select', 'tap-feedback', '--exclude', 'review_contents', '*')
  await run('target-jsonl', '--full-refresh')
  const [first = '{}'] = lines('reviews')
  expect(Object.keys(JSON.parse(first))).toEqual(expect.arrayContaining(['id', 'modifiedTime', 'rating']))
  expect(lines('reviews').filter((line) => line.includes('"contents"'))).toEqual([])
  expect(lines('review_contents')).toEqual([])
})

/** A project that knows nothing of the tap but its hub definition. */
const createHubProject = async (): Promise<ShellOptions & { readonly meltano: typeof meltano }> => {
  const hub = createJsonFolder()
  onTestFinished(() => hub.remove())
  const [, ...lines] = readFileSync(join(root, 'docs', 'meltano.yml'), 'utf8').split('\n')
  const head = lines.slice(0, lines.indexOf('plugins:'))
  const loader = lines.slice(lines.indexOf('  - name: target-jsonl'))
  writeFileSync(join(hub.path, 'meltano.yml'), [...head, 'plugins:', '  loaders:', ...loader].join('\n'))
  symlinkSync(join(project.path, 'node_modules'), join(hub.path, 'node_modules'))
  const { TAP_FEEDBACK_PAGE_SIZE: _, ...env } = how.env ?? {}
  const options = { cwd: hub.path, env: { ...env, TAP_FEEDBACK_START_DATE: '2020-01-01T00:00:00Z' } }
  const run = (...args: ReadonlyArray<string>) => runShellOrThrow(forked, args, options)
  await run('add', '--plugin-type', 'extractor', '--from-ref', join(root, 'docs', 'meltano-hub.yml'), 'tap-feedback')
  return { ...options, meltano: run }
}

it('Meltano runs the hub definition with nothing but address, token and start date', async () => {
  const hub = await createHubProject()
  expect(await hub.meltano('config', 'test', 'tap-feedback')).toMatch(/Plugin configuration is valid/)
  await hub.meltano('install', '--plugin-type', 'loader')
  await hub.meltano('run', 'tap-feedback', 'target-jsonl')
  const ids = readFileSync(join(hub.cwd, 'output', 'reviews.jsonl'), 'utf8')
    .trimEnd()
    .split('\n')
  expect(ids).toHaveLength((await sandbox.truth()).reviews.length)
})

/** Adds to the extractors of a project one that prints what a file has. */
const addFileTap = (folder: string, lines: string): void => {
  writeFileSync(join(folder, 'messages.jsonl'), lines)
  writeFileSync(join(folder, 'tap-file'), '#!/bin/sh\nexec cat messages.jsonl\n')
  chmodSync(join(folder, 'tap-file'), 0o755)
  const path = join(folder, 'meltano.yml')
  const project = parse(readFileSync(path, 'utf8'))
  project.plugins.extractors.push({ name: 'tap-file', namespace: 'tap_file', executable: './tap-file' })
  writeFileSync(path, stringify(project))
}

it('Meltano writes with the hub definition of the target, and shows its log as its own', async () => {
  const hub = await createHubProject()
  const definition = join(root, 'docs', 'meltano-hub-target.yml')
  await hub.meltano('add', '--plugin-type', 'loader', '--from-ref', definition, 'target-feedback')
  const visits = Array.from({ length: 40 }, (_, id) => visitRow(id))
  addFileTap(
    hub.cwd,
    formatLines([
      ...formatStream(
        singerFormat,
        'locations',
        'code',
        visits.map((_, id) => locationRow(id)),
      ),
      ...formatStream(singerFormat, 'visit_records', 'id', visits),
    ]),
  )
  const env = {
    ...hub.env,
    TARGET_FEEDBACK_BASE_URL: sandbox.url,
    TARGET_FEEDBACK_CREDENTIALS_ACCESS_TOKEN: sandbox.accessToken,
    TARGET_FEEDBACK_MAPPING_VISIT_RECORDS_FIRSTNAME: 'given_name',
    TARGET_FEEDBACK_MAPPING_VISIT_RECORDS_LASTNAME: 'family_name',
    TARGET_FEEDBACK_MAPPING_VISIT_RECORDS_EMAIL: 'mail',
    TARGET_FEEDBACK_MAPPING_VISIT_RECORDS_LOCATIONCODE: 'clinic',
    TARGET_FEEDBACK_MAPPING_VISIT_RECORDS_VISITTIME: 'at',
  }
  const before = (await sandbox.truth()).visits.length
  const args = ['run', 'tap-file', 'target-feedback']
  const output = await runShellOrThrow(forked, args, { cwd: hub.cwd, env })
  expect(output).toMatch(/target-feedback +visit_records: 40 received, 40 accepted, 0 rejected/)
  expect((await sandbox.truth()).visits).toHaveLength(before + 40)
})

it("Meltano's own schema accepts the project of the page and what it made of the hub definitions", async () => {
  const hub = await createHubProject()
  const definition = join(root, 'docs', 'meltano-hub-target.yml')
  await hub.meltano('add', '--plugin-type', 'loader', '--from-ref', definition, 'target-feedback')
  const library = join(pythonProgram('meltano', ''), '..', 'lib')
  const [version = ''] = readdirSync(library).filter((name) => name.startsWith('python'))
  const schema = join(library, version, 'site-packages', 'meltano', 'schemas', 'meltano.schema.json')
  const validate = new Ajv2020({ allErrors: true, strict: false, validateFormats: false }).compile(
    JSON.parse(readFileSync(schema, 'utf8')),
  )
  for (const path of [join(root, 'docs', 'meltano.yml'), join(hub.cwd, 'meltano.yml')])
    expect(validate(parse(readFileSync(path, 'utf8'))) ? [] : validate.errors).toEqual([])
  const made = parse(readFileSync(join(hub.cwd, 'meltano.yml'), 'utf8')).plugins
  const names = ['extractors', 'loaders'].flatMap((kind) => made[kind].map(({ name }: { name: string }) => name))
  expect(names).toEqual(expect.arrayContaining(['tap-feedback', 'target-feedback']))
  expect(validate({ ...parse(readFileSync(join(hub.cwd, 'meltano.yml'), 'utf8')), colour: 'blue' })).toBe(false)
})

it('Meltano passes every setting of the hub definition on, from the environment', async () => {
  const hub = await createHubProject()
  const { settings } = parse(readFileSync(join(root, 'docs', 'meltano-hub.yml'), 'utf8')) as {
    readonly settings: ReadonlyArray<{
      readonly name: string
      readonly kind?: string
      readonly options?: ReadonlyArray<{ value: string }>
    }>
  }
  const valueOf = ({ name, kind, options }: (typeof settings)[number]): string => {
    if (options !== undefined) return options.at(-1)?.value ?? ''
    if (kind === 'array') return name === 'sources' ? '[1, 2]' : name === 'additional_fields' ? '["brand"]' : '["5"]'
    if (name === 'partition.count') return '2'
    if (name === 'reporting_time_zone') return 'Europe/Berlin'
    if (kind === 'integer' || name.endsWith('min_threshold')) return name === 'page_size' ? '10' : '1'
    if (kind === 'boolean') return 'true'
    if (kind === 'date_iso8601') return '2021-01-01T00:00:00Z'
    return name.endsWith('url') ? 'https://feedback.example.com' : `/${name}`
  }
  const variable = (name: string) => `TAP_FEEDBACK_${name.replaceAll('.', '_').toUpperCase()}`
  const given = Object.fromEntries(settings.map((setting) => [variable(setting.name), valueOf(setting)]))
  const output = await runShellOrThrow(forked, ['invoke', '--dump=config', 'tap-feedback'], {
    cwd: hub.cwd,
    env: { ...hub.env, ...given },
  })
  const config = JSON.parse(output.slice(output.indexOf('{\n'), output.lastIndexOf('}') + 1))
  const decoded = sourceFormat.decode(config)
  if (E.isLeft(decoded)) throw new Error(decoded.left.message)
  // The key of the other credentials is there too, since every setting is given.
  expect(decoded.right.unknownKeys).toEqual(['credentials.access_token'])
  const leaf = (value: unknown, path: string) =>
    path.split('.').reduce((inner, key) => (inner as Readonly<Record<string, unknown>> | undefined)?.[key], value)
  const lost = settings.filter(({ name }) => leaf(config, name) === undefined).map(({ name }) => name)
  expect(lost).toEqual([])
})

it('Meltano sees a complete run although some requests to the service fail', async () => {
  const faults = parseFaultList('2=500,3=cutjson,5=reset')
  const flaky = await startSandbox({ reviews: 500, faults: E.isRight(faults) ? faults.right : [] })
  rmSync(join(project.path, 'output'), { recursive: true })
  const env = { ...how.env, TAP_FEEDBACK_BASE_URL: flaky.url, TAP_FEEDBACK_CREDENTIALS_ACCESS_TOKEN: flaky.accessToken }
  const args = ['run', '--full-refresh', 'tap-feedback', 'target-jsonl']
  await runShellOrThrow(forked, args, { ...how, env })
  const ids = lines('reviews').map((line) => /"id": (\d+)/.exec(line)?.[1])
  expect([ids.length, new Set(ids).size]).toEqual([500, 500])
  await flaky.close()
})
