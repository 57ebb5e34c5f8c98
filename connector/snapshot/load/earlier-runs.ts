import type { SourceState, SyncMode } from '../../cdk'
import type { Snapshot } from '../store/database'
import { cleanStatesSql } from '../store/forgotten'
import { type StreamStateText, saveStreamStatesSql } from '../store/metadata'

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
