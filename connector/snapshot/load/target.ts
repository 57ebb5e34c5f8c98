import * as O from 'fp-ts/Option'
import { type ConfiguredStream, defined, type StreamInfo } from '../../cdk'
import type { StreamMetadata } from '../store/metadata'

/**
 * How a configured catalog wants a stream to be written. Without one, a full refresh replaces the rows and an
 * incremental read merges.
 */
export type LoadOptions = {
  readonly mode?: 'append' | 'overwrite' | 'append_dedup'
  readonly generation?: number
  readonly minimum?: number
}

/** How a configured stream is to be written. A generation of 0 or less counts as none. */
export const toLoadOptions = ({
  destinationSyncMode: mode,
  generation = 0,
  minimumGeneration: minimum = 0,
}: ConfiguredStream): LoadOptions => ({
  ...defined({ mode: mode === 'overwrite' || mode === 'overwrite_dedup' ? 'overwrite' : toAppendMode(mode) }),
  ...(generation > 0 ? { generation, minimum } : {}),
})

const toAppendMode = (mode: ConfiguredStream['destinationSyncMode']): 'append' | 'append_dedup' | undefined =>
  mode === 'append' || mode === 'append_dedup' ? mode : undefined

export type LoadTarget = {
  /** The attributes of the primary key to merge by; if empty, every record is a row. */
  readonly key: ReadonlyArray<string>
  readonly cursor: string | undefined
  readonly generation: number
  /** Rows of older generations are removed once the stream is complete. 0: none are. */
  readonly minimumGeneration: number
  /** A full refresh starts from the beginning, so the saved state is deleted. */
  readonly resetsState: boolean
}

/**
 * Decides where a stream's rows go. A generation only grows, since rows of a lower one would lose against those in the
 * table. An interrupted full refresh continues in its generation if the file has a state to continue from. Any other
 * starts a new generation, and the rows of the previous one stay until it is complete.
 */
export const chooseLoadTarget = (
  info: StreamInfo,
  options: LoadOptions,
  metadata: StreamMetadata | undefined,
): LoadTarget => {
  const mode = options.mode ?? (info.syncMode === 'full_refresh' ? 'overwrite' : 'append_dedup')
  const replaces = options.minimum === undefined ? mode === 'overwrite' : options.minimum > 0
  const resumes = metadata?.refreshing === true && metadata.hasState
  const current = metadata?.generation ?? 0
  const next = replaces && !resumes ? current + 1 : current
  const generation = options.generation === undefined ? next : Math.max(options.generation, current)
  return {
    key: mode === 'append' ? [] : info.primaryKey,
    cursor: O.toUndefined(info.cursor),
    generation,
    minimumGeneration: options.minimum ?? (replaces ? generation : 0),
    resetsState: replaces && (options.generation === undefined ? !resumes : generation > current),
  }
}
