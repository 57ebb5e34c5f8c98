import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Sandbox } from '../../connector/sandbox/start'
import { newTempPath, writeTempFile } from '../support/files'
import { type ProgramName, runProgram } from '../support/program'
import { startTestSandbox } from '../support/sandbox'

let sandbox: Sandbox
let token: string
beforeAll(async () => {
  sandbox = await startTestSandbox({ reviews: 20 })
  token = writeTempFile(`${sandbox.accessToken}\n`)
})
afterAll(() => sandbox.close())

const catalog = writeTempFile({
  streams: [{ stream: { name: 'reviews', json_schema: {} }, sync_mode: 'incremental' }],
})
const db = newTempPath('secret-files.duckdb')
/** Every program, with the prefix of its variables and what it prints where its token is right. */
const programs: ReadonlyArray<[ProgramName, string, ReadonlyArray<string>, RegExp]> = [
  ['source-feedback', 'FEEDBACK', ['check'], /SUCCEEDED/],
  ['source-feedback', 'FEEDBACK', ['discover'], /"CATALOG"/],
  ['source-feedback', 'FEEDBACK', ['read', '--catalog', catalog], /"COMPLETE"/],
  ['destination-feedback', 'FEEDBACK', ['check'], /SUCCEEDED/],
  ['tap-feedback', 'TAP_FEEDBACK', ['--test=schema'], /SCHEMA/],
  ['target-feedback', 'TARGET_FEEDBACK', [], /^$/],
  ['feedback', 'FEEDBACK', ['check'], /Everything works/],
  ['feedback', 'FEEDBACK', ['catalog'], /reviews/],
  ['feedback', 'FEEDBACK', ['sync', '--db', db, '--select', 'reviews'], /complete/],
  ['feedback', 'FEEDBACK', ['verify', '--db', db], /passed/],
  ['feedback', 'FEEDBACK', ['audit', '--dialect', 'duckdb', '--stream', 'reviews', '--table', 'reviews'], /SELECT/],
]

const run = (program: ProgramName, prefix: string, args: ReadonlyArray<string>, variables: Record<string, string>) =>
  runProgram(program, [...args, '--config', 'ENV'], {
    env: Object.fromEntries(
      Object.entries({
        BASE_URL: sandbox.url,
        ALLOW_HTTP: 'true',
        CREDENTIALS_AUTH_TYPE: 'access_token',
        ...(prefix === 'TARGET_FEEDBACK' || program === 'destination-feedback' ? {} : { START_DATE: '2000-01-01' }),
        ...variables,
      }).map(([name, value]) => [`${prefix}_${name}`, value]),
    ),
  })

describe('a token in a file', () => {
  it.each(programs)('is read by %s (%s_…) %j', async (program, prefix, args, expected) => {
    const { status, stdout, stderr } = await run(program, prefix, args, { CREDENTIALS_ACCESS_TOKEN_FILE: token })
    expect([status, stderr]).toEqual([0, expect.not.stringContaining(sandbox.accessToken)])
    expect(stdout + stderr).toMatch(expected)
  })

  it.each([
    ['source-feedback', 'FEEDBACK', ['check']],
    ['destination-feedback', 'FEEDBACK', ['check']],
    ['tap-feedback', 'TAP_FEEDBACK', []],
    ['target-feedback', 'TARGET_FEEDBACK', []],
    ['feedback', 'FEEDBACK', ['check']],
  ] as const)('that is missing, or given twice, ends %s (%s_…) with what to do', async (program, prefix, args) => {
    const missing = newTempPath('token')
    const gone = await run(program, prefix, args, { CREDENTIALS_ACCESS_TOKEN_FILE: missing })
    expect(gone.stdout + gone.stderr).toContain(
      `The ${prefix}_CREDENTIALS_ACCESS_TOKEN_FILE file ${missing} does not exist.`,
    )
    const twice = await run(program, prefix, args, {
      CREDENTIALS_ACCESS_TOKEN_FILE: token,
      CREDENTIALS_ACCESS_TOKEN: sandbox.accessToken,
    })
    expect(twice.stdout + twice.stderr).toContain(
      `${prefix}_CREDENTIALS_ACCESS_TOKEN_FILE and ${prefix}_CREDENTIALS_ACCESS_TOKEN are both set. Unset one of them.`,
    )
    expect(twice.stdout + twice.stderr).not.toContain(sandbox.accessToken)
  })
})
