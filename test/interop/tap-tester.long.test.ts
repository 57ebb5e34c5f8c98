import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Sandbox } from '../../connector/sandbox/start'
import { createJsonFolder, type JsonFolder } from '../support/files'
import { type SingerStream, singerLines, singerRecords, singerState } from '../support/lines'
import { runProgram } from '../support/program'
import { startTestSandbox } from '../support/sandbox'
import { schemaProperties } from '../support/schema-walk'
import { addMetadata, createTapRunner, readBookmark, recordKeys, selectAll, selectAutomatic } from './tap'

// The cases of singer-io's tap-tester under their own names, over the built tap: its own runner needs the vendor's
// service.

let sandbox: Sandbox
let files: JsonFolder
let streams: ReadonlyArray<SingerStream>
let runTap: ReturnType<typeof createTapRunner>

beforeAll(async () => {
  sandbox = await startTestSandbox({ reviews: 300 })
  files = createJsonFolder()
  runTap = createTapRunner(sandbox, files)
  streams = JSON.parse((await runProgram('tap-feedback', ['--discover'])).stdout).streams
  expect(streams.length).toBeGreaterThan(10)
})
afterAll(async () => {
  await sandbox.close()
  files.remove()
})

const findStream = (name: string): SingerStream => {
  const found = streams.find(({ tap_stream_id }) => tap_stream_id === name)
  if (found === undefined) throw new Error(`No stream ${name}`)
  return found
}
const exportStreams = ['deleted_reviews', 'reviews']

