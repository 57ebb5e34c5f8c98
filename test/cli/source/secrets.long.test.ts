import { execFileSync } from 'node:child_process'
import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import type { Sandbox } from '../../../connector/sandbox/start'
import { newTempPath, writeTempFile } from '../../support/files'
import { type ReceivedRequest, sendJson, startServer } from '../../support/listen'
import { type ProgramName, type ProgramResult, programPath, runProgram } from '../../support/program'
import { startTestSandbox } from '../../support/sandbox'

/** What no output may hold: fit for a header, and different in every encoding. */
const secret = 'mark/ed+s3cret="&x'
const padded = [0, 1, 2].map((shift) => Buffer.from(`${'-'.repeat(shift)}${secret}`).toString('base64'))
/** The characters that depend only on the secret, wherever it begins. */
const base64 = padded.map((text, shift) =>
  text.slice(Math.ceil((shift * 4) / 3), Math.floor(((shift + secret.length) * 4) / 3)),
)
const hex = Buffer.from(secret).toString('hex')
const form = new URLSearchParams({ secret }).toString().slice('secret='.length)
const plain = [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret), form, hex]
const told = [...plain, ...padded, ...padded.map((text) => text.replaceAll('+', '-').replaceAll('/', '_'))]
const forms = [...plain, ...base64, ...base64.map((text) => text.replaceAll('+', '-').replaceAll('/', '_'))]

const person = {
  name: 'Rosalind Quickwater',
  mail: 'rosalind.quickwater@example.org',
  words: 'The nurse forgot me twice',
}
const personal = Object.values(person)

const records = (stdout: string): ReadonlyArray<string> =>
  stdout.split('\n').filter((line) => line.includes('"type":"RECORD","record":{"stream":"reviews"'))
const others = (stdout: string): string =>
  stdout
    .split('\n')
    .filter((line) => !line.includes('"type":"RECORD"'))
    .join('\n')

const clean = ({ stdout, stderr }: ProgramResult, words: ReadonlyArray<string> = []): void => {
  for (const form of forms) {
    expect(stdout).not.toContain(form)
    expect(stderr).not.toContain(form)
  }
  for (const word of [...personal, ...words]) {
    expect(others(stdout)).not.toContain(word)
    expect(stderr).not.toContain(word)
  }
}

const timeouts = { connect_seconds: 2, response_seconds: 5, max_wait_seconds: 1 }
const settings = (base_url: string, more: object = {}) => ({
  base_url,
  credentials: { auth_type: 'access_token', access_token: secret },
  timeouts,
  ...more,
})
const sourceOf = (base_url: string, more: object = {}) => ({
  ...settings(base_url, { start_date: '2000-01-01T00:00:00Z' }),
  privacy: { hash: ['export.visitRecordId'], hash_key: `${secret}2` },
  ...more,
})
const application = (url: string) => ({
  credentials: {
    auth_type: 'application',
    application_id: 'us',
    application_secret: secret,
    token_url: `${url}/token`,
  },
})

const catalog = writeTempFile({
  streams: ['reviews', 'deleted_reviews'].map((name) => ({
    stream: { name, json_schema: {} },
    sync_mode: 'incremental',
  })),
})
const visit = { Email: person.mail, FirstName: person.name, Comment: person.words }
const writing = writeTempFile({
  streams: [
    {
      stream: { name: 'visits', json_schema: {} },
      sync_mode: 'full_refresh',
      destination_sync_mode: 'append',
      destination_object_name: 'visit_records',
    },
  ],
})
const airbyte = `${JSON.stringify({ type: 'RECORD', record: { stream: 'visits', data: visit, emitted_at: 1 } })}\n`
const singer = [
  { type: 'SCHEMA', stream: 'visit_records', schema: { properties: {} }, key_properties: [] },
  { type: 'RECORD', stream: 'visit_records', record: visit },
]
  .map((line) => `${JSON.stringify(line)}\n`)
  .join('')

