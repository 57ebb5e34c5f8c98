import * as O from 'fp-ts/Option'
import {
  CommandError,
  type ConfiguredStream,
  configFailure,
  defined,
  type SourceState,
  type StreamInfo,
  type SyncMode,
} from '../../cdk'
import { type Database, quoteIdentifier, quoteLiteral, type Snapshot } from '../store/database'
import { cleanStatesSql } from '../store/forgotten'
import type { LakeShare } from '../store/lake-access'
import {
  listStreamMetadata,
  readSnapshotState,
  type StreamMetadata,
  type StreamStateText,
  saveMeta,
  saveStreamStatesSql,
  settledName,
  stateRowsSql,
} from '../store/metadata'
import { type ReviewReference, reviewsTableName, type Table } from '../store/tables'
import { removeOldRows } from './merge'

/** How a configured catalog wants a stream written. Without one, a full refresh replaces the rows and an incremental read merges. */
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
 * Chooses where a stream's rows go. A generation only grows, since rows of a smaller one would lose against those of the table. An
 * interrupted full refresh continues in its generation if the file has a state to continue from; every other one begins a new
 * generation, and the rows of the previous one stay until it is complete.
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

/**
 * The states of the processes that share the backfill of a lake, until all of them are complete: then one state of each stream takes their
 * place. `share`: such as 3/8; `load`: the load that writes it. A row without a stream says that the share was begun and has not come to its end.
 */
const sharesTableSql =
  'CREATE TABLE IF NOT EXISTS _shares (share VARCHAR, stream VARCHAR, load BIGINT, state JSON, saved_at TIMESTAMPTZ)'

export const nameShare = ({ index, count }: LakeShare): string => `${index}/${count}`

const hasSharesTable = async (db: Database): Promise<boolean> =>
  (await db.scalar(
    `SELECT count(*) FROM duckdb_tables() WHERE database_name = current_database() AND table_name = '_shares'`,
  )) !== 0

const transactWithMemory = <A>(db: Database, name: string, body: () => Promise<A>): Promise<A> =>
  db.withMemory(name, () => db.transaction(body))

/** Makes sure that a share may be read into the lake, and marks what a killed run of it has left as incomplete. */
const openShare = (db: Database, share: LakeShare, now: number): Promise<void> =>
  transactWithMemory(db, 'opening the share', async () => {
    const isNew = !(await hasSharesTable(db))
    await db.run(sharesTableSql)
    const others = await db.query('SELECT DISTINCT share FROM _shares WHERE stream IS NOT NULL ORDER BY share')
    const counts = new Set(others.map((other) => String(other.share).split('/')[1]))
    if (others.length > 0 && !counts.has(String(share.count)))
      throw new CommandError(
        configFailure(
          `${db.path}: its backfill is shared by ${[...counts].join(', ')} processes, and the config says ${share.count}. Set partition.count to the number of the others.`,
        ),
      )
    if (isNew || others.length === 0) await refuseFinished(db)
    // Its loads begin only with its first answer; until then the others would take it for complete where an earlier run of it was.
    await db.run(`
      DELETE FROM _shares WHERE stream IS NULL AND (share = ${quoteLiteral(nameShare(share))} OR share NOT LIKE '%/${share.count}');
      INSERT INTO _shares (share) VALUES (${quoteLiteral(nameShare(share))})`)
    await db.run(`UPDATE _loads SET status = 'incomplete', ended = make_timestamptz(${Math.trunc(now)}::BIGINT * 1000)
      WHERE status = 'running' AND load IN (SELECT load FROM _shares WHERE share = ${quoteLiteral(nameShare(share))})`)
  })

/** A share begins where nothing was read; what was read in full goes on without shares. */
const refuseFinished = async (db: Database): Promise<void> => {
  if ((await db.scalar('SELECT count(*) FROM _state')) !== 0)
    throw new CommandError(
      configFailure(
        `${db.path} has been read in full. Take partition out of the config: one process reads what is new.`,
      ),
    )
}

/** Says which loads write the streams of a share from now on. */
export const declareShareLoads = (
  db: Database,
  share: string,
  loads: ReadonlyArray<{ readonly stream: string; readonly id: number }>,
): Promise<void> => {
  const given = `(VALUES ${loads.map(({ stream, id }) => `(${quoteLiteral(stream)}, ${id})`).join(', ')}) AS given(name, id)`
  const ofShare = `share = ${quoteLiteral(share)} AND stream = given.name`
  return db.run(`
    INSERT INTO _shares (share, stream) SELECT ${quoteLiteral(share)}, name FROM ${given} WHERE NOT EXISTS (SELECT 1 FROM _shares WHERE ${ofShare});
    UPDATE _shares SET load = given.id FROM ${given} WHERE ${ofShare}`)
}

/** Saves states of a load where the next run of the same share finds them; they remember no row of someone forgotten. */
export const saveLoadStatesSql = (
  load: { readonly share: string | undefined; readonly spool: { readonly forgotten: string | undefined } } | undefined,
  states: ReadonlyArray<StreamStateText>,
  now: number,
): ReadonlyArray<string> => {
  const share = load?.share
  return [
    share === undefined
      ? saveStreamStatesSql(states, now)
      : `UPDATE _shares SET state = given.text, saved_at = make_timestamptz(${Math.trunc(now)}::BIGINT * 1000)
       FROM ${stateRowsSql(states)} WHERE share = ${quoteLiteral(share)} AND stream = given.name`,
    ...(load?.spool.forgotten === undefined ? [] : [cleanStatesSql(share === undefined ? '_state' : '_shares')]),
  ]
}

