import { CommandError, configFailure, type SourceState, type SyncMode } from '../cdk'
import { chooseStates } from '../snapshot/load'
import { type Database, quoteLiteral, readSnapshotState, type Snapshot, settledName } from '../snapshot/store'
import { nextEntrySql } from './metadata'
import type { LakeShare } from './place'

// Several processes may share a backfill. Each appends its own states. Once all have finished, their states are merged
// into one for each stream.

export const nameShare = ({ index, count }: LakeShare): string => `${index}/${count}`

/** Merges the states of all shares; undefined while one of them is incomplete. */
type MergeStates = (states: ReadonlyArray<SourceState>) => SourceState | undefined

/** Throws if a share would hide the rows of the others. In its own file a share is read like any other run. */
export const checkShare = (share: LakeShare | undefined, syncMode: SyncMode): void => {
  if (share !== undefined && syncMode === 'full_refresh')
    throw new CommandError(
      configFailure(
        'A share of a backfill cannot be read with --full-refresh, since it would replace the rows of the others. ' +
          'Take partition out of the config.',
      ),
    )
}

/** The states of one share, from which its next run continues. */
const readShareState = async (db: Database, share: LakeShare): Promise<SourceState> => {
  const rows = await db.query(`
    SELECT stream, arg_max(state, entry) AS state FROM _states_log
    WHERE share = ${quoteLiteral(nameShare(share))} AND state IS NOT NULL GROUP BY stream ORDER BY stream`)
  return Object.fromEntries(rows.map(({ stream, state }) => [String(stream), JSON.parse(String(state))]))
}

const listShares = async (db: Database): Promise<ReadonlyMap<string, string>> =>
  new Map(
    (await db.query('SELECT share, status FROM _shares ORDER BY share')).map(({ share, status }) => [
      String(share),
      String(status),
    ]),
  )

const appendShare = (db: Database, share: LakeShare | undefined, status: string, now: number): Promise<void> => {
  const name = share === undefined ? 'NULL' : quoteLiteral(nameShare(share))
  return db.run(`
    INSERT INTO _shares_log SELECT ${nextEntrySql('_shares_log', now)}, ${name}, ${quoteLiteral(status)}`)
}

/** Checks that a share may be read into the lake, and records that it has started. */
const openShare = async (db: Database, share: LakeShare, now: number): Promise<void> => {
  const shares = await listShares(db)
  const counts = new Set([...shares.keys()].map((name) => name.split('/')[1]))
  if (shares.size > 0 && !counts.has(String(share.count)))
    throw new CommandError(
      configFailure(
        `${db.path}: its backfill is shared by ${[...counts].join(', ')} processes, and the config says ` +
          `${share.count}. Set partition.count to the number of the others.`,
      ),
    )
  if (shares.size === 0 && (await db.scalar('SELECT count(*) FROM _state')) !== 0)
    throw new CommandError(
      configFailure(
        `${db.path} has been read in full. Take partition out of the config: one process reads what is new.`,
      ),
    )
  if (shares.get(nameShare(share)) !== 'begun') await db.transaction(() => appendShare(db, share, 'begun', now))
}

/**
 * Once every share is complete, appends one state for each stream, from which one process continues. Resolves to true
 * if no share is open.
 */
const settleShares = async (db: Database, merge: MergeStates, now: number): Promise<boolean> => {
  const shares = await listShares(db)
  const [first] = shares.keys()
  if (first === undefined) return true
  const count = Number(first.split('/')[1])
  const isComplete = shares.size === count && [...shares.values()].every((status) => status === 'complete')
  if (!isComplete) return false
  const states: SourceState[] = []
  for (let index = 0; index < count; index += 1) states.push(await readShareState(db, { index, count }))
  const merged = states.some((state) => Object.keys(state).length === 0) ? undefined : merge(states)
  if (merged === undefined) return false
  await db.transaction(async () => {
    await db.lake?.saveStates(
      Object.entries(merged).map(([stream, state]) => [stream, JSON.stringify(state)]),
      now,
    )
    await db.lake?.saveMeta(settledName, String(Math.trunc(now)))
    await appendShare(db, undefined, 'settled', now)
  })
  return true
}

/** Records that a share has finished. The last one merges the states of all. */
export const endShare = async (
  { db }: Snapshot,
  share: LakeShare,
  merge: MergeStates,
  now: number,
): Promise<boolean> => {
  await db.transaction(() => appendShare(db, share, 'complete', now))
  return settleShares(db, merge, now)
}

/** The states from which this run continues: those of its share, or of all. */
export const readLakeStates = ({ db }: Snapshot, share: LakeShare | undefined): Promise<SourceState> =>
  share === undefined ? readSnapshotState({ db }) : readShareState(db, share)

/** The same, after checking that this run may write. Rejects with `CommandError`. */
export const openLakeStates = async (
  { db }: Snapshot,
  share: LakeShare | undefined,
  syncMode: SyncMode,
  merge: MergeStates,
  now: number,
): Promise<SourceState> => {
  if (share !== undefined) await openShare(db, share, now)
  else if (!(await settleShares(db, merge, now)))
    throw new CommandError(
      configFailure(
        `${db.path}: several processes share its backfill, and not all of them are complete. ` +
          'Run each share to its end, with partition in its config, before a run without.',
      ),
    )
  return chooseStates({ db }, await readLakeStates({ db }, share), syncMode)
}

/** By stream: how many shares of its backfill are incomplete, in words. Leaves out complete streams. */
export const listOpenShares = async ({ db }: Snapshot): Promise<ReadonlyMap<string, string>> => {
  const found = await db.query(`
    SELECT stream, format('has {} of {} shares that are not complete', shares - complete, shares) AS problem
    FROM (
      SELECT stream, max(split_part(share, '/', 2)::INTEGER) AS shares,
        count(*) FILTER (status = 'complete') AS complete
      FROM (
        SELECT stream, share, arg_max(_loads.status, load) AS status
        FROM _loads JOIN _shares USING (share) GROUP BY stream, share)
      GROUP BY stream)
    WHERE complete < shares`)
  return new Map(found.map(({ stream, problem }) => [String(stream), String(problem)]))
}
