import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { pipe } from 'fp-ts/function'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { expect, test } from 'vitest'
import type { SourceState } from '../../connector/cdk/catalog'
import type { Message, SyncMode } from '../../connector/cdk/message'
import type { CheckpointInterval } from '../../connector/cdk/read'
import { defineStream } from '../../connector/cdk/stream'
import type { CutRecord } from '../../connector/export/cut/record'
import { createExportReader } from '../../connector/streams/export-reader'
import { draws } from '../support/draws'
import { orders } from '../support/export-arbitraries'
import { type ExportTraits, type SimulatedExport, simulateExport, stableTraits } from '../support/export-simulation'
import { copyState, createSourceEnv, everyCheckpoint, lastCheckpointOnly, readMessages } from '../support/in-process'

/** How a run ends early: after this many messages, and this many microtasks after the next message was requested. */
type Interruption = {
  /** `stop`: by a signal. `wait`: killed while the service makes it wait. `kill`: killed at once. */
  readonly kind: 'stop' | 'wait' | 'kill'
  readonly messages: number
  readonly microtasks: number
}

type Setting = {
  readonly traits: ExportTraits
  readonly seed: number
  readonly limit: number
  readonly concurrency: number
  readonly syncMode: SyncMode
  readonly checkpointInterval: CheckpointInterval
  /** Names of the streams, which share one reader. */
  readonly names: ReadonlyArray<string>
}

/** The rows of a destination that commits rows together with the state that covers them, by stream: version by id. */
type Destination = Map<string, Map<string, number>>

/** `answer`: resolves when the service may answer. */
const createStreams = (service: SimulatedExport, names: ReadonlyArray<string>, answer: () => Promise<void>) => {
  const reader = createExportReader<CutRecord>({
    name: 'export reviews',
    fetch: () => (request, turn) =>
      pipe(
        TE.fromTask(answer),
        TE.flatMap(() => service.reviews(request, turn)),
      ),
    filters: () => ({}),
    hasMentionTime: true,
    toItem: () => (record) => record,
  })
  return names.map((name) =>
    defineStream({
      name,
      codec: t.type({ id: t.number, modifiedTime: t.string }),
      primaryKey: ['id'],
      cursor: 'modifiedTime',
      reader,
      project: (record: CutRecord) => [record],
    }),
  )
}

/** Makes one run, which may be interrupted; returns the state that the destination has committed. */
const runOnce = async (
  service: SimulatedExport,
  { limit, concurrency, syncMode, checkpointInterval, names }: Setting,
  destination: Destination,
  state: SourceState,
  interruption?: Interruption,
): Promise<SourceState> => {
  let hasWaited = false
  // A run reports a wait only if it has to wait for a page.
  const streams = createStreams(service, names, async () => {
    for (let turn = 0; hasWaited && turn < 3; turn += 1) await setImmediate()
  })
  const stop = new AbortController()
  const listeners = new Set<(until: number) => void>()
  const source = createSourceEnv({}, { now: service.now, pageSize: limit, concurrency })
  const messages = readMessages(source, streams, {
    syncMode,
    state,
    checkpointInterval,
    stop: stop.signal,
    onWait: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  })
  const received: Message[] = []
  for (;;) {
    const next = messages.next()
    if (interruption !== undefined && received.length >= interruption.messages) {
      for (let count = 0; count < interruption.microtasks; count += 1) await undefined
      if (interruption.kind === 'kill') break
      if (interruption.kind === 'stop') stop.abort()
      else if (!hasWaited) for (const onWait of [...listeners]) onWait(service.now() + 3_600_000)
      hasWaited = true
    }
    const { done, value } = await next
    if (done === true) break
    received.push(value)
    if (value._tag === 'Failed') throw new Error(value.failure.message)
    if (hasWaited && interruption?.kind === 'wait' && received.length > interruption.messages + 2 * names.length) break
  }
  const states: Record<string, unknown> = { ...state }
  for (const name of names) {
    const lastCheckpoint = received.findLastIndex((message) => message._tag === 'Checkpoint' && message.stream === name)
    const rows = destination.get(name) ?? new Map<string, number>()
    destination.set(name, rows)
    received.slice(0, lastCheckpoint + 1).forEach((message) => {
      if (message._tag === 'Checkpoint' && message.stream === name) states[name] = message.state
      if (message._tag !== 'Records' || message.stream !== name) return
      for (const { json } of message.rows) {
        const { id, version } = JSON.parse(Buffer.from(json).toString())
        rows.set(String(id), Math.max(version, rows.get(String(id)) ?? -1))
      }
    })
  }
  return copyState(states)
}

