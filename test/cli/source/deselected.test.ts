import { expect, it, onTestFinished } from 'vitest'
import { sourceDiscoverCommand, sourceReadCommand, tapCommand } from '../../../connector/cli/feedback-source'
import { newTempPath, writeTempFile } from '../../support/files'
import {
  type AirbyteStream,
  airbyteLines,
  airbyteState,
  recordTexts,
  type SingerStream,
  singerRecords,
  singerState,
} from '../../support/lines'
import { sendJson, startServer } from '../../support/listen'
import { runCommand } from '../../support/run-command'
import { sandboxConfig, startChangingSandbox, startSmallSandbox } from '../../support/sandbox'
import { openSnapshotFile } from '../../support/snapshot-messages'

type Data = Readonly<Record<string, unknown>>

const discover = async (config: string): Promise<ReadonlyArray<AirbyteStream>> =>
  airbyteLines((await runCommand(sourceDiscoverCommand, ['--config', config])).stdout)[0]?.catalog?.streams ?? []

/** Reads these streams with the properties that their schemas have in the catalog. */
const readWith = async (
  config: string,
  streams: ReadonlyArray<AirbyteStream>,
  propertiesOf: (stream: AirbyteStream) => unknown,
  state: ReadonlyArray<unknown> = [],
) => {
  const catalog = writeTempFile({
    streams: streams.map((stream) => ({
      stream: { ...stream, json_schema: { ...stream.json_schema, properties: propertiesOf(stream) } },
      sync_mode: stream.supported_sync_modes.at(-1),
    })),
  })
  const args = ['--config', config, '--catalog', catalog, '--state', writeTempFile(state)]
  const ran = await runCommand(sourceReadCommand, args)
  expect(ran.status, ran.stderr).toBe(0)
  return ran.stdout
}

/** What a stream has regardless of the selection. */
const automaticOf = ({ source_defined_primary_key = [], default_cursor_field = [] }: AirbyteStream) => [
  ...source_defined_primary_key.map(([name = '']) => name),
  ...default_cursor_field,
]

const pick = (text: string, names: ReadonlyArray<string>): Data =>
  Object.fromEntries(Object.entries(JSON.parse(text) as Data).filter(([name]) => names.includes(name)))

it('a catalog with the whole schemas, or with none, gets every byte of every record', async () => {
  const config = writeTempFile(sandboxConfig(await startSmallSandbox()))
  const streams = await discover(config)
  const whole = await readWith(config, streams, ({ json_schema }) => json_schema.properties)
  const others = await Promise.all(
    [undefined, null, {}].map((properties) => readWith(config, streams, () => properties)),
  )
  for (const { name } of streams) {
    expect(recordTexts(whole, name).length, name).toBeGreaterThan(0)
    for (const other of others) expect(recordTexts(other, name)).toEqual(recordTexts(whole, name))
  }
})

it('no stream sends what the schema of the catalog leaves out; keys and cursors always leave', async () => {
  const config = writeTempFile(sandboxConfig(await startSmallSandbox()))
  const streams = await discover(config)
  const whole = await readWith(config, streams, ({ json_schema }) => json_schema.properties)
  const chosen = { rating: {}, name: {}, question: {}, label: {} }
  const some = await readWith(config, streams, () => chosen)
  for (const stream of streams) {
    const names = [...automaticOf(stream), ...Object.keys(chosen)]
    const expected = recordTexts(whole, stream.name).map((text) => pick(text, names))
    expect(recordTexts(some, stream.name).map((text) => JSON.parse(text))).toEqual(expected)
  }
  const responses = [...whole.matchAll(/"response":"([^"]{20,})"/g)].map(([, text = '']) => text)
  expect(responses.length).toBeGreaterThan(0)
  expect(responses.filter((text) => some.includes(text))).toEqual([])
})

