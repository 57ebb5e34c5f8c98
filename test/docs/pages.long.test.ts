import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import type { JsonSchema } from '../../connector/cdk/schema'
import { type Sandbox, startSandbox } from '../../connector/sandbox/start'
import type { Snapshot } from '../../connector/snapshot/store/database'
import { reviewsStream } from '../../connector/streams/reviews'
import { declaredStreams as streams } from '../../connector/streams/streams'
import destinationSpec from '../../spec/destination.json'
import sourceSpec from '../../spec/source.json'
import { codeBlocks, docsFolder, fillIn } from '../support/doc-blocks'
import { createJsonFolder, type JsonFolder } from '../support/files'
import { buildFolder, runProgram } from '../support/program'
import { sandboxConfig } from '../support/sandbox'
import { walkSchema } from '../support/schema-walk'
import { openMemorySnapshot, streamMessages, writeMessages } from '../support/snapshot-messages'
import { hubDefinition, hubSettings, type SingerDescription } from './hub'

let sandbox: Sandbox
let files: JsonFolder
beforeAll(async () => {
  sandbox = await startSandbox({ reviews: 120 })
  files = createJsonFolder()
})
afterAll(async () => {
  await sandbox.close()
  files.remove()
})

const installed = join(__dirname, '..', '..', 'node_modules', '.bin')

/**
 * Runs the shell commands of a page one after the other, with stand-ins for docker and kubectl. Stops at the first that
 * fails.
 */
const runPage = (
  page: string,
  blocks = codeBlocks(page, 'sh'),
): Promise<{ readonly status: number | null; readonly output: string }> =>
  new Promise((resolve) => {
    const script = ['set -euo pipefail', ...blocks.map((text) => fillIn(text, sandbox))].join('\n')
    const child = spawn('bash', ['-c', script], {
      cwd: files.path,
      env: {
        ...process.env,
        PATH: [join(__dirname, 'bin'), installed, process.env.PATH].join(':'),
        STANDIN_HOME: join(files.path, 'stand-in'),
        STANDIN_BUILD: buildFolder,
        CHECKOUT: join(__dirname, '..', '..'),
      },
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString()
      })
    child.on('close', (status) => resolve({ status, output }))
  })

const read = (name: string) => readFileSync(join(files.path, name), 'utf8')
const text = (name: string) => readFileSync(join(docsFolder, name), 'utf8')

describe('the commands of a page', () => {
  it('running.md load every review, in a container and in a cluster', async () => {
    const { status, output } = await runPage('running.md')
    expect([status, status === 0 ? '' : output]).toEqual([0, ''])
    const since = (await sandbox.truth()).reviews.filter(({ modifiedTime }) => modifiedTime >= '2024-01-01')
    // The query, the logs of the first job and of the one that joins the shares.
    expect(output).toMatch(/count_star\(\)\s+(\d+)[\s\S]*^reviews +complete[\s\S]*^reviews +complete/m)
    expect(output).toMatch(new RegExp(`count_star\\(\\)\\s+${since.length}\\s`))

    const records = (file: string) =>
      read(file)
        .split('\n')
        .filter((line) => line.startsWith('{"type":"RECORD"'))
    const ids = (file: string) =>
      records(file).flatMap((line) => /"stream":"reviews".*?"data":\{"id":(\d+)/.exec(line)?.[1] ?? [])
    const all = since.map(({ id }) => String(id)).sort()
    expect(ids('data/run.jsonl').sort()).toEqual(all)
    expect(records('data/next-run.jsonl')).toEqual([])

    const shares = [0, 1, 2, 3].map((index) => ids(`stand-in/volumes/feedback/share-${index}.jsonl`))
    expect([...new Set(shares.flat())].sort()).toEqual(all)
    expect(Math.max(...shares.map(({ length }) => length))).toBeLessThan(all.length)
  })

  it('snapshot.md verify the snapshot and find two equal ones', async () => {
    const { status, output } = await runPage('snapshot.md')
    expect([status, output]).toEqual([0, expect.stringMatching(/All checks passed[\s\S]*They are the same/)])
    expect(JSON.parse(read('two.jsonl').split('\n')[0] ?? '')).toMatchObject({ location: { id: expect.any(Number) } })
  })

  it('writing.md send its visit once, by either protocol', async () => {
    const [config = '', singer = '', airbyte = '', catalog = ''] = codeBlocks('writing.md', 'json')
    const script = codeBlocks('writing.md', 'sh')[0] ?? ''
    const [destination = '', target = ''] = script.split('\n\n')
    const put = (name: string, lines: string) => `cat > ${name} <<'EOF'\n${lines}\nEOF`
    const { status, output } = await runPage('writing.md', [
      put('config.json', config),
      put('catalog.json', catalog),
      put('messages.jsonl', airbyte),
      destination,
      put('messages.jsonl', singer),
      `tap-csv() { cat messages.jsonl; }\n${target.split('\n')[0]}\ncat state.jsonl`,
    ])
    expect([status, output]).toEqual([0, expect.stringContaining('{"sent": 1}')])
    expect((await sandbox.truth()).visits.filter(({ id }) => id === 'v-1')).toHaveLength(1)
  })

  it('models.md ask a snapshot', async () => {
    files.put('models.json', sandboxConfig(sandbox))
    const sync = 'rm -f reviews.duckdb; feedback sync --config models.json --db reviews.duckdb --select reviews'
    const { status, output } = await runPage('models.md', [sync, ...codeBlocks('models.md', 'sh').slice(0, 1)])
    expect([status, output]).toEqual([0, expect.stringMatching(/nps_low[\s\S]*region[\s\S]*owner_name/)])
  })

  it.each(['sources', 'destinations'])('integrations/%s/feedback.md run to their end', async (kind) => {
    expect(await runPage(`integrations/${kind}/feedback.md`)).toMatchObject({ status: 0 })
  })
})

describe('integrations/sources/feedback.md', () => {
  it('lists every stream with its primary key and cursor', () => {
    for (const { name, primaryKey, cursor } of streams) {
      const keys = primaryKey.map((key) => `\`${key}\``).join(', ')
      const row = `| \`${name}\` | ${keys} | ${cursor._tag === 'Some' ? `\`${cursor.value}\`` : ''} |`
      expect(text('integrations/sources/feedback.md').split('\n')).toContain(row)
    }
  })
})

describe('columns.md', () => {
  let snapshot: Snapshot
  beforeAll(async () => {
    snapshot = await openMemorySnapshot()
    const { name, schema, primaryKey, cursor } = reviewsStream
    await writeMessages(snapshot, streamMessages({ name, schema, primaryKey, cursor, syncMode: 'incremental' }))
  })
  afterAll(() => snapshot.db.close())

  it('lists the columns of every view', async () => {
    const views = await snapshot.db.query(
      `
        SELECT view_name AS name, list(column_name ORDER BY column_index) AS columns
        FROM duckdb_views()
        JOIN duckdb_columns() ON view_name = table_name
        WHERE NOT duckdb_views.internal
        GROUP BY ALL`,
    )
    expect(views.length).toBeGreaterThan(20)
    const columnsOf = (name: unknown) =>
      [...(text('columns.md').split(`\n### ${name}\n`)[1]?.split('\n#')[0] ?? '').matchAll(/^\| `(\w+)` \|/gm)].map(
        ([, column]) => column,
      )
    for (const { name, columns } of views)
      expect([name, columnsOf(name).sort()]).toEqual([name, (columns as string[]).sort()])
  })
})