/** Rows of the service that the destination does not have, or has in an old version. */
const findLostRows = (service: SimulatedExport, destination: Destination): ReadonlyArray<string> =>
  [...destination].flatMap(([name, rows]) =>
    [...service.truth()].flatMap(([id, version]) => (rows.get(id) === version ? [] : [`${name} ${id}`])),
  )

/**
 * The rows lost by interrupted runs and one complete run. Only one, since a second could recover what the others lost.
 */
const runInterrupted = async (
  setting: Setting,
  interruptions: ReadonlyArray<Interruption>,
): Promise<ReadonlyArray<string>> => {
  const service = simulateExport(setting.traits, setting.seed)
  const destination: Destination = new Map()
  let state: SourceState = {}
  for (const interruption of interruptions) state = await runOnce(service, setting, destination, state, interruption)
  service.calm()
  service.sleep(3_600_000)
  await runOnce(service, setting, destination, state)
  return findLostRows(service, destination)
}

const oneStream: Setting = {
  traits: { ...stableTraits, rows: 300 },
  seed: 1,
  limit: 100,
  concurrency: 1,
  syncMode: 'incremental',
  checkpointInterval: lastCheckpointOnly,
  names: ['reviews'],
}

test.each([
  ['one stream', oneStream],
  ['prefetched pages', { ...oneStream, concurrency: 4 }],
  ['a full refresh', { ...oneStream, syncMode: 'full_refresh' as const }],
  ['every checkpoint', { ...oneStream, checkpointInterval: everyCheckpoint }],
  ['streams that share a reader', { ...oneStream, names: ['reviews', 'review_tasks', 'locations'] }],
])('a run over an unchanging service loses no row wherever it is stopped: %s', async (_, setting) => {
  const interruptions: Interruption[] = Array.from({ length: 8 * setting.names.length }, (_, messages) =>
    [0, 25, 50, 75].map((microtasks): Interruption => ({ kind: 'stop', messages: messages + 2, microtasks })),
  ).flat()
  const lost: string[] = []
  for (const interruption of interruptions)
    for (const row of (await runInterrupted(setting, [interruption])).slice(0, 1))
      lost.push(`${row} after ${interruption.messages} messages and ${interruption.microtasks} microtasks`)
  expect(lost).toEqual([])
})

const anyInterruption: fc.Arbitrary<Interruption> = fc.record({
  kind: fc.constantFrom('stop', 'stop', 'wait', 'kill'),
  messages: fc.integer({ min: 1, max: 25 }),
  microtasks: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 150 })),
})

/** Only an ordered export is certain to find reviews without a mention time. */
const isOrdered = ({ order }: Pick<ExportTraits, 'order'>): boolean => order !== 'ties' && order !== 'random'

const anySetting: fc.Arbitrary<Setting> = fc.record({
  traits: fc
    .record({
      order: fc.constantFrom(...orders),
      rows: fc.integer({ min: 0, max: 400 }),
      clamp: fc.constantFrom(20, 50, 1000),
      change: fc.constantFrom(0, 0, 1),
      attack: fc.constantFrom(0, 0, 3),
      unmentioned: fc.constantFrom(0, 0.2),
    })
    .map((traits): ExportTraits => ({ ...stableTraits, ...traits, ...(isOrdered(traits) ? {} : { unmentioned: 0 }) })),
  seed: fc.integer(),
  limit: fc.constantFrom(30, 100, 200),
  concurrency: fc.constantFrom(1, 4),
  syncMode: fc.constantFrom('incremental', 'incremental', 'full_refresh'),
  checkpointInterval: fc.constantFrom(everyCheckpoint, lastCheckpointOnly),
  names: fc.constantFrom(['reviews'], ['reviews', 'review_tasks']),
})

test('runs lose no row however often, and wherever, they are interrupted', async () => {
  await fc.assert(
    fc.asyncProperty(
      anySetting,
      fc.array(anyInterruption, { minLength: 1, maxLength: 5 }),
      async (setting, interruptions) => {
        expect(await runInterrupted(setting, interruptions)).toEqual([])
      },
    ),
    draws(50),
  )
})
