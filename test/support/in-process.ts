import * as O from 'fp-ts/Option'
import type { Api } from '../../connector/api/api'
import type { SourceState } from '../../connector/cdk/catalog'
import type { Message, SyncMode } from '../../connector/cdk/message'
import { type CheckpointInterval, readStreams } from '../../connector/cdk/read'
import type { Stream } from '../../connector/cdk/stream'
import { createEntityIndex } from '../../connector/streams/entity-index'
import type { SourceEnv } from '../../connector/streams/source-env'
import { parseExact } from './destination'

/** A source over any `Api`, with defaults of the config. */
export const sourceOf = (api: Partial<Api>, more: Partial<SourceEnv> = {}): SourceEnv => ({
  api: api as Api,
  now: Date.now,
  startDate: Date.parse('2010-01-01T00:00:00Z'),
  lookback: 600_000,
  filters: { additionalFields: ['brand', 'visitRecordId'] },
  partition: O.none,
  pageSize: 1000,
  order: 'unspecified',
  concurrency: 4,
  onUnknown: 'keep',
  actions: {},
  entities: { persons: [], locations: [], entities: [], fromReviews: { locations: false, providers: 'none' } },
  feedback: { thresholds: {}, perPage: 100, days: 365, lookbackDays: 30 },
  entityIndex: createEntityIndex(),
  ...more,
})

export type Outcome = {
  readonly records: Readonly<Record<string, ReadonlyArray<Record<string, unknown>>>>
  readonly state: SourceState
  readonly messages: ReadonlyArray<Message>
  /** Message of the failure, by stream. */
  readonly failures: Readonly<Record<string, string>>
  readonly logs: ReadonlyArray<string>
}

/** One run in this process, every integer exact. */
export const readAll = async (
  source: SourceEnv,
  streams: ReadonlyArray<Stream<SourceEnv>>,
  state: SourceState = {},
  syncMode: SyncMode = 'incremental',
  cadence: CheckpointInterval = { records: 1, millis: 0 },
): Promise<Outcome> => {
  const messages: Message[] = []
  const run = readStreams({
    streams,
    env: source,
    catalog: streams.map(({ name }) => ({ name, syncMode, attributes: O.none })),
    state,
    now: source.now,
    checkpointInterval: cadence,
    stop: new AbortController().signal,
    onWait: () => () => undefined,
  })
  for await (const message of run) messages.push(message)
  const records: Record<string, Array<Record<string, unknown>>> = Object.fromEntries(
    streams.map(({ name }) => [name, []]),
  )
  const states: Record<string, unknown> = { ...state }
  const failures: Record<string, string> = {}
  for (const message of messages) {
    if (message._tag === 'Records')
      for (const { json } of message.rows)
        records[message.stream]?.push(parseExact(Buffer.from(json).toString()) as Record<string, unknown>)
    if (message._tag === 'Checkpoint') states[message.stream] = message.state
    if (message._tag === 'Failed') failures[message.stream ?? ''] = message.failure.message
  }
  const logs = messages.flatMap((message) => (message._tag === 'Log' ? [message.message] : []))
  return { records, state: JSON.parse(JSON.stringify(states)), messages, failures, logs }
}