describe('the versions and settings', () => {
  const required = (name: string) =>
    readFileSync(join(__dirname, '..', 'slow', 'requirements', `${name}.txt`), 'utf8')
      .trimEnd()
      .split('\n')

  it('of clients are those that the slow tests use', () => {
    const pinned = [
      ...['meltano', 'dlt', 'dagster', 'airflow', 'airbyte-rules'].flatMap((name) => required(name).slice(0, 1)),
      ...required('airbyte').slice(0, 2),
    ]
    const loaders = parse(text('meltano.yml')).plugins.loaders.map(({ pip_url }: { pip_url: string }) => pip_url)
    const versions = [...pinned, ...loaders.map((url: string) => url.split(' ')[0])].map((one) => one.split('=='))
    for (const [name = '', version = ''] of versions) {
      const rows = text('airbyte.md')
        .split('\n')
        .filter((line) => line.includes(`| ${version} |`))
      expect([name, rows.length]).toEqual([name, 1])
    }
    const readers = ['1.4', '1.5', '2.0'].map((one) => required(`duckdb-${one}`)[0]?.split('==')[1])
    expect(text('airbyte.md')).toContain(`| ${readers.join(', ')} |`)
    expect(text('airbyte.md')).toContain(`\`airbyte-internal-ops\` ${required('airbyte-rules')[0]?.split('==')[1]}`)
  })

  it('to install are those that the slow tests use', () => {
    expect(text('meltano.md')).toContain(required('meltano')[0])
    expect(text('pyairbyte.md')).toContain(required('airbyte')[0])
    const [dbt = '', duckdb = '', format = '', ...others] = required('dbt')
    expect(text('models.md')).toContain(`pip install ${dbt} ${duckdb} ${format}`)
    for (const adapter of others.filter((one) => one.startsWith('dbt-'))) expect(text('models.md')).toContain(adapter)
    expect(text('running.md')).toContain(`pip install ${required('dlt').join(' ')}`)
    for (const extension of required('lake')) expect(text('running.md')).toContain(extension)
  })

  const describe = async (program: 'tap-feedback' | 'target-feedback'): Promise<SingerDescription> =>
    JSON.parse((await runProgram(program, ['--about', '--format', 'json'])).stdout)

  const leaves = (schema: JsonSchema) => [
    ...new Set(
      walkSchema(schema).flatMap(({ path, schema: inner }) =>
        inner.type === 'object' || path.includes('/[]')
          ? []
          : [
              path
                .slice(1)
                .replace(/\/\d+\//g, '/')
                .replaceAll('/', '.'),
            ],
      ),
    ),
  ]

  it.each([
    ['meltano-hub.yml', 'tap-feedback', sourceSpec],
    ['meltano-hub-target.yml', 'target-feedback', destinationSpec],
  ] as const)('in %s are all settings of %s', async (page, program, spec) => {
    const description = await describe(program)
    expect(
      hubSettings(description)
        .map(({ name }) => name)
        .sort(),
    ).toEqual(leaves(spec).sort())
    await expect(hubDefinition(description)).toMatchFileSnapshot(`../../docs/${page}`)
  })

  it('in meltano.yml are all settings of the source, with their kinds', async () => {
    const [tap] = parse(text('meltano.yml')).plugins.extractors
    const described = hubSettings(await describe('tap-feedback'))
    expect(tap.settings).toEqual(described.map(({ label: _, description: __, ...setting }) => setting))
  })
})
