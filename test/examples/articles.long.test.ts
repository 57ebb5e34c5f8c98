import { execFile, execFileSync } from 'node:child_process'
import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { installPacked } from '../support/packed-package'

const root = join(__dirname, '..', '..')
const example = join(root, 'examples', 'articles')
let folder: string
const writeJson = (name: string, value: unknown): string => {
  const path = join(folder, name)
  writeFileSync(path, JSON.stringify(value))
  return path
}

/** node --test prints for its parent if this is set. */
const { NODE_TEST_CONTEXT: _, ...testEnv } = process.env

/** A message on stdout. */
type Line = Readonly<Record<string, unknown>>

type Outcome = {
  readonly status: number
  readonly stdout: string
  readonly lines: ReadonlyArray<Line>
  readonly stderr: string
}

/** Runs the example as a user who has installed the packed kit does; lines of stdout that are JSON are parsed. */
const runExample = (...args: ReadonlyArray<string>): Promise<Outcome> =>
  new Promise((resolve) =>
    execFile(process.execPath, [join(folder, 'build', 'articles.js'), ...args], (error, stdout, stderr) =>
      resolve({
        status: typeof error?.code === 'number' ? error.code : 0,
        stdout,
        lines: stdout.split('\n').flatMap((line) => (line.startsWith('{"') ? [JSON.parse(line)] : [])),
        stderr,
      }),
    ),
  )

type ArticleServer = {
  readonly url: string
  readonly putArticle: (article: object) => void
  readonly close: () => void
}
let server: ArticleServer
let config: string
let catalog: string

beforeAll(async () => {
  folder = installPacked()
  for (const name of ['articles.ts', 'articles.test.mjs', 'server.mjs', 'tsconfig.json'])
    cpSync(join(example, name), join(folder, name))
  execFileSync(join(root, 'node_modules', '.bin', 'tsc'), ['-p', folder])
  const { startServer } = await import(join(example, 'server.mjs'))
  server = await startServer()
  config = writeJson('config.json', { base_url: server.url, token: 'secret' })
})
afterAll(() => {
  server.close()
  rmSync(folder, { recursive: true })
})

/** The records of a stream in Airbyte's or Singer's lines. */
const recordsOf = ({ lines }: Outcome, stream: string): ReadonlyArray<unknown> =>
  lines
    .filter(({ type }) => type === 'RECORD')
    .map((line) => (line.stream === undefined ? (line.record as Line) : { stream: line.stream, data: line.record }))
    .flatMap((record) => (record.stream === stream ? [record.data] : []))

describe('the example, made with the kit alone', () => {
  it('passes its own test, without DuckDB', () => {
    const output = execFileSync(process.execPath, ['--test'], { cwd: folder, encoding: 'utf8', env: testEnv })
    expect(output).toMatch(/^# pass 3$/m)
    expect(output).toMatch(/^# fail 0$/m)
  })

  it('shows the options of the tap and the verbs of the source', async () => {
    const { status, stdout } = await runExample('--help')
    expect(status).toBe(0)
    for (const text of [
      'Usage: tap-articles [options]',
      '--discover',
      'it is an Airbyte source:',
      '  read  ',
      '  spec  ',
    ])
      expect(stdout).toContain(text)
    expect((await runExample('read', '--help')).stdout).toContain('Usage: source-articles read [options]')
  })

  it('prints its spec, with the token marked as a secret', async () => {
    const { lines } = await runExample('spec')
    expect(lines).toMatchObject([
      { type: 'SPEC', spec: { connectionSpecification: { properties: { token: { airbyte_secret: true } } } } },
    ])
  })

  it('accepts a right token in check and refuses a wrong one', async () => {
    expect((await runExample('check', '--config', config)).lines).toMatchObject([
      { connectionStatus: { status: 'SUCCEEDED' } },
    ])
    const bad = writeJson('bad.json', { base_url: server.url, token: 'wrong' })
    expect((await runExample('check', '--config', bad)).lines).toMatchObject([
      {
        connectionStatus: {
          status: 'FAILED',
          message: 'articles: the API refuses the credentials (401). Check them in the config.',
        },
      },
    ])
  })

  it('names the wrong key of a config', async () => {
    const wrong = writeJson('wrong.json', { base_url: server.url, token: 'secret', page_size: 0 })
    const { lines } = await runExample('check', '--config', wrong)
    expect(JSON.stringify(lines)).toContain('page_size')
  })

  it('discovers two streams with primary keys and cursors', async () => {
    const { lines } = await runExample('discover', '--config', config)
    const [{ catalog: found }] = lines as unknown as [{ catalog: { streams: ReadonlyArray<{ name: string }> } }]
    expect(found.streams).toMatchObject([
      { name: 'articles', source_defined_primary_key: [['id']], default_cursor_field: ['updated_at'] },
      { name: 'authors', supported_sync_modes: ['full_refresh', 'incremental'] },
    ])
    const streams = found.streams.map((stream) => ({
      stream,
      sync_mode: 'incremental',
      destination_sync_mode: 'append_dedup',
    }))
    catalog = writeJson('catalog.json', { streams })
  })

  it('reads everything in the first run, then only what has changed', async () => {
    const first = await runExample('read', '--config', config, '--catalog', catalog)
    expect(first.status).toBe(0)
    expect([recordsOf(first, 'articles').length, recordsOf(first, 'authors').length]).toEqual([230, 7])
    const state = writeJson(
      'state.json',
      first.lines.filter(({ type }) => type === 'STATE').map((line) => line.state),
    )
    server.putArticle({ id: 17, title: 'Changed', author_id: 3 })
    const second = await runExample('read', '--config', config, '--catalog', catalog, '--state', state)
    expect(recordsOf(second, 'articles')).toMatchObject([{ id: 17, title: 'Changed' }])
    expect(recordsOf(second, 'authors')).toEqual([])
  })

  it('runs as a Singer tap with a selection, and continues from its own state', async () => {
    const first = await runExample('--config', config)
    expect(first.status).toBe(0)
    expect([recordsOf(first, 'articles').length, recordsOf(first, 'authors').length]).toEqual([231, 7])
    const last = first.lines.at(-1)
    expect(last).toMatchObject({
      type: 'STATE',
      value: { bookmarks: { authors: { after: '7' } }, currently_syncing: null },
    })
    const state = writeJson('singer-state.json', last)
    const selection = writeJson('singer-catalog.json', {
      streams: [
        {
          tap_stream_id: 'articles',
          stream: 'articles',
          schema: {
            type: 'object',
            properties: { id: { type: ['integer'] }, title: { type: ['string'] }, updated_at: { type: ['string'] } },
          },
          metadata: [
            { breadcrumb: [], metadata: { selected: true, 'replication-method': 'INCREMENTAL' } },
            { breadcrumb: ['properties', 'title'], metadata: { selected: false } },
          ],
        },
      ],
    })
    server.putArticle({ id: 18, title: 'Changed too', author_id: 3 })
    const second = await runExample('--config', config, '--catalog', selection, '--state', state)
    expect(recordsOf(second, 'articles')).toEqual([{ id: 18, updated_at: expect.any(String) }])
  })
})
