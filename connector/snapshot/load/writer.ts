import { setImmediate } from 'node:timers/promises'
import {
  CommandError,
  configFailure,
  type HoldsRows,
  type Message,
  printJsonText,
  type Row,
  type SharedRecords,
  type StreamInfo,
} from '../../cdk'
import type { Snapshot } from '../store/database'
import { databaseWriteFailure } from '../store/failures'
import { forgottenRecordsSql, hasForgotten } from '../store/forgotten'
import { checkStateService, type LoadStatus } from '../store/metadata'
import { deletionsTableName, reviewsTableName } from '../store/tables'
import { createViews } from '../store/views'
import { rejectStream } from './evolve'
import { hasRowsOf } from './generations'
import { createFileLoader, type Loader } from './loader'
import { createSpool, type SharedSpool, type Spool } from './spool'
import { explainCommitFailure, type Load, type LoadSummary, summarizeLoad, takeChange } from './stream-load'
import type { LoadOptions } from './target'

export type SnapshotWriterOptions = {
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** By stream, from the configured catalog. */
  readonly loadOptions?: Readonly<Record<string, LoadOptions>>
  /** Keep every version of a row from now on. A file that has a history keeps it in any case. */
  readonly history?: boolean
  /** Where the rows go; a file's own tables if left out. */
  readonly loader?: Loader | undefined
}

export type SnapshotWriter = {
  /** Writes one message; resolves once the next one may follow. Rejects with `CommandError`. */
  readonly write: (message: Message) => Promise<void>
  /** Commits what is left. Marks each stream that has not finished as incomplete. */
  readonly finish: () => Promise<ReadonlyArray<LoadSummary>>
  /** Whether rows of these streams are left, once what was received is committed. */
  readonly holdsRows: HoldsRows
}

/** The fingerprint of its service in a state's text. */
const servicePattern = /"service":\s*"([0-9a-f.]+)"/

type TableVersion = Extract<Message, { _tag: 'TableVersion' }>

/** For how long messages are taken at most before the commit that runs may go on to its next statement. */
const maxHoldMillis = 2

/**
 * Writes a run's messages into the snapshot. A committed state covers committed rows only, whenever the process is
 * killed.
 */