it('a new attribute of the service follows unknown_attributes', async () => {
  const { url } = await startServer((request, response) => {
    const { offset, ...filter } = JSON.parse(request.body) as { readonly offset: number }
    const reviews = [{ id: 1, modifiedTime: '2026-01-01T00:00:00.000Z', rating: 4, mood: 'glad' }]
    sendJson(response, 200, { reviews: reviews.slice(offset), filter: { ...filter, offset } })
  })
  const config = writeTempFile(sandboxConfig({ url, accessToken: 'x' }))
  const reviews = (await discover(config)).filter(({ name }) => name === 'reviews')
  const kept = await readWith(config, reviews, () => ({ unknown_attributes: {} }))
  expect(recordTexts(kept, 'reviews').map((text) => JSON.parse(text))).toEqual([
    { id: 1, modifiedTime: '2026-01-01T00:00:00.000Z', unknown_attributes: { mood: 'glad' } },
  ])
  const left = await readWith(config, reviews, () => ({ rating: {} }))
  expect(recordTexts(left, 'reviews').map((text) => JSON.parse(text))).toEqual([
    { id: 1, modifiedTime: '2026-01-01T00:00:00.000Z', rating: 4 },
  ])
})

it('a tombstone has its mark and no more than a review, and the file of snapshot_path holds what is sent', async () => {
  const { sandbox, stopChanges } = await startChangingSandbox({ reviews: 100, churn: {} })
  onTestFinished(() => sandbox.close())
  const path = newTempPath('duckdb')
  const config = writeTempFile(sandboxConfig(sandbox, { deletes: 'tombstones', snapshot_path: path }))
  const reviews = (await discover(config)).filter(({ name }) => name === 'reviews')
  const first = await readWith(config, reviews, () => ({ rating: {} }))
  stopChanges(600_000)
  await sandbox.churn({ delete: 10 })
  stopChanges(600_000)
  const second = await readWith(config, reviews, () => ({ rating: {} }), airbyteState(first))
  const sent = [first, second].flatMap((stdout) =>
    recordTexts(stdout, 'reviews').map((text) => JSON.parse(text) as Data),
  )
  const isDeleted = ({ _ab_cdc_deleted_at }: Data) => _ab_cdc_deleted_at != null
  expect(sent.filter(isDeleted)).toHaveLength(10)
  const allowed = new Set(['id', 'modifiedTime', 'rating', '_ab_cdc_deleted_at'])
  expect(sent.flatMap(Object.keys).filter((name) => !allowed.has(name))).toEqual([])
  const { db } = await openSnapshotFile(path)
  expect(
    await db.query(
      'SELECT count(*)::INTEGER AS n, count(rating)::INTEGER AS rated, count(contents)::INTEGER AS told FROM reviews',
    ),
  ).toEqual([{ n: 90, rated: 90, told: 0 }])
  db.close()
})

it('a tap sends the mark of a deletion that is deselected', async () => {
  const { sandbox, stopChanges } = await startChangingSandbox({ reviews: 100, churn: {} })
  onTestFinished(() => sandbox.close())
  const config = writeTempFile(sandboxConfig(sandbox, { deletes: 'tombstones' }))
  const catalog = JSON.parse((await runCommand(tapCommand, ['--config', config, '--discover'])).stdout)
  const reviews = catalog.streams.find((stream: SingerStream) => stream.tap_stream_id === 'reviews')
  for (const { breadcrumb, metadata } of reviews.metadata)
    metadata.selected = breadcrumb.length === 0 || breadcrumb[1] === 'rating'
  const args = ['--config', config, '--catalog', writeTempFile({ streams: [reviews] })]
  const first = await runCommand(tapCommand, args)
  stopChanges(600_000)
  await sandbox.churn({ delete: 10 })
  stopChanges(600_000)
  const second = await runCommand(tapCommand, [...args, '--state', writeTempFile(singerState(first.stdout))])
  const sent = singerRecords(second.stdout, 'reviews')
  expect(sent.map(({ _sdc_deleted_at }) => typeof _sdc_deleted_at)).toEqual(Array(10).fill('string'))
  expect(
    sent.flatMap(Object.keys).filter((name) => !['id', 'modifiedTime', 'rating', '_sdc_deleted_at'].includes(name)),
  ).toEqual([])
  expect(second.stdout).toContain('"_sdc_deleted_at":{')
})