/** The states of one share; the next run of it continues from them. */
const readShareState = async ({ db }: Snapshot, share: LakeShare): Promise<SourceState> => {
  const rows = await db.query(
    `SELECT stream, state FROM _shares WHERE share = ${quoteLiteral(nameShare(share))} AND state IS NOT NULL`,
  )
  return Object.fromEntries(rows.map(({ stream, state }) => [String(stream), JSON.parse(String(state))]))
}

/**
 * Where every share is complete, puts one state of each stream in the place of theirs, from which one process goes on. To be called when a share has
 * come to its end. `merge`: the states of all shares as one, undefined while one of them is not complete. Returns whether it did.
 */
export const settleShares = (
  { db }: Snapshot,
  { index: own, count }: LakeShare,
  merge: (states: ReadonlyArray<SourceState>) => SourceState | undefined,
  now: number,
): Promise<boolean> =>
  transactWithMemory(db, 'putting the shares together', async () => {
    await db.run(
      `DELETE FROM _shares WHERE stream IS NULL AND share = ${quoteLiteral(nameShare({ index: own, count }))}`,
    )
    const states: SourceState[] = []
    for (let index = 0; index < count; index += 1) states.push(await readShareState({ db }, { index, count }))
    const open = await db.scalar(
      `SELECT count(*) FROM _shares LEFT JOIN _loads USING (load) WHERE _shares.stream IS NULL OR status <> 'complete'`,
    )
    if (open !== 0 || states.some((state) => Object.keys(state).length === 0)) return false
    const merged = merge(states)
    if (merged === undefined) return false
    const texts = Object.entries(merged).map(([stream, state]) => ({ stream, state: JSON.stringify(state) }))
    await db.run(saveStreamStatesSql(texts, now))
    await db.run('DELETE FROM _shares')
    await saveMeta(db, settledName, String(Math.trunc(now)))
    return true
  })

/** By stream, how many shares of its backfill are not complete, as words; only those of which some are not. */
export const listOpenShares = async ({ db }: Snapshot): Promise<ReadonlyMap<string, string>> => {
  if (!(await hasSharesTable(db))) return new Map()
  const found = await db.query(`
    SELECT stream, format('has {} of {} shares that are not complete', shares - complete, shares) AS problem FROM (
      SELECT stream, max(split_part(share, '/', 2)::INTEGER) AS shares, count(*) FILTER (status = 'complete') AS complete
      FROM _shares LEFT JOIN _loads USING (load, stream) WHERE stream IS NOT NULL GROUP BY stream HAVING complete < shares)`)
  return new Map(found.map(({ stream, problem }) => [String(stream), String(problem)]))
}

/** Refuses to read everything into a lake while several processes share its backfill. */
const refuseOpenShares = async ({ db }: Snapshot): Promise<void> => {
  if (!(await hasSharesTable(db))) return
  const [row] = await db.query('SELECT DISTINCT share FROM _shares WHERE stream IS NOT NULL')
  if (row !== undefined)
    throw new CommandError(
      configFailure(
        `${db.path}: several processes share its backfill, and not all of them are complete. Run each share to its end, with partition in its config, before a run without.`,
      ),
    )
}

/** Throws where a share would delete the rows of the others. In a file of its own a share is read as any other run. */
export const checkShare = (share: LakeShare | undefined, syncMode: SyncMode): void => {
  if (share !== undefined && syncMode === 'full_refresh')
    throw new CommandError(
      configFailure(
        'A share of a backfill cannot be read with --full-refresh, since it would delete the rows of the others. Take partition out of the config.',
      ),
    )
}

/** The states from which this run goes on: of its share, or of all; `share`: undefined in a file. */
export const readLoadStates = (snapshot: Snapshot, share: LakeShare | undefined): Promise<SourceState> =>
  share === undefined ? readSnapshotState(snapshot) : readShareState(snapshot, share)

/**
 * The same, once it is certain that this run may write. A full refresh goes on from the state of a full refresh alone: at its end the rows of
 * all others are removed, those too that an unfinished scan of another run has read. Rejects with `CommandError`.
 */
export const openLoadStates = async (
  snapshot: Snapshot,
  share: LakeShare | undefined,
  syncMode: SyncMode,
  now: number,
): Promise<SourceState> => {
  if (share !== undefined) await openShare(snapshot.db, share, now)
  else if (snapshot.db.lake !== undefined) await refuseOpenShares(snapshot)
  const states = await readLoadStates(snapshot, share)
  if (syncMode === 'incremental') return states
  const refreshing = await snapshot.db.query('SELECT stream FROM _streams WHERE refreshing')
  return Object.fromEntries(
    refreshing.flatMap(({ stream }) => {
      const state = states[String(stream)]
      return state === undefined ? [] : [[String(stream), state]]
    }),
  )
}

/** The least and the greatest cursor that the loads of a stream since a time (milliseconds since 1970) have received; undefined if none. */
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
export const hasRowsOf = async (db: Database, streams: ReadonlyArray<string>, run: number): Promise<boolean> => {
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
