import {
  encodeAirbyte,
  formatStateFile,
  joinText,
  type Message,
  type StreamInfo,
  tombstoneColumnNames,
} from '../../cdk'
import { instantSql, type Snapshot } from '../store/database'
import { deletionsTableName, reviewsTableName } from '../store/tables'

export type Repair = {
  /** Airbyte states from which the next run reads missing and stale reviews again; undefined if there are none. */
  readonly state: string | undefined
  /**
   * Airbyte messages, one per line, that delete the reviews which the service no longer has; undefined if there are
   * none.
   */
  readonly messages: string | undefined
}

/**
 * Plans the repair of the differences in `_compared`. Call `compareReviews` first. `now`: the time of writing, in
 * milliseconds since 1970.
 */
export const planRepair = async ({ db }: Snapshot, deletedReviews: StreamInfo, now: number): Promise<Repair> => {
  const earliest = await db.scalar(`SELECT epoch_ms(min(theirs)) FROM _compared WHERE verdict IN ('missing', 'stale')`)
  const wrong = await db.query(`
    SELECT id::VARCHAR AS id, epoch_ms(ours) AS ours, epoch_ms(theirs) AS theirs FROM _compared
    WHERE verdict = 'extra' OR (verdict = 'stale' AND ours > theirs) ORDER BY _compared.id`)
  const deletions = wrong.map(({ id, ours, theirs }) => ({
    id: String(id),
    ours: Number(ours),
    theirs: theirs === null ? undefined : Number(theirs),
  }))
  return {
    state: earliest === null || earliest === undefined ? undefined : await rewindStates({ db }, Number(earliest)),
    messages: wrong.length === 0 ? undefined : encodeDeletions(deletions, deletedReviews, now),
  }
}

/**
 * The states of every stream whose cursor is a review's modified time, set back to `from` and without scan progress.
 */
const rewindStates = async ({ db }: Snapshot, from: number): Promise<string> => {
  const streams = await db.query(`
    SELECT stream, json_merge_patch(state, json_object(
        'modifiedTimeFrom', strftime(${instantSql(from)}::TIMESTAMP, '%Y-%m-%dT%H:%M:%S.%gZ'),
        'recent', NULL, 'recentRange', NULL, 'recentMissing', NULL, 'scan', NULL)) AS state
    FROM _state JOIN _streams USING (stream)
    WHERE stream <> '${deletionsTableName}' AND cursor IN ('modifiedTime', 'reviewModifiedTime')
    ORDER BY stream`)
  return formatStateFile(streams.map(({ stream, state }) => ({ stream: String(stream), state: String(state) })))
}

type Deletion = { readonly id: string; readonly ours: number; readonly theirs: number | undefined }

/**
 * Deletions of extra reviews, and tombstones for those that the service has with an earlier time. A tombstone is marked
 * as older than that version, so that it is not deleted when it is read again. The file stores microseconds: a deletion
 * is a millisecond later than its review.
 */
const encodeDeletions = (deletions: ReadonlyArray<Deletion>, info: StreamInfo, now: number): string => {
  const extra = deletions.flatMap(({ id, ours, theirs }) =>
    theirs === undefined ? [`{"id":${id},"modifiedTime":${timeText(ours + 1)}}`] : [],
  )
  const tooNew = deletions.flatMap(({ id, ours, theirs }) =>
    theirs === undefined
      ? []
      : [`{"id":${id},"modifiedTime":${timeText(ours + 1)},"${tombstoneColumnNames[0]}":${timeText(theirs - 1)}}`],
  )
  const messages: ReadonlyArray<Message> = [
    ...streamOf(info, now, extra),
    ...streamOf({ ...info, name: reviewsTableName }, now, tooNew),
  ]
  return messages
    .flatMap(encodeAirbyte(() => now))
    .map(joinText)
    .join('')
}

const timeText = (millis: number): string => JSON.stringify(new Date(millis).toISOString())

const streamOf = (stream: StreamInfo, at: number, records: ReadonlyArray<string>): ReadonlyArray<Message> =>
  records.length === 0
    ? []
    : [
        { _tag: 'Started', stream },
        { _tag: 'Records', stream: stream.name, at, rows: records.map((json) => ({ json: Buffer.from(json) })) },
        { _tag: 'Finished', stream: stream.name },
      ]
