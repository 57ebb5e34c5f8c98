import * as O from 'fp-ts/Option'
import type { StreamInfo } from '../cdk/message'

/** What a configured catalog asks of the destination; without one, a full refresh replaces and an incremental read merges. */
export type LoadOptions = {
  readonly mode?: 'append' | 'overwrite' | 'append_dedup'
  readonly generation?: number
  readonly minimum?: number
}

/** What the snapshot remembers of a stream between runs. */
export type StreamMetadata = {
  readonly generation: number
  /** A full refresh has begun and not finished. */
  readonly refreshing: boolean
  readonly hasState: boolean
}

export type LoadTarget = {
  /** By primary key; without one, every record is a row. */
  readonly key: ReadonlyArray<string>
  readonly cursor: string | undefined
  readonly generation: number
  /** Once the stream has finished, rows of older generations go. */
  readonly minimumGeneration: number
  /** A full refresh that starts anew, so that the state of before no longer counts. */
  readonly resetsState: boolean
}

/**
 * A generation only grows: rows of a smaller one would lose against those the table has. A full refresh that was cut off goes on in its generation if the file holds a state to go on from; every other one begins a
 * new generation, and the rows of the one before stay until it has finished.
 */
export const chooseLoadTarget = (
  info: StreamInfo,
  wish: LoadOptions,
  standing: StreamMetadata | undefined,
): LoadTarget => {
  const mode = wish.mode ?? (info.syncMode === 'full_refresh' ? 'overwrite' : 'append_dedup')
  const replaces = wish.minimum === undefined ? mode === 'overwrite' : wish.minimum > 0
  const resumes = standing?.refreshing === true && standing.hasState
  const held = standing?.generation ?? 0
  const next = replaces && !resumes ? held + 1 : held
  const generation = wish.generation === undefined ? next : Math.max(wish.generation, held)
  return {
    key: mode === 'append' ? [] : info.primaryKey,
    cursor: O.toUndefined(info.cursor),
    generation,
    minimumGeneration: wish.minimum ?? (replaces ? generation : 0),
    resetsState: replaces && (wish.generation === undefined ? !resumes : generation > held),
  }
}
