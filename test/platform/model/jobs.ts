import { type ConfiguredStream, type Connection, type Descriptor, type Json, streamKey } from './connection'

export type Job =
  | { readonly kind: 'sync' }
  /** Reads streams from the start: truncate replaces what the destination holds, merge keeps it. Needs refreshes. */
  | { readonly kind: 'truncate' | 'merge'; readonly streams: ReadonlyArray<string> }
  /** Empties streams at the destination. No source runs. */
  | { readonly kind: 'clear'; readonly streams: ReadonlyArray<string> }

export type KeptState = { readonly descriptor: Descriptor; readonly state: unknown }

/** What the platform remembers of a connection between attempts. Streams are named by their keys. */
export type Kept = {
  /** True for a source that sends GLOBAL states. */
  readonly isGlobal: boolean
  readonly shared?: unknown
  readonly states: Readonly<Record<string, KeptState>>
  readonly generations: Readonly<Record<string, number>>
}

export const nothingKept: Kept = { isGlobal: false, states: {}, generations: {} }

/** What an attempt starts with. */
export type Prepared = {
  readonly kept: Kept
  /** The catalogue of the job, before it is adapted to the source or the destination. */
  readonly streams: ReadonlyArray<ConfiguredStream>
  /** The states for `--state`; undefined where none is kept. */
  readonly inputState: ReadonlyArray<Json> | undefined
  /** What takes the place of the source's output in a Clear job. */
  readonly cleared: ReadonlyArray<Json> | undefined
}

const omit = <A>(record: Readonly<Record<string, A>>, keys: ReadonlySet<string>): Readonly<Record<string, A>> =>
  Object.fromEntries(Object.entries(record).filter(([key]) => !keys.has(key)))

/** The streams that the attempt starts over. airbyte-platform: AttemptHandler. */
export const restartedStreams = (
  streams: ReadonlyArray<ConfiguredStream>,
  job: Job,
  attempt: number,
): ReadonlySet<string> => {
  const named = (name: string): boolean => job.kind !== 'sync' && job.streams.includes(name)
  const isInJob = (name: string): boolean => job.kind !== 'clear' || named(name)
  return new Set(
    streams
      .filter(
        ({ stream: { name }, sync_mode }) =>
          isInJob(name) && (sync_mode === 'full_refresh' || (attempt === 1 && named(name))),
      )
      .map(({ stream }) => streamKey(stream)),
  )
}

/** Rows below this generation are replaced; 0 keeps all. airbyte-platform: CatalogGenerationSetter. */
export const minimumGeneration = (
  { stream, sync_mode, destination_sync_mode }: ConfiguredStream,
  job: Job,
  generation: number,
): number => {
  const isReplaced =
    job.kind === 'clear' ||
    (job.kind === 'truncate' && job.streams.includes(stream.name)) ||
    (sync_mode === 'full_refresh' && destination_sync_mode.startsWith('overwrite'))
  return isReplaced ? generation : 0
}

/** The states as `--state` shows them. airbyte-platform: StateConverter. */
export const toInputState = ({ isGlobal, shared, states }: Kept): ReadonlyArray<Json> | undefined => {
  const streams = Object.values(states).map(({ descriptor, state }) => ({
    stream_descriptor: descriptor,
    stream_state: state,
  }))
  if (isGlobal) return [{ type: 'GLOBAL', global: { shared_state: shared, stream_states: streams } }]
  return streams.length === 0 ? undefined : streams.map((stream) => ({ type: 'STREAM', stream }))
}

/**
 * A Clear says that a state is gone by a state without its content; where none was kept, nothing. airbyte-platform:
 * EmptyAirbyteSource.
 */
export const clearingStates = (
  { isGlobal, states }: Kept,
  streams: ReadonlyArray<ConfiguredStream>,
): ReadonlyArray<Json> => {
  const lost = streams
    .filter(({ stream }) => states[streamKey(stream)] !== undefined)
    .map(({ stream: { name, namespace } }) => ({
      stream_descriptor: { name, ...(namespace === undefined ? {} : { namespace }) },
    }))
  if (lost.length === 0) return []
  const toMessage = (state: Json): Json => ({ type: 'STATE', state })
  return isGlobal
    ? [toMessage({ type: 'GLOBAL', global: { stream_states: lost } })]
    : lost.map((stream) => toMessage({ type: 'STREAM', stream }))
}

/**
 * What an attempt, counted from 1, starts with. airbyte-platform: AttemptHandler, ReplicationInputHydrator,
 * CatalogTransforms.
 */
export const prepareAttempt = (
  { definition, streams }: Connection,
  job: Job,
  { id, attempt }: { readonly id: number; readonly attempt: number },
  before: Kept,
): Prepared => {
  const restarted = restartedStreams(streams, job, attempt)
  const generations = {
    ...before.generations,
    ...Object.fromEntries([...restarted].map((key) => [key, (before.generations[key] ?? 0) + 1])),
  }
  const kept = { ...before, states: omit(before.states, restarted), generations }
  const inJob = streams.filter(({ stream: { name } }) => job.kind !== 'clear' || job.streams.includes(name))
  const withIds = (configured: ConfiguredStream): ConfiguredStream => {
    if (definition === 'custom') return configured
    const generation = generations[streamKey(configured.stream)] ?? 0
    return {
      ...configured,
      generation_id: generation,
      minimum_generation_id: minimumGeneration(configured, job, generation),
      sync_id: id,
    }
  }
  const asCleared = (configured: ConfiguredStream): ConfiguredStream =>
    job.kind === 'clear' ? { ...configured, sync_mode: 'full_refresh', destination_sync_mode: 'overwrite' } : configured
  return {
    kept,
    streams: inJob.map((configured) => asCleared(withIds(configured))),
    inputState: job.kind === 'clear' ? undefined : toInputState(kept),
    cleared: job.kind === 'clear' ? clearingStates(before, inJob) : undefined,
  }
}

/**
 * What is kept once the destination has given back a state: one without content deletes. airbyte-platform:
 * SyncPersistence.
 */
export const keepState = (kept: Kept, state: Json): Kept => {
  const isGlobal = state.type === 'GLOBAL'
  const body = (isGlobal ? state.global : state.stream) as Json
  const streams = (isGlobal ? (body.stream_states ?? []) : [body]) as ReadonlyArray<Json>
  const named = streams.map(({ stream_descriptor, stream_state }) => {
    const descriptor = stream_descriptor as Descriptor
    return { key: streamKey(descriptor), descriptor, state: stream_state }
  })
  const states = {
    ...omit(kept.states, new Set(named.map(({ key }) => key))),
    ...Object.fromEntries(
      named.flatMap(({ key, descriptor, state: content }) =>
        content === undefined || content === null ? [] : [[key, { descriptor, state: content }]],
      ),
    ),
  }
  return { ...kept, isGlobal: kept.isGlobal || isGlobal, states, ...(isGlobal ? { shared: body.shared_state } : {}) }
}
