import type { SourceState, SyncMode } from '../../cdk'
import type { Snapshot } from '../store/database'
import { cleanStatesSql } from '../store/forgotten'
import { type StreamStateText, saveStreamStatesSql } from '../store/metadata'

/** Saves the states of a commit. They remember no row of a forgotten person. */
export const saveLoadStatesSql = (
  load: { readonly spool: { readonly forgotten: string | undefined } } | undefined,
  states: ReadonlyArray<StreamStateText>,
  now: number,
): ReadonlyArray<string> => [
  saveStreamStatesSql(states, now),
  ...(load?.spool.forgotten === undefined ? [] : [cleanStatesSql('_state')]),
]

/**
 * The saved states from which a run continues. A full refresh continues only from the state of a full refresh: when it
 * ends, the rows of all others are removed, including those read by another run's unfinished scan.
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
 * The lowest and highest cursor that a stream's loads since a time (milliseconds since 1970) have received; undefined
 * if none.
 */
export type ReceivedRangeReader = (
  stream: string,
  since: number,
) => Promise<{ readonly from: string; readonly to: string } | undefined>

export const readReceivedRange =
  ({ db }: Snapshot): ReceivedRangeReader =>
  async (stream, since) => {
    // A load starts a little before its scan.
    const [row] = await db.query(
      `SELECT min(cursor_from) AS least, max(cursor_to) AS greatest FROM _loads
       WHERE stream = $stream AND started >= make_timestamptz(($since::BIGINT - 60000) * 1000)`,
      { stream, since },
    )
    return row?.least && row.greatest ? { from: String(row.least), to: String(row.greatest) } : undefined
  }
