import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

// Reads where the sandbox is on stdin and writes what the image is run with into the folder that is named.
const [, , folder] = process.argv
const { url, application_id, application_secret, token_url } = JSON.parse(await text(process.stdin))
const service = {
  base_url: url,
  credentials: { auth_type: 'application', application_id, application_secret, token_url },
}
const streams = { locations: 'code', visit_records: 'visitRecordId' }

const record = (stream, data) => ({ type: 'RECORD', record: { stream, data, emitted_at: 1 } })
const visit = (n, email) =>
  record('visit_records', {
    visitRecordId: `visit-${n}`,
    name: 'Ada Byron',
    email,
    locationCode: 'W1',
    npi: '1234567890',
  })
const end = (name) => [
  { type: 'STATE', state: { type: 'STREAM', stream: { stream_descriptor: { name }, stream_state: { at: 1 } } } },
  {
    type: 'TRACE',
    trace: {
      type: 'STREAM_STATUS',
      emitted_at: 1,
      stream_status: { stream_descriptor: { name }, status: 'COMPLETE' },
    },
  },
]
const messages = [
  record('locations', { code: 'W1', name: 'Clinic 1' }),
  ...end('locations'),
  visit(1, 'ada@example.com'),
  visit(2, 'ada@example.com'),
  visit(3, null),
  ...end('visit_records'),
]

const files = {
  'source.json': { ...service, start_date: '2000-01-01T00:00:00Z' },
  'destination.json': { ...service, dead_letter_path: '/airbyte/rejected.jsonl' },
  'locked.json': { ...service, dead_letter_path: '/data/rejected.jsonl' },
  'wrong.json': { base_url: 'http://127.0.0.1:9' },
  'writing.json': {
    streams: Object.entries(streams).map(([name, key]) => ({
      stream: { name, json_schema: {}, supported_sync_modes: ['full_refresh'] },
      sync_mode: 'full_refresh',
      destination_sync_mode: 'append',
      primary_key: [[key]],
    })),
  },
}
const texts = { url, 'token-url': token_url, id: `${application_id}\n`, secret: `${application_secret}\n` }
for (const [name, value] of Object.entries(texts)) writeFileSync(join(folder, name), value)
for (const [name, value] of Object.entries(files)) writeFileSync(join(folder, name), JSON.stringify(value))
writeFileSync(join(folder, 'messages.jsonl'), messages.map((message) => `${JSON.stringify(message)}\n`).join(''))
