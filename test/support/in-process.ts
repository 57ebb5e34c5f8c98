import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import type { Api } from '../../connector/api/routes'
import type { SourceState } from '../../connector/cdk/catalog'
import type { Message, SyncMode } from '../../connector/cdk/message'
import { type CheckpointInterval, type ReadRun, readStreams } from '../../connector/cdk/read'
import type { Stream } from '../../connector/cdk/stream'
import { createEntityIndex } from '../../connector/streams/entity-index'
import type { SourceEnv } from '../../connector/streams/source-env'
import { applyStreamSettings } from '../../connector/streams/streams'
import { parseExact } from './destination'

/** The entities of a config that names none but these. */
export const selectEntities = (selection: Partial<SourceEnv['entities']> = {}): SourceEnv['entities'] => ({
  persons: [],
  locations: [],
  entities: [],
  fromReviews: { locations: false, providers: 'none' },
  ...selection,
})

/** The entities of a config that takes the locations from the reviews. */
export const locationsFromReviews = selectEntities({ fromReviews: { locations: true, providers: 'none' } })

/** What streams read from: any `Api`, with the defaults of the config. */
export const createSourceEnv = (api: Partial<Api>, overrides: Partial<SourceEnv> = {}): SourceEnv => ({
  api: api as Api,
  now: Date.now,
  startDate: Date.parse('2010-01-01T00:00:00Z'),
  lookback: 600_000,
  filters: { additionalFields: ['brand', 'visitRecordId'] },
  partition: O.none,
  pageSize: 1000,
  concurrency: 4,
  onUnknown: 'keep',
  actions: {},
  entities: selectEntities(),
  feedback: { thresholds: {}, perPage: 100, days: 365, lookbackDays: 30 },
  entityIndex: createEntityIndex(),
  ...overrides,
})

/** The streams of a config that asks for tombstones, and for `sync_audit` where `audit` says so. */
export const streamsWithTombstones = (audit = false): ReadonlyArray<Stream<SourceEnv>> => {
  const all = applyStreamSettings({
    privacy: { drop: [], hash: [], hashKey: undefined },
    fromReviews: { locations: false, providers: 'none' },
    tombstones: O.some('_ab_cdc_deleted_at'),
    lookups: {},
    audit,
  })
  if (E.isLeft(all)) throw new Error(all.left.message)
  return all.right
}

/** A checkpoint after every record, and none but the last. */
export const everyCheckpoint: CheckpointInterval = { records: 1, millis: 0 }
export const lastCheckpointOnly: CheckpointInterval = { records: 1e9, millis: 1e9 }

type RunOptions = Partial<Pick<ReadRun<SourceEnv>, 'state' | 'checkpointInterval' | 'stop' | 'onWait'>> & {
  readonly syncMode?: SyncMode
}

/** The messages of one run of these streams, every attribute selected. */
export const readMessages = (
  source: SourceEnv,
  streams: ReadonlyArray<Stream<SourceEnv>>,
  { syncMode = 'incremental', ...options }: RunOptions = {},
): AsyncGenerator<Message> =>
  readStreams({
    streams,
    env: source,
    catalog: streams.map(({ name }) => ({ name, syncMode, attributes: O.none })),
    now: source.now,
    state: {},
    checkpointInterval: everyCheckpoint,
    stop: new AbortController().signal,
    onWait: () => () => undefined,
    ...options,
  })

/** A state as a platform keeps it: through JSON. */
export const copyState = (state: object): SourceState => JSON.parse(JSON.stringify(state))

export type Outcome = {
  readonly records: Readonly<Record<string, ReadonlyArray<Record<string, unknown>>>>
  readonly state: SourceState
  readonly messages: ReadonlyArray<Message>
  /** Messages of the failures, by stream. */
  readonly failures: Readonly<Record<string, string>>
  readonly logs: ReadonlyArray<string>
}

/** One run to its end in this process, every integer exact. */
export const readAll = async (
  source: SourceEnv,
  streams: ReadonlyArray<Stream<SourceEnv>>,
  state: SourceState = {},
  syncMode: SyncMode = 'incremental',
  checkpointInterval: CheckpointInterval = everyCheckpoint,
): Promise<Outcome> => {
  const messages: Message[] = []
  for await (const message of readMessages(source, streams, { state, syncMode, checkpointInterval }))
    messages.push(message)
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
  return { records, state: copyState(states), messages, failures, logs }
}