/** A snapshot that somebody has begun. */
const emptySnapshot = (): string => {
  const path = newTempPath('duckdb')
  const lines = [
    {
      type: 'SCHEMA',
      stream: 'reviews',
      schema: { properties: { id: { type: ['integer'] } } },
      key_properties: ['id'],
    },
    { type: 'STATE', value: { bookmarks: { reviews: { modifiedTimeFrom: '2000-01-01T00:00:00.000Z' } } } },
  ]
  execFileSync(process.execPath, [programPath('feedback'), 'snapshot', '--db', path], {
    input: lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  return path
}

type Verb = readonly [name: string, program: ProgramName, args: (path: string) => ReadonlyArray<string>, stdin?: string]

/** Every verb that reads the configuration of the source, or of the destination. */
const reading: ReadonlyArray<Verb> = [
  ['check', 'source-feedback', (path) => ['check', '--config', path]],
  ['discover', 'source-feedback', (path) => ['discover', '--config', path]],
  ['read', 'source-feedback', (path) => ['read', '--config', path, '--catalog', catalog]],
  ['the tap', 'tap-feedback', (path) => ['--config', path]],
  ['the tap --discover', 'tap-feedback', (path) => ['--config', path, '--discover']],
  ['the tap --test', 'tap-feedback', (path) => ['--config', path, '--test']],
  ['catalog', 'feedback', (path) => ['catalog', '--config', path]],
  ['the tap --about', 'tap-feedback', (path) => ['--config', path, '--about']],
  ['verify', 'feedback', (path) => ['verify', '--config', path, '--db', emptySnapshot()]],
  ['sync', 'feedback', (path) => ['sync', '--config', path, '--db', newTempPath('duckdb'), '--select', 'reviews']],
]
const written: ReadonlyArray<Verb> = [
  ['check', 'destination-feedback', (path) => ['check', '--config', path]],
  ['discover', 'destination-feedback', (path) => ['discover', '--config', path]],
  ['write', 'destination-feedback', (path) => ['write', '--config', path, '--catalog', writing], airbyte],
  [
    'write --dry-run',
    'destination-feedback',
    (path) => ['write', '--config', path, '--catalog', writing, '--dry-run'],
    airbyte,
  ],
  ['the target', 'target-feedback', (path) => ['--config', path], singer],
  ['the target --about', 'target-feedback', (path) => ['--config', path, '--about']],
]

const said =
  (status: number) =>
  (verb: Verb): readonly [number, string, Verb] => [status, `${verb[1]}: ${verb[0]}`, verb]

/** Repeats everything it was sent, in every form, and what it knows about people, wherever a message may appear. */
const parrot = (status: number) => (seen: ReceivedRequest, response: ServerResponse) => {
  const all = [...personal, seen.body, JSON.stringify(seen.headers), ...told].join(' ')
  const said = { code: all, message: all }
  const location =
    status >= 300 && status < 400 ? { Location: `https://elsewhere.example/?${encodeURIComponent(secret)}` } : {}
  sendJson(response, status, { status: said, data: said, records: said, error: all }, location)
}

describe('a service that repeats its requests', () => {
  it.concurrent.each([
    ...[...reading, ...written].map(said(403)),
    ...[...reading, ...written]
      .filter(([name]) => ['read', 'sync', 'write', 'check', 'the tap', 'the target', 'verify'].includes(name))
      .map(said(200)),
    ...reading.filter(([name]) => ['check', 'read'].includes(name)).map(said(302)),
  ])(
    'with status %i puts no secret and none of its text into the output of %s',
    async (status, name, [, program, args, stdin]) => {
      const { url } = await startServer(parrot(status))
      const config = written.some(([, other]) => other === program) ? settings(url) : sourceOf(url)
      const ran = await runProgram(program, args(writeTempFile(config)), stdin === undefined ? {} : { stdin })
      clean(ran)
      if (!/discover|catalog|about|dry-run/.test(name))
        expect(ran.stdout + ran.stderr).toMatch(/\(?403|application error|FAILED|redirects|rejected|permission|answer/)
    },
  )

  it.concurrent.each(reading.filter(([name]) => ['check', 'read', 'the tap'].includes(name)).map(said(401)))(
    'with status %i puts no secret of a token exchange into the output of %s',
    async (_status, _name, [, program, args]) => {
      const { url } = await startServer(parrot(401))
      const ran = await runProgram(program, args(writeTempFile(sourceOf(url, application(url)))))
      clean(ran)
      expect(ran.stdout + ran.stderr).toMatch(/refused the application/)
    },
  )
})

describe('a config with another error', () => {
  it.concurrent.each([
    ['another key', { page_size: secret, start_date: 7 }],
    ['the kind of credentials', { credentials: { auth_type: secret, access_token: secret } }],
    ['the Redis URL', { rate_limit: { redis_url: `http://:${encodeURIComponent(secret)}@127.0.0.1:1` } }],
    ['Redis itself', { rate_limit: { redis_url: `redis://:${encodeURIComponent(secret)}@127.0.0.1:1` } }],
    ['the host', { base_url: 'http://127.0.0.1:1' }],
  ])('(%s) is reported without its secrets', async (_, wrong) => {
    const ran = await runProgram('source-feedback', [
      'check',
      '--config',
      writeTempFile(sourceOf('http://127.0.0.1:1', wrong)),
    ])
    clean(ran)
    expect(ran.stdout).toMatch(/FAILED|transient_error/)
  })

  it('(not JSON) is reported without its secrets', async () => {
    const text = JSON.stringify(sourceOf('http://127.0.0.1:1'))
    clean(
      await runProgram('source-feedback', [
        'check',
        '--config',
        writeTempFile(text.slice(0, text.indexOf('mark/ed') + 30)),
      ]),
    )
  })
})

describe('a run without errors', () => {
  const withSandbox = async (body: (sandbox: Sandbox) => Promise<void>) => {
    const granted = new Map([
      [secret, ['exportReviews', 'exportDeletedReviews', 'createVisitRecords', 'syncLocations'] as const],
    ])
    const sandbox = await startTestSandbox({ reviews: 300, granted, faults: [] })
    try {
      await body(sandbox)
    } finally {
      await sandbox.close()
    }
  }

  it('logs no texts, names or addresses of people', () =>
    withSandbox(async (sandbox) => {
      const config = writeTempFile(sourceOf(sandbox.url))
      const ran = await runProgram('source-feedback', ['read', '--config', config, '--catalog', catalog])
      const words = (await sandbox.truth()).reviews.flatMap(({ json }) => {
        const { contents = [], taskDetails } = JSON.parse(json)
        const said = contents.map(({ response }: { readonly response?: string }) => response)
        return [...said, taskDetails?.ownerEmail, taskDetails?.ownerName, taskDetails?.closureComment]
      })
      expect(records(ran.stdout)).toHaveLength(300)
      clean(
        ran,
        words.filter((word): word is string => typeof word === 'string' && word.length > 8),
      )

      const db = newTempPath('duckdb')
      const verbs = [
        ['sync', '--config', config, '--db', db, '--select', 'reviews,deleted_reviews'],
        ['verify', '--db', db],
        ['state', 'export', '--db', db],
      ]
      for (const args of verbs)
        clean(
          await runProgram('feedback', args),
          words.slice(0, 100).filter((word) => word?.length > 8),
        )
    }))
})
