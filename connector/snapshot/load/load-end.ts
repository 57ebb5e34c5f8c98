import type { Message } from '../../cdk'
import type { LoadStatus } from '../store/metadata'
import { changeLoad, commit, type Run, waitForCommit } from './run'
import type { Load } from './stream-load'

/** Ends a load. Does nothing if it has already ended. */
export const endLoad = async (run: Run, load: Load, status: Exclude<LoadStatus, 'running'>): Promise<void> => {
  if (load.status !== 'running') return
  const { minimumGeneration } = load.target
  if (status === 'complete' && minimumGeneration > 0) await removeOldRows(run, load, minimumGeneration)
  Object.assign(load, { status, endedAt: run.now(), hasChanges: true })
  if (minimumGeneration > 0) await commit(run)
  // The streams of one export end together, and one commit ends them all.
  else run.isCommitDue = true
}

/** Starts a version of a table, which is a generation of its stream, or makes it the visible one. */
export const changeVersion = async (
  run: Run,
  { stream, version, active }: Extract<Message, { readonly _tag: 'TableVersion' }>,
): Promise<void> => {
  const load = changeLoad(run, stream)
  if (version < load.target.generation) return
  if (version > load.target.generation) {
    await commit(run)
    load.target = { ...load.target, generation: version }
  }
  if (!active) return
  await removeOldRows(run, load, version)
  load.activatesGeneration = true
  load.hasChanges = true
  await commit(run)
  load.activatesGeneration = false
}

/** Removes most of the rows that a finished refresh has not read again, before the commit that ends it. */
const removeOldRows = async (run: Run, load: Load, minimumGeneration: number): Promise<void> => {
  const { oldRows } = run.loader
  await waitForCommit(run)
  if (!(await oldRows?.areMany(load, minimumGeneration))) return
  await commit(run)
  await oldRows?.remove(load, minimumGeneration, run.now())
}
