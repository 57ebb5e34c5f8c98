import { setImmediate } from 'node:timers/promises'
import { CommandError, configFailure } from '../../cdk'
import type { Database } from '../store/database'
import { explainCommitFailure, takeChange } from './changes'
import type { Loader } from './loader'
import type { OpenOptions } from './open-loads'
import type { SharedSpool } from './spool'
import type { Load } from './stream-load'

/** A run whose messages are being written: what has come in, and the commit that is on its way. */
export type Run = {
  readonly db: Database
  readonly loader: Loader
  readonly options: OpenOptions
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** By stream. */
  readonly loads: Map<string, Load>
  /** Reviews that came once for several streams and wait for the next commit. */
  readonly shared: SharedSpool[]
  /** The services of states, by fingerprint, that are known to be the file's own. */
  readonly checkedServices: Set<string>
  amount: Amount
  /** Whether a commit begins once the states of a page, and the ends of streams, have all come. */
  isCommitDue: boolean
  /** What uses the connection while more messages are read; nothing else may until it ends. */
  pending: Promise<void> | undefined
  /** Why a commit failed: nothing is written after it. */
  failed: { readonly error: unknown } | undefined
  /** When messages last let the pending commit go on, by `performance.now()`. */
  heldSince: number
}

/** How much has come in since the last commit began. */
type Amount = {
  rows: number
  bytes: number
  /** Since the last state too. */
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

/** The load of a stream that is about to change. */
export const changeLoad = ({ loads }: Run, stream: string): Load => {
  const load = loads.get(stream)
  if (load === undefined)
    throw new CommandError(configFailure(`Stream ${stream} sends records without having been declared.`))
  load.hasChanges = true
  return load
}

/** Rejects if a commit has failed. */
export const waitForCommit = async (run: Run): Promise<void> => {
  await run.pending
  if (run.failed !== undefined) throw run.failed.error
}

/** Begins to commit what has come in, once the commit before it has ended. */
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

/** Keeps the connection for some work, which reports its errors elsewhere. */
export const occupy = (run: Run, work: Promise<unknown>): Promise<void> => {
  const end = () => {
    run.pending = undefined
  }
  run.pending = work.then(end, end)
  return run.pending
}

/** Commits what has come in. */
export const commit = (run: Run): Promise<void> => startCommit(run).then(() => waitForCommit(run))

/** For how long messages are taken at most before the pending commit may go on to its next statement. */
const maxHoldMillis = 2

/**
 * Reading keeps the thread for a page at a time; without this, DuckDB would wait as long before each statement of a
 * commit.
 */
export const letCommitProceed = async (run: Run): Promise<void> => {
  if (run.pending === undefined || performance.now() - run.heldSince < maxHoldMillis) return
  await setImmediate()
  run.heldSince = performance.now()
}

/** Closes the files of what waits, once the pending commit has ended; nothing is written after it. */
export const abandonRun = async ({ pending, loads, shared }: Run): Promise<void> => {
  await pending
  for (const { spool } of [...loads.values(), ...shared]) spool.close()
}
