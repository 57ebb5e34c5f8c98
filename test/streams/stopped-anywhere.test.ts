import fc from 'fast-check'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { expect, test } from 'vitest'
import type { SourceState } from '../../connector/cdk/catalog'
import type { Message, SyncMode } from '../../connector/cdk/message'
import { readStreams } from '../../connector/cdk/read'
import { defineStream } from '../../connector/cdk/stream'
import type { CutRecord } from '../../connector/export/export-page'
import { createExportReader } from '../../connector/streams/export-reader'
import { orders } from '../support/export-arbitraries'
import { type ExportTraits, type SimulatedExport, simulateExport, stableTraits } from '../support/export-simulation'
import { sourceOf } from '../support/in-process'

/** How a run is cut short: after so many messages, and so many turns of the event loop's microtasks into the next. */
type Cutting = {
  /** `stop`: a signal. `wait`: the service makes us wait, and the process is killed while it does. `kill`: at once. */
  readonly kind: 'stop' | 'wait' | 'kill'
  readonly messages: number
  readonly turns: number
}

type Setting = {
  readonly weather: ExportTraits
  readonly seed: number
  readonly limit: number
  readonly concurrency: number
  readonly syncMode: SyncMode
  readonly everyState: boolean
  /** Streams of one reader. */
  readonly names: ReadonlyArray<string>
}

/** What a destination holds that commits rows with the state that covers them, per stream: version by id. */
type Held = Map<string, Map<string, number>>

const streamsOver = (service: SimulatedExport, names: ReadonlyArray<string>) => {
  const reader = createExportReader<CutRecord>({
    name: 'export reviews',
    fetch: () => service.reviews,
    filters: () => ({}),
    hasMentionTime: true,
    toItem: () => (cut) => cut,
  })
  return names.map((name) =>
    defineStream({
      name,
      codec: t.type({ id: t.number, modifiedTime: t.string }),
      primaryKey: ['id'],
      cursor: 'modifiedTime',
      reader,
      project: (cut: CutRecord) => [cut],
    }),
  )
}

/** One run, from a state to the next. */
const run = async (
  service: SimulatedExport,
  { limit, concurrency, syncMode, everyState, names }: Setting,
  held: Held,
  state: SourceState,
  cutting?: Cutting,
): Promise<SourceState> => {
  const streams = streamsOver(service, names)
  const stop = new AbortController()
  const listeners = new Set<(until: number) => void>()
  const source = sourceOf({}, { now: service.now, pageSize: limit, concurrency })
  const messages = readStreams({
    streams,
    env: source,
    catalog: streams.map(({ name }) => ({ name, syncMode, attributes: O.none })),
    state,
    now: service.now,
    checkpointInterval: everyState ? { records: 1, millis: 0 } : { records: 1e9, millis: 1e9 },
    stop: stop.signal,
    onWait: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  })[Symbol.asyncIterator]()
  const said: Message[] = []
  let waited = false
  for (;;) {
    const next = messages.next()
    if (cutting !== undefined && said.length >= cutting.messages) {
      for (let turn = 0; turn < cutting.turns; turn += 1) await undefined
      if (cutting.kind === 'kill') break
      if (cutting.kind === 'stop') stop.abort()
      else if (!waited) for (const tell of [...listeners]) tell(service.now())
      waited = true
    }
    const { done, value } = await next
    if (done === true) break
    said.push(value)
    if (value._tag === 'Failed') throw new Error(value.failure.message)
    if (waited && cutting?.kind === 'wait' && said.length > cutting.messages + 2 * names.length) break
  }
  const states: Record<string, unknown> = { ...state }
  for (const name of names) {
    const last = said.findLastIndex((message) => message._tag === 'Checkpoint' && message.stream === name)
    const rows = held.get(name) ?? new Map<string, number>()
    held.set(name, rows)
    said.slice(0, last + 1).forEach((message) => {
      if (message._tag === 'Checkpoint' && message.stream === name) states[name] = message.state
      if (message._tag !== 'Records' || message.stream !== name) return
      for (const { json } of message.rows) {
        const { id, version } = JSON.parse(Buffer.from(json).toString())
        rows.set(String(id), Math.max(version, rows.get(String(id)) ?? -1))
      }
    })
  }
  return JSON.parse(JSON.stringify(states))
}

