import * as O from 'fp-ts/Option'
import { type ConfiguredStream, defined, type SourceState, type StreamInfo, type SyncMode } from '../../cdk'
import { type Database, quoteIdentifier, quoteLiteral, type Snapshot } from '../store/database'
import { cleanStatesSql } from '../store/forgotten'
import { listStreamMetadata, type StreamMetadata, type StreamStateText, saveStreamStatesSql } from '../store/metadata'
import { type ReviewReference, reviewsTableName, type Table } from '../store/tables'
import { removeOldRows } from './merge'

/**
 * How a configured catalog wants a stream written. Without one, a full refresh replaces the rows and an incremental
 * read merges.
 */
export type LoadOptions = {
  readonly mode?: 'append' | 'overwrite' | 'append_dedup'
  readonly generation?: number
  readonly minimum?: number
}

/** How a configured stream is to be written. A generation of 0 or less is none. */
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
  /** Rows of older generations are removed once the stream is complete; 0: none are. */
  readonly minimumGeneration: number
  /** A full refresh starts from the beginning, so the saved state is deleted. */
  readonly resetsState: boolean
}

/**
 * Chooses where a stream's rows go. A generation only grows, since rows of a smaller one would lose against those of
 * the table. An interrupted full refresh continues in its generation if the file has a state to continue from; every
 * other one begins a new generation, and the rows of the previous one stay until it is complete.
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

/** Saves the states of a commit; they remember no row of someone forgotten. */
export const saveLoadStatesSql = (
  load: { readonly spool: { readonly forgotten: string | undefined } } | undefined,
  states: ReadonlyArray<StreamStateText>,
  now: number,
): ReadonlyArray<string> => [
  saveStreamStatesSql(states, now),
  ...(load?.spool.forgotten === undefined ? [] : [cleanStatesSql('_state')]),
]

/**
 * The states from which a run goes on, of those that were saved. A full refresh goes on from the state of a full
 * refresh alone: at its end the rows of all others are removed, those too that an unfinished scan of another run has
 * read.
 */
export const chooseStates = async ({ db }: Snapshot, states: SourceState, syncMode: SyncMode): Promise<SourceState> => {
  if (syncMode === 'incremental') return states
  const refreshing = await db.query('SELECT stream FROM _streams WHERE refreshing')
  return Object.fromEntries(
    refreshing.flatMap(({ stream }) => {
      const state = states[String(stream)]
      return state === undefined ? [] : [[String(stream), state]]
    }),
  )
}

/**
 * The least and the greatest cursor that the loads of a stream since a time (milliseconds since 1970) have received;
 * undefined if none.
 */
export type ReceivedRangeReader = (
  stream: string,
  since: number,
) => Promise<{ readonly from: string; readonly to: string } | undefined>

export const readReceivedRange =
  ({ db }: Snapshot): ReceivedRangeReader =>
  async (stream, since) => {
    // A load begins a little before its scan.
    const [row] = await db.query(
      `SELECT min(cursor_from) AS least, max(cursor_to) AS greatest FROM _loads
       WHERE stream = $stream AND started >= make_timestamptz(($since::BIGINT - 60000) * 1000)`,
      { stream, since },
    )
    return row?.least && row.greatest ? { from: String(row.least), to: String(row.greatest) } : undefined
  }

/**
 * Whether the file has rows of any of these streams. Deletions leave the rows of `locations` and the like, so `reviews`
 * alone decides where an earlier run has read them.
 */
export const hasRowsOf = async (
  db: Database,
  streams: ReadonlyArray<string>,
  run: number | bigint,
): Promise<boolean> => {
  const known = (await listStreamMetadata(db)).map(({ stream }) => stream).filter((stream) => streams.includes(stream))
  const hasReadReviews =
    known.includes(reviewsTableName) &&
    (await db.scalar(
      `SELECT count(*) FROM _loads WHERE stream = ${quoteLiteral(reviewsTableName)} AND records > 0 AND run < ${run}`,
    )) !== 0
  for (const stream of hasReadReviews ? [reviewsTableName] : known)
    if ((await db.scalar(`SELECT count(*) FROM (FROM ${quoteIdentifier(stream)} LIMIT 1)`)) !== 0) return true
  return false
}

/** Makes a generation of a stream the current one, and removes the rows of older ones. */
export const activateGeneration = async (
  db: Database,
  table: Table,
  generation: number,
  references: ReadonlyArray<ReviewReference>,
  now: number,
): Promise<void> => {
  await finishRefresh(db, table, generation, references, now)
  await db.run('UPDATE _streams SET generation = $generation::BIGINT WHERE stream = $stream', {
    generation,
    stream: table.name,
  })
}

/** Removes the rows of older generations, and ends the refresh. */
export const finishRefresh = async (
  db: Database,
  table: Table,
  minimumGeneration: number,
  references: ReadonlyArray<ReviewReference>,
  now: number,
): Promise<void> => {
  await removeOldRows(db, table, minimumGeneration, references, now)
  await db.run('UPDATE _streams SET refreshing = false WHERE stream = $stream', { stream: table.name })
}
