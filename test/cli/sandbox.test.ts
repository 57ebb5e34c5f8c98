import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as E from 'fp-ts/Either'
import { describe, expect, it, onTestFinished } from 'vitest'
import { CommandError } from '../../connector/cdk/program/error'
import { formatHelp } from '../../connector/cdk/program/options'
import { sandboxCommand } from '../../connector/cli/sandbox'
import { readSandboxFlags, sandboxFlags } from '../../connector/cli/sandbox-flags'
import { faultKinds } from '../../connector/sandbox/faults/plan'
import { operationNames } from '../../connector/sandbox/operations/operation'
import { createTestIo, toInput } from '../support/command-io'

const folder = mkdtempSync(join(tmpdir(), 'sandbox-verb-'))

/** Runs the command until it listens; the end of the test stops it. */
const startCommand = async (...args: ReadonlyArray<string>) => {
  const warnings: Array<string> = []
  const stop = new AbortController()
  let print: (line: string) => void = () => undefined
  const line = new Promise<string>((resolve) => {
    print = resolve
  })
  const io = createTestIo(toInput(''), async (text) => print(String(text)), {
    stop: stop.signal,
    printWarning: (text) => warnings.push(text),
  })
  const ended = sandboxCommand.run(io, 'feedback', args)
  onTestFinished(async () => {
    stop.abort()
    await ended.catch(() => undefined)
  })
  return {
    addresses: JSON.parse(await Promise.race([line, ended.then(String)])),
    stop,
    ended,
    line: await line,
    warnings,
  }
}

const refusalOf = async (...args: ReadonlyArray<string>): Promise<string> => {
  const error = await startCommand(...args).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  return error instanceof CommandError ? error.failure.message : `not refused: ${error}`
}

describe('feedback sandbox', () => {
  it('prints one line of JSON with its addresses, serves, and exits with 0', async () => {
    const { addresses, line, stop, ended } = await startCommand('--reviews', '10', '--grant', 'guest=exportReviews')
    expect(line).toMatch(/^\{.*\}\n$/)
    expect(Object.keys(addresses)).toEqual(['url', 'access_token', 'application_id', 'application_secret', 'token_url'])
    const answer = await fetch(`${addresses.url}/api/reputation/v1/reviews`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', accessToken: 'guest' },
      body: '{"modifiedTimeFrom":"1970-01-01T00:00:00.000Z"}',
    })
    expect(await answer.json()).toMatchObject({ reviews: Array.from({ length: 10 }, () => expect.anything()) })
    stop.abort()
    expect(await ended).toBe(0)
    await expect(fetch(addresses.url)).rejects.toThrow()
  })

  it.each([
    ['127.0.0.1', 0],
    ['localhost', 0],
    ['0.0.0.0', 1],
  ])('on %s gives so many warnings: %i', async (host, count) => {
    const { stop, ended, warnings } = await startCommand('--reviews', '1', '--host', host)
    stop.abort()
    await ended
    expect(warnings.filter((text) => text.includes('other machines can reach it'))).toHaveLength(count)
  })

  it('reads a plan of faults', async () => {
    const plan = join(folder, 'plan.json')
    writeFileSync(plan, '[{"kind": "503", "requests": [1]}]')
    const { addresses } = await startCommand('--reviews', '1', '--faults', plan, '--fail', '2=429')
    const requestPage = () => fetch(`${addresses.url}/api/reputation/v1/reviews`, { method: 'POST' })
    expect([(await requestPage()).status, (await requestPage()).status, (await requestPage()).status]).toEqual([
      503, 429, 401,
    ])
  })

  it.each([
    [['--faults', join(folder, 'none.json')], 'none.json cannot be read (ENOENT)'],
    [['--port', '70000'], '--port is wrong: give a whole number from 0 to 65535'],
    [['--order', 'random'], '--order is wrong: give one of modified_asc'],
    [['--host', '203.0.113.1', '--reviews', '1'], 'cannot listen on 203.0.113.1'],
  ])('refuses %j', async (args, message) => {
    expect(await refusalOf(...args)).toContain(message)
  })

  it('refuses a file that is not a plan of faults', async () => {
    const plan = join(folder, 'bad.json')
    writeFileSync(plan, '{')
    expect(await refusalOf('--faults', plan)).toContain('it is not JSON')
    writeFileSync(plan, '[{"kind": "burn"}]')
    expect(await refusalOf('--faults', plan)).toContain('rule 1: kind "burn"')
  })

  it('explains every option and every fault', () => {
    const text = formatHelp('feedback', sandboxCommand)
    for (const name of [...Object.keys(sandboxFlags), 'faults']) expect(text).toContain(`--${name} `)
    for (const [kind, meaning] of Object.entries(faultKinds)) expect(text).toContain(`${kind.padEnd(12)}${meaning}`)
    for (const operation of operationNames) expect(text).toContain(operation)
    for (const path of ['/openapi.json', '/docs', '/__sandbox/log', '/__sandbox/stats', '/__sandbox/truth'])
      expect(text).toContain(path)
  })
})

describe('an option of the sandbox', () => {
  it.each([
    [{ churn: 'change=3,delete=1,add=2,restore=1' }, { churn: { change: 3, delete: 1, add: 2, restore: 1 } }],
    [{ latency: '200' }, { latency: { minMs: 200, maxMs: 200 } }],
    [{ latency: '50-400' }, { latency: { minMs: 50, maxMs: 400 } }],
    [{ 'rate-limit': '60' }, { rate: { requests: 60, seconds: 60 } }],
    [{ 'rate-limit': '5/1' }, { rate: { requests: 5, seconds: 1 } }],
    [{ 'clock-skew': '-90' }, { clockSkew: -90_000 }],
    [{ until: '2026-01-01T00:00:00Z' }, { until: Date.UTC(2026, 0, 1) }],
    [{ 'max-ids': '5', 'max-per-page': '7' }, { limits: { maxIdentifiers: 5, maxPerPage: 7 } }],
    [{ deny: 'syncLocations,exportReviews' }, { denied: ['syncLocations', 'exportReviews'] }],
    [{ grant: 'a=exportReviews' }, { granted: new Map([['a', ['exportReviews']]]) }],
    [
      { db: 'a.duckdb', from: 'b.duckdb', 'token-ttl': '5' },
      { db: 'a.duckdb', from: 'b.duckdb', tokenLifetime: 5 },
    ],
  ])('%j is accepted', (given, options) => expect(readSandboxFlags(given)).toEqual(E.right(options)))

  it.each([
    { churn: 'change' },
    { churn: 'explode=1' },
    { churn: 'change=1delete=2' },
    { latency: 'slow' },
    { 'rate-limit': '-1' },
    { until: 'soon' },
    { deny: 'everything' },
    { grant: '=exportReviews' },
    { reviews: '1e9' },
    { fail: '1=burn' },
  ])('%j is refused with a description of a right value', (given) => {
    const [name] = Object.keys(given)
    expect(readSandboxFlags(given)).toEqual(E.left(expect.stringMatching(new RegExp(`^--${name} is wrong: give .+`))))
  })
})