/** Rows of the truth that a destination lacks, or holds in an old version. */
const lacking = (service: SimulatedExport, held: Held): ReadonlyArray<string> =>
  [...held].flatMap(([name, rows]) =>
    [...service.truth()].flatMap(([id, version]) => (rows.get(id) === version ? [] : [`${name} ${id}`])),
  )

/** A run that is cut short again and again, then one that is let be: no more than that one, lest it heal what was lost. */
const trial = async (setting: Setting, cuttings: ReadonlyArray<Cutting>): Promise<ReadonlyArray<string>> => {
  const service = simulateExport(setting.weather, setting.seed)
  const held: Held = new Map()
  let state: SourceState = {}
  for (const cutting of cuttings) state = await run(service, setting, held, state, cutting)
  service.calm()
  service.sleep(3_600_000)
  await run(service, setting, held, state)
  return lacking(service, held)
}

const quiet: Setting = {
  weather: { ...stableTraits, rows: 300 },
  seed: 1,
  limit: 100,
  concurrency: 1,
  syncMode: 'incremental',
  everyState: false,
  names: ['reviews'],
}

test.each([
  ['one stream', quiet],
  ['pages asked for ahead', { ...quiet, concurrency: 4 }],
  ['a full refresh', { ...quiet, syncMode: 'full_refresh' as const }],
  ['a state for every page', { ...quiet, everyState: true }],
  ['streams of one reader', { ...quiet, names: ['reviews', 'review_tasks', 'locations'] }],
])(
  'loses nothing of a service that stands still, wherever it is stopped: %s',
  { timeout: 60_000 },
  async (_, setting) => {
    const all: Cutting[] = Array.from({ length: 8 * setting.names.length }, (_, messages) =>
      [0, 25, 50, 75].map((turns): Cutting => ({ kind: 'stop', messages: messages + 2, turns })),
    ).flat()
    const lost: string[] = []
    for (const cutting of all)
      for (const missing of (await trial(setting, [cutting])).slice(0, 1))
        lost.push(`${missing} after ${cutting.messages} messages and ${cutting.turns} turns`)
    expect(lost).toEqual([])
  },
)

const anyCutting: fc.Arbitrary<Cutting> = fc.record({
  kind: fc.constantFrom('stop', 'stop', 'wait', 'kill'),
  messages: fc.integer({ min: 1, max: 25 }),
  turns: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 150 })),
})

/** Reviews without a mention time are certain to be found only where there is an order (scan.md). */
const isOrdered = ({ order }: Pick<ExportTraits, 'order'>): boolean => order !== 'ties' && order !== 'random'

const anySetting: fc.Arbitrary<Setting> = fc.record({
  weather: fc
    .record({
      order: fc.constantFrom(...orders),
      rows: fc.integer({ min: 0, max: 400 }),
      clamp: fc.constantFrom(20, 50, 1000),
      change: fc.constantFrom(0, 0, 1),
      attack: fc.constantFrom(0, 0, 3),
      unmentioned: fc.constantFrom(0, 0.2),
    })
    .map((some): ExportTraits => ({ ...stableTraits, ...some, ...(isOrdered(some) ? {} : { unmentioned: 0 }) })),
  seed: fc.integer(),
  limit: fc.constantFrom(30, 100, 200),
  concurrency: fc.constantFrom(1, 4),
  syncMode: fc.constantFrom('incremental', 'incremental', 'full_refresh'),
  everyState: fc.boolean(),
  names: fc.constantFrom(['reviews'], ['reviews', 'review_tasks']),
})

test('loses nothing however often, and wherever, it is cut short', { timeout: 120_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(anySetting, fc.array(anyCutting, { minLength: 1, maxLength: 5 }), async (setting, cuttings) => {
      expect(await trial(setting, cuttings)).toEqual([])
    }),
    { numRuns: Number(process.env.SCAN_RUNS ?? 150) },
  )
})
