import { setImmediate } from 'node:timers/promises'
import { CommandError, configFailure } from '../../cdk'
import type { Database } from '../store/database'
import { explainCommitFailure, takeChange } from './changes'
import type { Loader } from './loader'
import type { OpenOptions } from './open-loads'
import type { SharedSpool } from './spool'
import type { Load } from './stream-load'

/** A run whose messages are being written: what it has received, and the commit in progress. */
export type Run = {
  readonly db: Database
  readonly loader: Loader
  readonly options: OpenOptions
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** By stream. */
  readonly loads: Map<string, Load>
  /** Reviews received once for several streams, waiting for the next commit. */
  readonly shared: SharedSpool[]
  /** Fingerprints in states that are known to match the file's service. */
  readonly checkedServices: Set<string>
  amount: Amount
  /** A commit starts once the states of a page, and the ends of streams, have all come. */
  isCommitDue: boolean
  /** The work that uses the connection while more messages are read. Nothing else may use it until it ends. */
  pending: Promise<void> | undefined
  /** Why a commit failed. Nothing is written after it. */
  failed: { readonly error: unknown } | undefined
  /** When messages last let the pending commit proceed, by `performance.now()`. */
  heldSince: number
}

/** How much has been received since the last commit started. */
type Amount = {
  rows: number
  bytes: number
  /** Also counted since the last state. */
  pageBytes: number
  /** Milliseconds since 1970. */
  readonly since: number
}

const noAmount = (since: number): Amount => ({ rows: 0, bytes: 0, pageBytes: 0, since })

export const beginRun = (db: Database, loader: Loader, options: OpenOptions, now: () => number): Run => ({
  db,
  loader,
  options,
  now,
  loads: new Map(),
  shared: [],
  checkedServices: new Set(),
  amount: noAmount(now()),
  isCommitDue: false,
  pending: undefined,
  failed: undefined,
  heldSince: 0,
})

/** The load of a stream, which is about to change. */
export const changeLoad = ({ loads }: Run, stream: string): Load => {
  const load = loads.get(stream)
  if (load === undefined)
    throw new CommandError(configFailure(`Stream ${stream} sends records without having been declared.`))
  load.hasChanges = true
  return load
}

/** Waits for the commit in progress. Rejects if a commit has failed. */
export const waitForCommit = async (run: Run): Promise<void> => {
  await run.pending
  if (run.failed !== undefined) throw run.failed.error
}

/** Starts to commit what was received, once the previous commit has ended. */
export const startCommit = async (run: Run): Promise<void> => {
  const { db, loader, now } = run
  run.isCommitDue = false
  await waitForCommit(run)
  const changes = [...run.loads.values()].filter((load) => load.hasChanges).map((load) => takeChange(load, db.path))
  run.amount = noAmount(now())
  if (changes.length === 0) return
  const received = { changes, shared: run.shared.splice(0) }
  const commit = loader
    .commit(received, now())
    .catch((error) => {
      run.failed = { error: explainCommitFailure(received, error) }
    })
    .finally(() => {
      for (const { spool } of [...received.changes, ...received.shared]) spool.close()
    })
  db.trackWork(occupy(run, commit))
}

/** Reserves the connection for some work, which reports its errors elsewhere. */
export const occupy = (run: Run, work: Promise<unknown>): Promise<void> => {
  const end = () => {
    run.pending = undefined
  }
  run.pending = work.then(end, end)
  return run.pending
}

/** Commits what was received. */
export const commit = (run: Run): Promise<void> => startCommit(run).then(() => waitForCommit(run))

/** How long messages may be received before the pending commit may run its next statement. */
const maxHoldMillis = 2

/**
 * Reading occupies the thread for a page at a time. Without this, DuckDB would wait that long before each statement of
 * a commit.
 */
export const letCommitProceed = async (run: Run): Promise<void> => {
  if (run.pending === undefined || performance.now() - run.heldSince < maxHoldMillis) return
  await setImmediate()
  run.heldSince = performance.now()
}

/** Closes the spools once the pending commit has ended. Nothing is written after it. */
export const abandonRun = async ({ pending, loads, shared }: Run): Promise<void> => {
  await pending
  for (const { spool } of [...loads.values(), ...shared]) spool.close()
}
