import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { bin } from './bin.mjs'
import { measure } from './measure.mjs'

const stream = 'visit_records'
const catalog = {
  streams: [
    {
      stream: { name: stream, json_schema: {} },
      sync_mode: 'full_refresh',
      destination_sync_mode: 'append',
      primary_key: [['visitRecordId']],
    },
  ],
}

const visit = (n) => ({
  visitRecordId: `visit-${n}`,
  firstName: 'Ada',
  lastName: `Byron ${n}`,
  email: `ada${n}@example.com`,
  phone: '+15550100',
  locationCode: `W${n % 500}`,
  npi: '1234567890',
  visitTime: new Date(Date.now() - (n % 20) * 86_400_000).toISOString(),
  languageValue: 'en',
})

/** A file with the given number of visits as Airbyte records, and a state after every 1,000. */
const input = (folder, count) => {
  const path = join(folder, 'visits.jsonl')
  const file = openSync(path, 'w')
  const line = (value) => `${JSON.stringify(value)}\n`
  for (let from = 0; from < count; from += 1000) {
    const visits = Array.from({ length: Math.min(1000, count - from) }, (_, index) => visit(from + index))
    const state = { stream: { stream_descriptor: { name: stream }, stream_state: { at: from + visits.length } } }
    writeSync(
      file,
      visits.map((data) => line({ type: 'RECORD', record: { stream, data, emitted_at: 1 } })).join('') +
        line({ type: 'STATE', state: { type: 'STREAM', ...state } }),
    )
  }
  const stream_status = { stream_descriptor: { name: stream }, status: 'COMPLETE' }
  writeSync(file, line({ type: 'TRACE', trace: { type: 'STREAM_STATUS', emitted_at: 1, stream_status } }))
  closeSync(file)
  return path
}

const withSink = async (run) => {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'sink.mjs')], { stdio: ['pipe', 'pipe', 'inherit'] })
  try {
    const [chunk] = await once(child.stdout, 'data')
    return await run(JSON.parse(chunk.toString()).url)
  } finally {
    child.stdin.end()
  }
}

/** Posts the same batches, four at a time, without a connector. */
export const postFloor = ({ folder, pages }) =>
  withSink((url) =>
    measure(folder, [join(import.meta.dirname, 'floors', 'post.mjs'), url], { stdin: input(folder, pages * 1000) }),
  )

/** `destination-feedback write` of visits. */
export const write = ({ folder, pages }) =>
  withSink((url) => {
    const [config, configured] = [join(folder, 'destination.json'), join(folder, 'configured.json')]
    writeFileSync(
      config,
      JSON.stringify({ base_url: url, credentials: { auth_type: 'access_token', access_token: 'bench' } }),
    )
    writeFileSync(configured, JSON.stringify(catalog))
    return measure(folder, [bin('destination-feedback'), 'write', '--config', config, '--catalog', configured], {
      stdin: input(folder, pages * 1000),
    })
  })
