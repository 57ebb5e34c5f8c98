import { type Message, printJsonText, type Row, type SharedRecords } from '../../cdk'
import { checkStateService } from '../store/claim'
import { forgottenRecordsSql } from '../store/forgotten'
import { deletionsTableName, reviewsTableName } from '../store/tables'
import { changeLoad, letCommitProceed, type Run, startCommit, waitForCommit } from './run'
import { createSpool, type Spool } from './spool'

type Records = Extract<Message, { readonly _tag: 'Records' }>

/** Receives records of one stream. */
export const addRecords = async (run: Run, { stream, rows, at }: Records): Promise<void> => {
  await letCommitProceed(run)
  const load = changeLoad(run, stream)
  if (run.shared.length > 0 || mustComeAfterOthers(run, stream)) await startCommit(run)
  for (const row of rows) {
    load.hasChanges = true
    load.spool.add(row, at)
    load.records += 1
    if (isFullWith(run, row, run.loader.limits.bytes)) await startCommit(run)
  }
}

/** Deletions and other records are applied in the order in which they came, so no commit has both. */
const mustComeAfterOthers = ({ loads }: Run, stream: string): boolean => {
  const others = [...loads.values()].filter((other) => other.stream !== stream && other.spool.count() > 0)
  return others.some((other) => stream === deletionsTableName || other.stream === deletionsTableName)
}

/** Receives reviews from which several streams make their rows. */
export const addSharedRecords = async (run: Run, records: SharedRecords): Promise<void> => {
  await letCommitProceed(run)
  const loads = records.streams.map((stream) => changeLoad(run, stream))
  // A stream's own records come before these.
  if ([...run.loads.values()].some(({ spool }) => spool.count() > 0)) await startCommit(run)
  for (const row of records.rows) {
    for (const load of loads) {
      load.hasChanges = true
      if (load.derivation?._tag === 'record') load.records += 1
    }
    findSharedSpool(run, records).add(row, records.at)
    if (isFullWith(run, row, run.loader.limits.sharedBytes)) await startCommit(run)
  }
}

/** The spool for reviews of these streams. */
const findSharedSpool = ({ db, shared, options }: Run, { streams, hasUndeclared }: SharedRecords): Spool => {
  const last = shared.at(-1)
  if (last?.hasUndeclared === hasUndeclared && last.streams.join() === streams.join()) return last.spool
  const spool = createSpool(db.path, options.forgets ? forgottenRecordsSql(reviewsTableName) : undefined)
  shared.push({ streams, spool, hasUndeclared })
  return spool
}

/** Counts a row. Returns true if enough has been received for a commit. */
const isFullWith = ({ amount, loader: { limits } }: Run, { json }: Row, maxBytes: number): boolean => {
  amount.rows += 1
  amount.bytes += json.length
  amount.pageBytes += json.length
  return amount.rows >= limits.rows || amount.bytes >= maxBytes
}

/** The fingerprint of its service in a state's text. */
const servicePattern = /"service":\s*"([0-9a-f.]+)"/

/** Receives a state, which covers the records before it. `count`: NaN if the source does not count its records. */
export const addState = async (run: Run, stream: string, state: unknown, count: number): Promise<void> => {
  const load = changeLoad(run, stream)
  load.state = printJsonText(state)
  const service = servicePattern.exec(load.state)?.[1]
  if (service !== undefined && !run.checkedServices.has(service)) {
    await waitForCommit(run)
    await checkStateService(run.db, stream, service)
    run.checkedServices.add(service)
  }
  if (Number.isFinite(count)) load.sourceRecords = (load.sourceRecords ?? 0) + count
  endPage(run)
}

/** A state ends a page. A commit is due if the records are old, or if the next page would exceed the limit. */
const endPage = (run: Run): void => {
  const { amount, now } = run
  const { limits } = run.loader
  run.isCommitDue ||= now() - amount.since >= limits.millis
  run.isCommitDue ||= limits.wholePages && amount.bytes + amount.pageBytes >= limits.bytes
  amount.pageBytes = 0
}