export const createSnapshotWriter = async (
  { db }: Snapshot,
  { now, loadOptions = {}, history = false, loader: given }: SnapshotWriterOptions,
): Promise<SnapshotWriter> => {
  const forgets = await hasForgotten(db)
  const sharedFilter = forgets ? forgottenRecordsSql(reviewsTableName) : undefined
  const loader = given ?? (await createFileLoader(db, forgets))
  const { limits } = loader
  const loads = new Map<string, Load>()
  /** Reviews that were received once for several streams. */
  const shared: SharedSpool[] = []
  const opening: StreamInfo[] = []
  /** Messages of streams that are opening. */
  const held: Message[] = []
  const checkedServices = new Set<string>()
  /** What was received since the last commit began; `pageBytes`: since the last state too. */
  let received = { rows: 0, bytes: 0, pageBytes: 0, since: now() }
  /**
   * The states of a page, and the ends of streams, come one after another: a commit between them would leave the
   * others at an older page.
   */
  let isCommitDue = false
  /**
   * The stream whose state came first since the last other message: its next state begins a page, also where pages
   * bring no rows.
   */
  let firstState: string | undefined
  /** The commit that runs while more messages are read; nothing else may use the connection until it ends. */
  let pendingCommit: Promise<void> = Promise.resolve()
  let isCommitting = false
  let heldSince = 0
  let failed: { readonly error: unknown } | undefined

  const waitForCommit = async (): Promise<void> => {
    await pendingCommit
    if (failed !== undefined) throw failed.error
  }

  /** Begins to commit what was received, once the commit before it has ended. */
  const startCommit = async (): Promise<void> => {
    isCommitDue = false
    await waitForCommit()
    const changes = [...loads.values()].filter((load) => load.hasChanges).map((load) => takeChange(load, db.path))
    received = { rows: 0, bytes: 0, pageBytes: 0, since: now() }
    if (changes.length === 0) return
    const taken = { changes, shared: shared.splice(0) }
    isCommitting = true
    pendingCommit = loader
      .commit(taken, now())
      .catch((error) => {
        failed = { error: explainCommitFailure(taken, error) }
      })
      .finally(() => {
        isCommitting = false
        for (const { spool } of [...taken.changes, ...taken.shared]) spool.close()
      })
    db.trackWork(pendingCommit)
  }

  /**
   * Reading keeps the thread for a page at a time; without this, DuckDB would wait as long before each statement of a
   * commit.
   */
  const letCommitProceed = async (): Promise<void> => {
    if (!isCommitting || performance.now() - heldSince < maxHoldMillis) return
    await setImmediate()
    heldSince = performance.now()
  }

  const commit = (): Promise<void> => startCommit().then(waitForCommit)

  const findLoad = (stream: string): Load => {
    const load = loads.get(stream)
    if (load === undefined)
      throw new CommandError(configFailure(`Stream ${stream} sends records without having been declared.`))
    load.hasChanges = true
    return load
  }

  const addRows = async (stream: string, rows: ReadonlyArray<Row>, at: number): Promise<void> => {
    await letCommitProceed()
    const load = findLoad(stream)
    if (shared.length > 0) await startCommit()
    const others = [...loads.values()].filter((other) => other.stream !== stream && other.spool.count() > 0)
    if (stream === deletionsTableName ? others.length > 0 : others.some((other) => other.stream === deletionsTableName))
      await startCommit()
    for (const row of rows) {
      load.hasChanges = true
      load.spool.add(row, at)
      load.records += 1
      received.rows += 1
      received.bytes += row.json.length
      received.pageBytes += row.json.length
      if (received.rows >= limits.rows || received.bytes >= limits.bytes) await startCommit()
    }
  }

  const addShared = async ({ streams, rows, hasUndeclared, at }: SharedRecords): Promise<void> => {
    await letCommitProceed()
    const ofShared = streams.map(findLoad)
    // What a stream has received as records of its own comes before these.
    if ([...loads.values()].some(({ spool }) => spool.count() > 0)) await startCommit()
    for (const row of rows) {
      for (const load of ofShared) {
        load.hasChanges = true
        if (load.derivation?._tag === 'record') load.records += 1
      }
      findShared(streams, hasUndeclared).add(row, at)
      received.rows += 1
      received.bytes += row.json.length
      received.pageBytes += row.json.length
      if (received.rows >= limits.rows || received.bytes >= limits.sharedBytes) await startCommit()
    }
  }

  /** The spool for reviews of these streams. */
  const findShared = (streams: ReadonlyArray<string>, hasUndeclared: boolean): Spool => {
    const last = shared.at(-1)
    if (last?.hasUndeclared === hasUndeclared && last.streams.join() === streams.join()) return last.spool
    const spool = createSpool(db.path, sharedFilter)
    shared.push({ streams, spool, hasUndeclared })
    return spool
  }

  /** `count`: NaN where the source does not count its records. */
  const keepState = async (stream: string, state: unknown, count: number): Promise<void> => {
    const load = findLoad(stream)
    load.state = printJsonText(state)
    const service = servicePattern.exec(load.state)?.[1]
    if (service !== undefined && !checkedServices.has(service)) {
      await waitForCommit()
      await checkStateService(db, stream, service)
      checkedServices.add(service)
    }
    if (Number.isFinite(count)) load.sourceRecords = (load.sourceRecords ?? 0) + count
    isCommitDue ||= now() - received.since >= limits.millis
    isCommitDue ||= limits.wholePages && received.bytes + received.pageBytes >= limits.bytes
    received.pageBytes = 0
  }

  /** Removes most of the rows that a finished refresh has not read again, before the commit that ends it. */
  const removeOldRows = async (load: Load, minimumGeneration: number): Promise<void> => {
    await waitForCommit()
    if (!(await loader.oldRows?.areMany(load, minimumGeneration))) return
    await commit()
    await loader.oldRows?.remove(load, minimumGeneration, now())
  }

  const endLoad = async (load: Load, status: LoadStatus): Promise<void> => {
    if (load.status !== 'running') return
    if (status === 'complete' && load.target.minimumGeneration > 0)
      await removeOldRows(load, load.target.minimumGeneration)
    Object.assign(load, { status, endedAt: now(), hasChanges: true })
    if (load.target.minimumGeneration > 0) await commit()
    // The streams of one export end together, and one commit ends them all.
    else isCommitDue = true
  }

  const changeVersion = async ({ stream, version, active }: TableVersion): Promise<void> => {
    const load = findLoad(stream)
    if (version < load.target.generation) return
    if (version > load.target.generation) {
      await commit()
      load.target = { ...load.target, generation: version }
    }
    if (!active) return
    await removeOldRows(load, load.target.generation)
    load.activatesGeneration = true
    load.hasChanges = true
    await commit()
    load.activatesGeneration = false
  }

  /** Opens what was declared. */
  const openStreams = async (): Promise<void> => {
    if (opening.length === 0) return
    await commit()
    const infos = opening.splice(0)
    for (const load of await loader.open(infos, { loadOptions, history, forgets }, now())) loads.set(load.stream, load)
    for (const message of held.splice(0)) await writeMessage(message)
  }

  /**
   * Whether a stream that is opening says, for the first time, how far it has come: one that has no rows is opened
   * and ended with those after it.
   */
  const isHeld = (message: Message): boolean =>
    (message._tag === 'Checkpoint' || message._tag === 'Finished') &&
    opening.some(({ name }) => name === message.stream) &&
    !held.some((other) => other._tag === message._tag && other.stream === message.stream)

  const writeMessage = async (message: Message): Promise<void> => {
    if (opening.length > 0 && (message._tag === 'Log' || message._tag === 'Running')) return
    if (isHeld(message)) return void held.push(message)
    if (message._tag !== 'Started') await openStreams()
    if (isCommitDue && (message._tag === 'Checkpoint' ? message.stream === firstState : message._tag !== 'Finished'))
      await startCommit()
    firstState = message._tag === 'Checkpoint' ? (firstState ?? message.stream) : undefined
    switch (message._tag) {
      case 'Started': {
        const { name, schema } = message.stream
        if (opening.some((other) => other.name === name)) await openStreams()
        const load = loads.get(name)
        if (load?.status !== 'running') {
          opening.push(message.stream)
          return loader.opensTogether ? undefined : openStreams()
        }
        if (load.schema !== JSON.stringify(schema))
          rejectStream(
            message.stream,
            'its schema changed while it was read',
            'Load the messages of each run on their own.',
          )
        return
      }
      case 'Records':
        return addRows(message.stream, message.rows, message.at)
      case 'SharedRecords':
        return addShared(message)
      case 'Checkpoint':
        return keepState(message.stream, message.state, message.count)
      case 'SharedCheckpoint':
        for (const { stream, state } of message.states) await keepState(stream, state, Number.NaN)
        return
      case 'Finished':
        // A source that may have been cut short has not completed the stream: `finish` marks it as incomplete.
        return message.extent === 'unknown' ? undefined : endLoad(findLoad(message.stream), 'complete')
      case 'Failed': {
        const failedLoads = message.stream === undefined ? [...loads.values()] : [loads.get(message.stream)]
        for (const load of failedLoads) if (load !== undefined) await endLoad(load, 'incomplete')
        return
      }
      case 'Waiting':
        return commit()
      case 'TableVersion':
        return changeVersion(message)
    }
  }

  /** Turns an error into a `CommandError`. */
  const guardWrite = async <A>(body: () => Promise<A>): Promise<A> => {
    try {
      if (failed !== undefined) throw failed.error
      return await body()
    } catch (error) {
      await pendingCommit
      for (const { spool } of [...loads.values(), ...shared]) spool.close()
      throw error instanceof CommandError ? error : new CommandError(databaseWriteFailure(db.path, error))
    }
  }

  return {
    write: (message) => guardWrite(() => writeMessage(message)),
    holdsRows: (streams) =>
      guardWrite(async () => {
        await commit()
        const answer = hasRowsOf(db, streams, loader.run)
        // A stop may bring the next commit meanwhile: it waits for this answer.
        pendingCommit = answer.then(
          () => undefined,
          () => undefined,
        )
        return answer
      }),
    finish: () =>
      guardWrite(async () => {
        await openStreams()
        for (const load of loads.values()) await endLoad(load, 'incomplete')
        await commit()
        await db.withMemory('creating the views', () => db.transaction(() => createViews(db)))
        return [...loads.values()].map((load) => summarizeLoad(load, now()))
      }),
  }
}
