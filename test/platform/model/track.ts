import { type Connection, type Descriptor, type Json, streamKey } from './connection'
import type { Counted } from './envelope'
import { type Kept, keepState } from './jobs'
import { renameState, toSourceName } from './mappers'

type Staged = {
  readonly id: number
  /** The stream's key; undefined: all streams. */
  readonly key: string | undefined
  readonly records: number
  readonly sourceCount: number
}

/** What the platform knows about an attempt in progress. Streams are named by their keys at the source. */
export type Track = {
  readonly kept: Kept
  readonly nextId: number
  /** Since the stream's last state. */
  readonly uncounted: Readonly<Record<string, Counted>>
  /** States that the destination has not given back. */
  readonly staged: ReadonlyArray<Staged>
  readonly streamsWithState: ReadonlySet<string>
  /** The streams that the source called complete. */
  readonly completed: ReadonlySet<string>
  /** What passed to the destination, what it acknowledged and of this what it rejected. */
  readonly emitted: number
  readonly acknowledged: number
  readonly rejected: number
  readonly mismatches: ReadonlyArray<string>
  readonly warnings: ReadonlyArray<string>
  /** Why the sync cannot continue. */
  readonly trouble: string | undefined
}

export const startTrack = (kept: Kept): Track => ({
  kept,
  nextId: 1,
  uncounted: {},
  staged: [],
  streamsWithState: new Set(),
  completed: new Set(),
  emitted: 0,
  acknowledged: 0,
  rejected: 0,
  mismatches: [],
  warnings: [],
  trouble: undefined,
})

const noRecords: Counted = { records: 0, filtered: 0 }

/** Counts a record of the source. A filtered one has been dropped on its way. */
export const countRecord = (track: Track, stream: Descriptor, isFiltered: boolean): Track => {
  const key = streamKey(stream)
  const { records, filtered } = track.uncounted[key] ?? noRecords
  const counted = { records: records + 1, filtered: filtered + (isFiltered ? 1 : 0) }
  return {
    ...track,
    emitted: track.emitted + (isFiltered ? 0 : 1),
    uncounted: { ...track.uncounted, [key]: counted },
  }
}

const keyOf = (stream: Json): string => streamKey(stream.stream_descriptor as Descriptor)

const keyOfState = ({ state }: Json): string | undefined => {
  const { type, stream } = state as Json
  return type === 'GLOBAL' ? undefined : keyOf(stream as Json)
}

/** The streams that a state names. */
const streamsOf = ({ state }: Json): ReadonlyArray<string> => {
  const { type, stream, global } = state as Json
  const streams = type === 'GLOBAL' ? ((global as Json).stream_states ?? []) : [stream]
  return (streams as ReadonlyArray<Json>).map(keyOf)
}

/** What a state of the source covers. */
export const countedBy = ({ uncounted }: Track, message: Json): Counted => {
  const key = keyOfState(message)
  const covered = key === undefined ? Object.values(uncounted) : [uncounted[key] ?? noRecords]
  return covered.reduce(
    (sum, { records, filtered }) => ({ records: sum.records + records, filtered: sum.filtered + filtered }),
    noRecords,
  )
}

/** Notes a state that goes to the destination; `sent`: as it goes there. */
export const stageState = (track: Track, message: Json, sent: Json): Track => {
  const key = keyOfState(message)
  const { records, filtered } = countedBy(track, message)
  const { id, sourceStats } = sent.state as Json
  const { [key ?? '']: _, ...others } = track.uncounted
  const staged = {
    id: Number(id),
    key,
    records: records - filtered,
    sourceCount: Number((sourceStats as Json | undefined)?.recordCount),
  }
  return {
    ...track,
    nextId: track.nextId + 1,
    uncounted: key === undefined ? {} : others,
    staged: [...track.staged, staged],
    streamsWithState: new Set([...track.streamsWithState, ...streamsOf(message)]),
  }
}

export const noteComplete = (track: Track, stream: Descriptor): Track => ({
  ...track,
  completed: new Set([...track.completed, streamKey(stream)]),
})

/**
 * The source's count, the platform's, and what the destination accepted and rejected must be the same; where not, it is
 * only logged. A destination that gives no counts is not compared.
 */
const findMismatch = ({ records, sourceCount, key }: Staged, stats: Json | undefined): string | undefined => {
  const { recordCount = 0, rejectedRecordCount = 0 } = (stats ?? {}) as Readonly<Record<string, number>>
  const written = stats === undefined ? records : recordCount + rejectedRecordCount
  return written === sourceCount && sourceCount === records
    ? undefined
    : `${key ?? 'all streams'}: source ${sourceCount}, platform ${records}, destination ${written}`
}

/**
 * A state that the destination gave back. It acknowledges all before it of its stream; without its id the sync fails.
 * airbyte-platform: ParallelStreamStatsTracker, StateCheckSumCountEventHandler.
 */
export const acknowledge = (connection: Connection, track: Track, message: Json): Track => {
  const { id, sourceStats: _, destinationStats, ...state } = message.state as Json
  if (!Number.isInteger(id)) return { ...track, trouble: 'a state came back without its id' }
  const found = track.staged.find((staged) => staged.id === id)
  if (found === undefined) return { ...track, warnings: [...track.warnings, `an unknown state came back: ${id}`] }
  const covered = track.staged.filter((staged) => staged.id <= found.id && staged.key === found.key)
  const stats = destinationStats as Json | undefined
  // A state that was skipped has taken its counts with it.
  const mismatch = covered.length === 1 ? findMismatch(found, stats) : undefined
  return {
    ...track,
    kept: keepState(
      track.kept,
      renameState(state, (descriptor) => toSourceName(connection, descriptor)),
    ),
    staged: track.staged.filter((staged) => !covered.includes(staged)),
    acknowledged: track.acknowledged + covered.reduce((sum, { records }) => sum + records, 0),
    rejected: track.rejected + Number(stats?.rejectedRecordCount ?? 0),
    mismatches: mismatch === undefined ? track.mismatches : [...track.mismatches, mismatch],
  }
}

/** The streams that people see as complete: the source said so and the newest state came back. */
export const completeStreams = ({ completed, staged }: Track): ReadonlyArray<string> =>
  [...completed].filter((key) => !staged.some((one) => one.key === key || one.key === undefined)).sort()
