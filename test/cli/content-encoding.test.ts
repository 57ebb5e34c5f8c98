import { existsSync } from 'node:fs'
import { brotliCompressSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { reportAirbyteFailure } from '../../connector/cdk/program/exit'
import { destinationCheckCommand, destinationWriteCommand } from '../../connector/cli/feedback-destination'
import { sourceCheckCommand, sourceReadCommand } from '../../connector/cli/feedback-source'
import {
  airbyteFormat,
  configuredCatalogOf,
  formatLines,
  formatStream,
  mapping,
  visitRow,
} from '../support/destination-input'
import { newTempPath, writeTempFile } from '../support/files'
import { airbyteLines } from '../support/lines'
import { startServer } from '../support/listen'
import { runCommand } from '../support/run-command'

const configOf = (base_url: string, more: object = {}) => ({
  base_url,
  credentials: { auth_type: 'access_token', access_token: 'not-for-anybody' },
  ...more,
})

/** A proxy that encodes in Brotli, asked for or not, what a service without data answers. */
const startProxy = () =>
  startServer(({ url, body }, response) => {
    const sent = body === '' ? {} : JSON.parse(body)
    const answer = url.includes('visit')
      ? {
          records: Object.fromEntries(sent.map((visit: { visitRecordId: string }) => [visit.visitRecordId, 'Success'])),
        }
      : { reviews: [], filter: sent }
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Encoding': 'br' })
    response.end(brotliCompressSync(JSON.stringify(answer)))
  })

const says = /the answer is encoded with br, which was not asked for\. Set the service, or the proxy before it, to/
const fail = reportAirbyteFailure

test.each([
  ['source', sourceCheckCommand, { start_date: '2024-01-01T00:00:00Z' }],
  ['destination', destinationCheckCommand, {}],
])('check of the %s fails behind a proxy that answers in Brotli', async (_, command, more) => {
  const { url } = await startProxy()
  const { stdout } = await runCommand(command, ['--config', writeTempFile(configOf(url, more))], { fail })
  expect(airbyteLines(stdout)).toMatchObject([
    { connectionStatus: { status: 'FAILED', message: expect.stringMatching(says) } },
  ])
})

test('a read behind it ends with a config error, so that no platform tries again', async () => {
  const { url, seen } = await startProxy()
  const stream = { name: 'reviews', json_schema: {}, supported_sync_modes: ['full_refresh', 'incremental'] }
  const catalog = { streams: [{ stream, sync_mode: 'incremental', destination_sync_mode: 'append_dedup' }] }
  const { status, stdout } = await runCommand(
    sourceReadCommand,
    [
      '--config',
      writeTempFile(configOf(url, { start_date: '2024-01-01T00:00:00Z' })),
      '--catalog',
      writeTempFile(catalog),
    ],
    { fail },
  )
  const errors = airbyteLines(stdout).flatMap(({ trace }) => (trace?.error === undefined ? [] : [trace.error]))
  expect([status, errors.length]).toEqual([1, 1])
  expect(errors[0]).toMatchObject({ failure_type: 'config_error', message: expect.stringMatching(says) })
  expect(seen.length).toBe(1)
})

test('a write behind it rejects no record and acknowledges none', async () => {
  const { url, seen } = await startProxy()
  const dead_letter_path = newTempPath('jsonl')
  const rows = Array.from({ length: 8 }, (_, n) => visitRow(n, { visitRecordId: `v${n}`, clinic: 'W1' }))
  const config = configOf(url, { batch_size: 8, dead_letter_path, mapping, on_reject: 'continue' })
  const { status, stdout } = await runCommand(
    destinationWriteCommand,
    ['--config', writeTempFile(config), '--catalog', writeTempFile(configuredCatalogOf({ visit_records: 'id' }))],
    { stdin: formatLines(formatStream(airbyteFormat, 'visit_records', 'id', rows)), fail },
  )
  const lines = airbyteLines(stdout)
  expect([status, existsSync(dead_letter_path), lines.filter(({ type }) => type === 'STATE')]).toEqual([1, false, []])
  expect(lines.flatMap(({ trace }) => trace?.error ?? [])).toMatchObject([
    { failure_type: 'config_error', message: expect.stringMatching(says) },
  ])
  expect(seen.filter(({ url, body }) => url.includes('visit') && body.includes('v1')).length).toBe(1)
})
