import { CommandError, type HoldsRows, type Message, type StreamInfo } from '../../cdk'
import type { Snapshot } from '../store/database'
import { databaseWriteFailure } from '../store/failures'
import { hasForgotten } from '../store/forgotten'
import { createViews } from '../store/views'
import { rejectStream } from './evolve'
import { hasRowsOf } from './generations'
import { changeVersion, endLoad } from './load-end'
import { createFileLoader, type Loader } from './loader'
import { addRecords, addSharedRecords, addState } from './receive'
import { abandonRun, beginRun, changeLoad, commit, occupy, type Run, startCommit } from './run'
import { type LoadSummary, summarizeLoad } from './stream-load'
import type { LoadOptions } from './target'

export type SnapshotWriterOptions = {
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** By stream, from the configured catalog. */
  readonly loadOptions?: Readonly<Record<string, LoadOptions>>
  /** Keep every version of a row from now on. A file that already has a history keeps it in any case. */
  readonly history?: boolean
  /** Where the rows go; by default, a file's own tables. */
  readonly loader?: Loader | undefined
}

export type SnapshotWriter = {
  /** Writes one message. Resolves once the next one may follow. Rejects with `CommandError`. */
  readonly write: (message: Message) => Promise<void>
  /** Commits what is left, and marks unfinished streams as incomplete. */
  readonly finish: () => Promise<ReadonlyArray<LoadSummary>>
  /** Rows of these streams are left after everything received is committed. */
  readonly holdsRows: HoldsRows
}

/**
 * Writes a run's messages into the snapshot. A committed state covers committed rows only, whenever the process is
 * killed.
 */
export const createSnapshotWriter = async (
  { db }: Snapshot,
  { now, loadOptions = {}, history = false, loader }: SnapshotWriterOptions,
): Promise<SnapshotWriter> => {
  const forgets = await hasForgotten(db)
  const run = beginRun(db, loader ?? (await createFileLoader(db, forgets)), { loadOptions, history, forgets }, now)
  const turn: Turn = { opening: [], held: [], firstState: undefined }
  return {
    write: (message) => guardWrite(run, () => writeMessage(run, turn, message)),
    holdsRows: (streams) =>
      guardWrite(run, async () => {
        await commit(run)
        const answer = hasRowsOf(db, streams, run.loader.run)
        // A stop may trigger the next commit meanwhile, which then waits for this answer.
        occupy(run, answer)
        return answer
      }),
    finish: () =>
      guardWrite(run, async () => {
        await openStreams(run, turn)
        for (const load of run.loads.values()) await endLoad(run, load, 'incomplete')
        await commit(run)
        await db.withMemory('creating the views', () => db.transaction(() => createViews(db)))
        return [...run.loads.values()].map((load) => summarizeLoad(load, now()))
      }),
  }
}

/** Turns an error into a `CommandError`. Nothing more is written after one. */
const guardWrite = async <A>(run: Run, body: () => Promise<A>): Promise<A> => {
  try {
    if (run.failed !== undefined) throw run.failed.error
    return await body()
  } catch (error) {
    await abandonRun(run)
    throw error instanceof CommandError ? error : new CommandError(databaseWriteFailure(run.db.path, error))
  }
}

/** What a message means depends on the previous ones. */
type Turn = {
  /** Declared streams waiting to be opened together. */
  readonly opening: StreamInfo[]
  /** Messages of streams that are being opened. */
  readonly held: Message[]
  /**
   * The stream whose state came first since the last other message. Its next state starts a page, even one without
   * rows.
   */
  firstState: string | undefined
}

const writeMessage = async (run: Run, turn: Turn, message: Message): Promise<void> => {
  if (turn.opening.length > 0 && (message._tag === 'Log' || message._tag === 'Running')) return
  if (isHeld(turn, message)) return void turn.held.push(message)
  if (message._tag !== 'Started') await openStreams(run, turn)
  if (run.isCommitDue && !endsPage(turn, message)) await startCommit(run)
  turn.firstState = message._tag === 'Checkpoint' ? (turn.firstState ?? message.stream) : undefined
  switch (message._tag) {
    case 'Started':
      return declareStream(run, turn, message.stream)
    case 'Records':
      return addRecords(run, message)
    case 'SharedRecords':
      return addSharedRecords(run, message)
    case 'Checkpoint':
      return addState(run, message.stream, message.state, message.count)
    case 'SharedCheckpoint':
      for (const { stream, state } of message.states) await addState(run, stream, state, Number.NaN)
      return
    case 'Finished':
      // A source that may have been cut off has not completed the stream; `finish` marks it as incomplete.
      return message.extent === 'unknown' ? undefined : endLoad(run, changeLoad(run, message.stream), 'complete')
    case 'Failed':
      for (const load of run.loads.values())
        if (message.stream === undefined || message.stream === load.stream) await endLoad(run, load, 'incomplete')
      return
    case 'Waiting':
      return commit(run)
    case 'TableVersion':
      return changeVersion(run, message)
  }
}

/**
 * The message may end a page. The states of a page and the ends of streams come one after another, and a commit between
 * them would leave the others at an older page.
 */
const endsPage = ({ firstState }: Turn, message: Message): boolean =>
  message._tag === 'Checkpoint' ? message.stream !== firstState : message._tag === 'Finished'

/**
 * A stream that is being opened reports its progress for the first time. One without rows is opened and ended together
 * with those after it.
 */
const isHeld = ({ opening, held }: Turn, message: Message): boolean =>
  (message._tag === 'Checkpoint' || message._tag === 'Finished') &&
  opening.some(({ name }) => name === message.stream) &&
  !held.some((other) => other._tag === message._tag && other.stream === message.stream)

const declareStream = async (run: Run, turn: Turn, info: StreamInfo): Promise<void> => {
  if (turn.opening.some(({ name }) => name === info.name)) await openStreams(run, turn)
  const load = run.loads.get(info.name)
  if (load?.status !== 'running') {
    turn.opening.push(info)
    if (!run.loader.opensTogether) await openStreams(run, turn)
  } else if (load.schema !== JSON.stringify(info.schema))
    rejectStream(info, 'its schema changed while it was read', 'Load the messages of each run on their own.')
}

/** Opens the declared streams, and writes the messages that waited for them. */
const openStreams = async (run: Run, turn: Turn): Promise<void> => {
  if (turn.opening.length === 0) return
  await commit(run)
  const infos = turn.opening.splice(0)
  for (const load of await run.loader.open(infos, run.options, run.now())) run.loads.set(load.stream, load)
  for (const message of turn.held.splice(0)) await writeMessage(run, turn, message)
}
