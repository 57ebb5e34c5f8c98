import { encodeAirbyte, formatStateFile, joinText, type Message, type StreamInfo } from '../../cdk'
import type { Snapshot } from '../store/open'
import { deletionsStream } from '../store/tables'

export type Repair = {
  /** Airbyte states from which the next run reads again what is missing or stale; none if nothing is. */
  readonly state: string | undefined
  /** Airbyte lines that delete what the service does not have; none if there is nothing. */
  readonly messages: string | undefined
}

/** What heals the differences that `compareWith` has left in `_compared`. `now`: milliseconds since 1970, of the deletions. */
export const planRepair = async ({ db }: Snapshot, deleted: StreamInfo, now: number): Promise<Repair> => {
  const earliest = await db.scalar(`SELECT epoch_ms(min(theirs)) FROM _compared WHERE verdict IN ('missing', 'stale')`)
  const gone = await db.query(
    `SELECT id::VARCHAR AS id FROM _compared WHERE verdict = 'extra' OR (verdict = 'stale' AND ours > theirs) ORDER BY _compared.id`,
  )
  return {
    state: earliest === null || earliest === undefined ? undefined : await rewindStates({ db }, Number(earliest)),
    messages:
      gone.length === 0
        ? undefined
        : encodeDeletions(
            gone.map(({ id }) => String(id)),
            deleted,
            now,
          ),
  }
}

/** The states of every stream that is read by the reviews' times, set back, without what a run would pass over. */
const rewindStates = async ({ db }: Snapshot, from: number): Promise<string> => {
  const streams = await db.query(`
    SELECT stream, json_merge_patch(state, json_object('modifiedTimeFrom', strftime(make_timestamptz(${Math.trunc(from)}::BIGINT * 1000)::TIMESTAMP, '%Y-%m-%dT%H:%M:%S.%gZ'), 'recent', NULL, 'scan', NULL)) AS state
    FROM _state JOIN _streams USING (stream)
    WHERE stream <> '${deletionsStream}' AND cursor IN ('modifiedTime', 'reviewModifiedTime') ORDER BY stream`)
  return formatStateFile(streams.map(({ stream, state }) => ({ stream: String(stream), state: String(state) })))
}

const encodeDeletions = (ids: ReadonlyArray<string>, stream: StreamInfo, now: number): string => {
  const modifiedTime = new Date(now).toISOString()
  const said: ReadonlyArray<Message> = [
    { _tag: 'Started', stream },
    {
      _tag: 'Records',
      stream: stream.name,
      at: now,
      rows: ids.map((id) => ({ json: Buffer.from(`{"id":${id},"modifiedTime":"${modifiedTime}"}`) })),
    },
    { _tag: 'Finished', stream: stream.name },
  ]
  return said
    .flatMap(encodeAirbyte(() => now))
    .map(joinText)
    .join('')
}
