import { existsSync } from 'node:fs'
import { describe, it } from 'vitest'
import { reportAirbyteFailure } from '../../../connector/cdk/program/exit'
import { destinationCheckCommand, destinationWriteCommand } from '../../../connector/cli/feedback-destination'
import {
  airbyteFormat,
  configuredCatalogOf,
  formatLines,
  formatStream,
  locationRow,
  mapping,
  visitRow,
} from '../../support/destination-input'
import { newTempPath, writeTempFile } from '../../support/files'
import { airbyteLines } from '../../support/lines'
import { type Reply, sendJson, startServer } from '../../support/listen'
import { runCommand } from '../../support/run-command'

const outage = { status: { code: 503, message: 'Service temporarily unavailable' } }
const limit = { status: { code: 429, message: 'Too many requests' } }
const token = { status: { code: 401, message: 'Access token has expired' } }

const configOf = (base_url: string, more: object = {}) => ({
  base_url,
  credentials: { auth_type: 'access_token', access_token: 'not-for-anybody' },
  timeouts: { max_wait_seconds: 1 },
  ...more,
})

describe('check of the destination', () => {
  const check = async (reply: Reply, onEnd: (close: () => void) => void) => {
    const { url } = await startServer(reply, onEnd)
    const { status, stdout } = await runCommand(destinationCheckCommand, ['--config', writeTempFile(configOf(url))], {
      fail: reportAirbyteFailure,
    })
    const [said] = airbyteLines(stdout)
    return { status, text: stdout, connection: said?.connectionStatus, error: said?.trace?.error }
  }

  it.concurrent.for<readonly [string, number, object]>([
    ['an outage in a 200', 200, outage],
    ['an outage in a 200, beside an empty list', 200, { ...outage, records: {} }],
    ['a rate limit in a 200', 200, limit],
    ['an outage', 503, outage],
    ['a rate limit', 429, limit],
  ])(
    'reports %s, since nothing is known about the permission then',
    async ([, code, body], { expect, onTestFinished }) => {
      const checked = await check((_, to) => sendJson(to, code, body), onTestFinished)
      expect(checked).toMatchObject({ status: 1, error: { failure_type: 'transient_error' } })
      expect(checked.text).not.toContain('permission not denied')
    },
  )

  it.concurrent.for<readonly [string, object]>([
    ['', token],
    [', beside an empty list', { ...token, records: {} }],
  ])('answers FAILED if a 200 reports that the token is refused%s', async ([, body], { expect, onTestFinished }) => {
    const { status, connection } = await check((_, to) => sendJson(to, 200, body), onTestFinished)
    expect([status, connection]).toEqual([
      0,
      { status: 'FAILED', message: expect.stringMatching(/token is missing, wrong or expired\. Check credentials/) },
    ])
  })

  it.concurrent('succeeds where a 200 refuses the empty array', async ({ expect, onTestFinished }) => {
    const body = { status: { code: 'E7', message: 'array is empty' } }
    const { status, connection } = await check((_, to) => sendJson(to, 200, body), onTestFinished)
    expect([status, connection]).toEqual([
      0,
      { status: 'SUCCEEDED', message: expect.stringContaining('permission not denied') },
    ])
  })
})

describe('a write', () => {
  const families = {
    visit_records: { key: 'id', rows: (n: number) => visitRow(n, { visitRecordId: `v${n}`, clinic: 'W1' }) },
    locations: { key: 'code', rows: (n: number) => locationRow(n) },
  } as const
  type Family = keyof typeof families

  const answerOf = (sent: ReadonlyArray<{ readonly visitRecordId?: string }>, isLocations: boolean) =>
    isLocations
      ? { status: 'SUCCESS', totalRequests: sent.length, successfulRequests: sent.length, failedRequests: 0 }
      : { records: Object.fromEntries(sent.map(({ visitRecordId }) => [visitRecordId, 'Success'])) }

  const write = async (name: Family, trouble: object, times: number, onEnd: (close: () => void) => void) => {
    const { key, rows } = families[name]
    const written = new Set<string>()
    let told = 0
    const { url } = await startServer(({ url: path, body }, response) => {
      const sent = JSON.parse(body) as ReadonlyArray<{ readonly visitRecordId?: string; readonly code?: string }>
      // Of all records, the trouble meets always the same one.
      const isTold = sent.some(({ visitRecordId, code }) => visitRecordId === 'v5' || code === locationRow(5).code)
      if (isTold && told < times) {
        told += 1
        return sendJson(response, 200, trouble)
      }
      for (const { visitRecordId, code } of sent) written.add(visitRecordId ?? code ?? '')
      sendJson(response, 200, answerOf(sent, path.endsWith('/locations')))
    }, onEnd)
    const dead_letter_path = newTempPath('jsonl')
    const config = configOf(url, { batch_size: 2, dead_letter_path, ...(name === 'visit_records' ? { mapping } : {}) })
    const input = formatStream(
      airbyteFormat,
      name,
      key,
      Array.from({ length: 8 }, (_, n) => rows(n)),
    )
    const { status, stdout } = await runCommand(
      destinationWriteCommand,
      ['--config', writeTempFile(config), '--catalog', writeTempFile(configuredCatalogOf({ [name]: key }))],
      { stdin: formatLines(input), fail: reportAirbyteFailure },
    )
    const errors = airbyteLines(stdout).flatMap(({ trace }) => (trace?.error === undefined ? [] : [trace.error]))
    return {
      status,
      written,
      hasDeadLetters: existsSync(dead_letter_path),
      types: errors.map((one) => one.failure_type),
    }
  }

  it.concurrent.for<readonly [Family, string, object, string]>([
    ['visit_records', 'a rate limit', limit, 'transient_error'],
    ['visit_records', 'a refused token', token, 'config_error'],
    ['locations', 'a rate limit', limit, 'transient_error'],
    ['locations', 'a refused token', token, 'config_error'],
  ])(
    'of %s rejects no record for %s reported in a 200',
    async ([name, , trouble, type], { expect, onTestFinished }) => {
      const ran = await write(name, trouble, Number.POSITIVE_INFINITY, onTestFinished)
      expect([ran.hasDeadLetters, ran.status, ran.types]).toEqual([false, 1, [type]])
    },
  )

  it.concurrent.for<readonly [Family, object]>([
    ['visit_records', limit],
    ['visit_records', outage],
    ['locations', limit],
    ['locations', outage],
  ])('of %s waits for the end of %j', async ([name, trouble], { expect, onTestFinished }) => {
    const ran = await write(name, trouble, 1, onTestFinished)
    expect([ran.status, ran.written.size, ran.hasDeadLetters]).toEqual([0, 8, false])
  })
})