describe('the tap', () => {
  it('discovery: describes keys, cursor, replication method and automatic attributes in the metadata', () => {
    for (const { key_properties, replication_key, metadata, schema } of streams) {
      const [root, ...fields] = metadata
      expect(root).toMatchObject({
        breadcrumb: [],
        metadata: { inclusion: 'available', 'table-key-properties': key_properties },
      })
      expect(root?.metadata['forced-replication-method']).toBe(
        replication_key === undefined ? 'FULL_TABLE' : 'INCREMENTAL',
      )
      if (replication_key !== undefined) expect(root?.metadata['valid-replication-keys']).toEqual([replication_key])
      const automatic = fields.filter((field) => field.metadata.inclusion === 'automatic')
      expect(automatic.map(({ breadcrumb }) => breadcrumb[1]).sort()).toEqual(
        [...new Set([...key_properties, ...(replication_key === undefined ? [] : [replication_key])])].sort(),
      )
      expect(fields.map(({ breadcrumb }) => breadcrumb[1])).toEqual(Object.keys(schemaProperties(schema)))
    }
  })

  it('all_fields: sends every attribute of a stream that is selected completely', async () => {
    const { stdout } = await runTap({ catalog: selectAll(streams) })
    for (const { tap_stream_id, schema } of streams) {
      const sent = new Set(singerRecords(stdout, tap_stream_id).flatMap((record) => Object.keys(record)))
      const declared = Object.keys(schemaProperties(schema)).filter((name) => name !== 'unknown_attributes')
      expect([tap_stream_id, [...sent].sort()]).toEqual([tap_stream_id, declared.sort()])
    }
  })

  it(
    'automatic_fields: sends only keys and cursor of a stream ' +
      'without selected attributes, in RECORD, SCHEMA and required',
    async () => {
      const { stdout } = await runTap({ catalog: selectAutomatic(streams) })
      for (const stream of streams) {
        const { tap_stream_id, key_properties, replication_key = '' } = stream
        const automatic = [...new Set([...key_properties, replication_key])].filter((name) => name !== '').sort()
        const records = singerRecords(stdout, tap_stream_id)
        expect([tap_stream_id, records.length]).not.toContain(0)
        for (const record of records) expect(Object.keys(record).sort()).toEqual(automatic)
        const schema = singerLines(stdout).flatMap((line) =>
          line.type === 'SCHEMA' && line.stream === tap_stream_id ? [line.schema] : [],
        )
        expect(schema.map((one) => Object.keys(schemaProperties(one)).sort())).toEqual([automatic])
        expect(automatic).toEqual(expect.arrayContaining([schema[0]?.required ?? []].flat()))
      }
    },
  )

  it('deselected: does not read a stream that is not selected, and keeps its bookmark', async () => {
    const state = { bookmarks: { reviews: { modifiedTimeFrom: '2024-01-01T00:00:00.000Z' }, foreign: { at: 1 } } }
    const catalog = {
      streams: [
        ...selectAll([findStream('deleted_reviews')]).streams,
        addMetadata(findStream('reviews'), () => ({ selected: 'false' })),
      ],
    }
    const { stdout } = await runTap({ catalog, state })
    expect(singerLines(stdout).flatMap((line) => (line.type === 'STATE' ? [] : [line.stream]))).not.toContain('reviews')
    expect(singerState(stdout).bookmarks).toMatchObject(state.bookmarks)
  })

  it('bookmark: continues from its bookmarks in a second run and sends no record again', async () => {
    const first = singerState((await runTap({})).stdout)
    const { stdout } = await runTap({ state: first })
    for (const { tap_stream_id, replication_key } of streams)
      if (replication_key !== undefined) expect(singerRecords(stdout, tap_stream_id)).toEqual([])
    const second = singerState(stdout)
    for (const name of exportStreams) expect(readBookmark(second, name) >= readBookmark(first, name)).toBe(true)
    const back = { bookmarks: { reviews: { modifiedTimeFrom: '2026-01-01T00:00:00.000Z' } } }
    const earlier = await runTap({ state: back, catalog: selectAll([findStream('reviews')]) })
    const records = singerRecords(earlier.stdout, 'reviews')
    expect(records.length).toBeGreaterThan(0)
    expect(records.length).toBeLessThan(300)
    for (const { modifiedTime } of records) expect(String(modifiedTime) > '2025-12-31T23:49').toBe(true)
  })

  it('start_date: sends fewer records for a later start_date, all of them after it', async () => {
    const later = await runTap({
      config: { start_date: '2026-06-01T00:00:00Z' },
      catalog: selectAll([findStream('reviews')]),
    })
    const records = singerRecords(later.stdout, 'reviews')
    expect(records.length).toBeGreaterThan(0)
    expect(records.length).toBeLessThan(300)
    for (const { modifiedTime } of records) expect(String(modifiedTime) >= '2026-05-31T23:59').toBe(true)
  })

  it('pagination: sends each record of many pages once', async () => {
    const before = sandbox.stats().exports
    const { stdout } = await runTap({ config: { page_size: 25 }, catalog: selectAll([findStream('reviews')]) })
    const keys = recordKeys(findStream('reviews'), stdout)
    expect([keys.length, new Set(keys).size]).toEqual([300, 300])
    expect(sandbox.stats().exports - before).toBeGreaterThan(300 / 25)
  })

  it('interrupted_sync: begins with the interrupted stream, and reads all of them', async () => {
    const whole = singerState((await runTap({})).stdout)
    const state = { bookmarks: { deleted_reviews: whole.bookmarks.deleted_reviews }, currently_syncing: 'reviews' }
    const { stdout } = await runTap({ state })
    const order = singerLines(stdout).flatMap((line) => (line.type === 'SCHEMA' ? [line.stream] : []))
    expect(order[0]).not.toBe('deleted_reviews')
    expect(order.at(-1)).toBe('deleted_reviews')
    expect(singerRecords(stdout, 'reviews')).toHaveLength(300)
    expect(singerState(stdout).currently_syncing).toBeNull()
  })

  it.each(['reviews', 'sync_audit'])(
    'interrupted_sync: reports what it has sent after all streams, even if %s was interrupted',
    async (name) => {
      const discovered: ReadonlyArray<SingerStream> = JSON.parse(
        (await runTap({ config: { audit: true }, flags: ['--discover'] })).stdout,
      ).streams
      const audited = ['deleted_reviews', 'reviews', 'sync_audit']
      const catalog = selectAll(discovered.filter(({ tap_stream_id }) => audited.includes(tap_stream_id)))
      const { stdout } = await runTap({
        config: { audit: true },
        catalog,
        state: { bookmarks: {}, currently_syncing: name },
      })
      const told = singerRecords(stdout, 'sync_audit').map(({ stream }) => stream)
      expect(told.sort()).toEqual(['deleted_reviews', 'reviews'])
    },
  )

  it.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const)(
    'interrupted_sync: ends after %s with a state and status %i, and a run from that state reads the rest',
    async (signal, status) => {
      const slow = { page_size: 10, rate_limit: { max_concurrency: 1 } }
      const catalog = selectAll([findStream('reviews')])
      const cut = await runTap(
        { config: slow, catalog },
        { signalAt: (out) => (out.includes('"RECORD"') ? signal : undefined) },
      )
      expect(cut.status).toBe(status)
      expect(singerState(cut.stdout)).toHaveProperty('currently_syncing')
      const rest = await runTap({ catalog, state: singerState(cut.stdout) })
      const ids = [cut, rest].flatMap(({ stdout }) => singerRecords(stdout, 'reviews').map(({ id }) => id))
      expect(new Set(ids).size).toBe(300)
    },
  )

  it('ends without an error message when its reader goes away', async () => {
    const ran = await runTap({}, { env: {}, signalAt: () => undefined, closeStdoutAfter: 1 })
    expect(ran.status).toBe(1)
    expect(ran.stderr).not.toMatch(/EPIPE|Error/)
  })
})
