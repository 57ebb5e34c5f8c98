import { setImmediate } from 'node:timers/promises'
import { CommandError, configFailure, type Message, printJsonText, type Row } from '../../cdk'
import type { Snapshot } from '../store/database'
import { databaseWriteFailure } from '../store/failures'
import { protectFiles } from '../store/file'
import { checkStateService, closeAbandonedLoads, deletionsTableSql, type LoadStatus } from '../store/metadata'
import { deletionsTableName, listStreamTables } from '../store/tables'
import { createViews } from '../store/views'
import { commitWithinMemory } from './commit'
import { createSpool, wideTableColumns } from './insert'
import { hasManyOldRows, removeOldRowsInParts } from './merge'
import { type Change, type Load, type LoadOptions, openLoad, takeChange, updateLoadSchema } from './stream-load'

export type SnapshotWriterOptions = {
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** By stream, from the configured catalog. */
  readonly loadOptions?: Readonly<Record<string, LoadOptions>>
  /** Keep every version of a row from now on. A file that has a history keeps it in any case. */
  readonly history?: boolean
}

/** The result of one stream's load. */
export type LoadSummary = {
  readonly stream: string
  readonly status: LoadStatus
  readonly records: number
  readonly seconds: number
}

export type SnapshotWriter = {
  /** Writes one message; resolves once the next one may follow. Rejects with `CommandError`. */
  readonly write: (message: Message) => Promise<void>
  /** Commits what is left. Marks each stream that has not finished as incomplete. */
  readonly finish: () => Promise<ReadonlyArray<LoadSummary>>
}

/** The fingerprint of its service in a state's text. */
const servicePattern = /"service":\s*"([0-9a-f.]+)"/

/** A commit begins at the first of these limits. Larger ones cost less for each row; smaller ones lose less when a run is killed. */
const maxCommitRows = 250_000
const maxCommitBytes = 64_000_000
const maxCommitMillis = 5_000
/** The log of the commits is brought into the file once it has grown to this. */
const maxLogBytes = 16_000_000
/** The records of a wide table take many times their size while they are typed. */
const maxWideCommitBytes = 4_000_000

/** For how long messages are taken at most before the commit that runs may go on to its next statement. */
const maxHoldMillis = 2

/** Writes a run's messages into the snapshot. A committed state covers committed rows only, whenever the process is killed. */
export const createSnapshotWriter = async (
  { db }: Snapshot,
  { now, loadOptions = {}, history = false }: SnapshotWriterOptions,
): Promise<SnapshotWriter> => {
  await db.run(deletionsTableSql)
  await closeAbandonedLoads(db)
  const run = Number(await db.scalar('SELECT coalesce(max(run), 0) + 1 FROM _loads'))
  // Each thread writes a full group of rows at once, instead of holding five. A checkpoint joins groups whose rows were replaced, a few
  // at a time; by default it writes most rows of a first load a second time, only because the last group of each commit is not full.
  await db.run(
    `SET preserve_insertion_order = false; SET write_buffer_row_group_count = 1; SET max_vacuum_tasks = ${run === 1 ? 0 : 2}`,
  )
  const loads = new Map<string, Load>()
  const checkedServices = new Set<string>()
  let tables = await listStreamTables(db)
  /** What was received since the last commit began. */
  let received = { rows: 0, bytes: 0, since: now() }
  /** The states of a page, and the ends of streams, come one after another: a commit between them would leave the others at an older page. */
  let isCommitDue = false
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
    const changes = [...loads.values()]
      .filter((load) => load.hasChanges)
      .map((load) => takeChange(load, createSpool(db.path)))
    received = { rows: 0, bytes: 0, since: now() }
    if (changes.length === 0) return
    isCommitting = true
    pendingCommit = commitWithinMemory(db, describeChanges(changes), changes, tables, now())
      .then(async () => {
        await db.checkpoint(maxLogBytes)
        protectFiles(db.path)
      })
      .catch((error) => {
        failed = { error }
      })
      .finally(() => {
        isCommitting = false
        for (const { spool } of changes) spool.close()
      })
    db.trackWork(pendingCommit)
  }

  /** Reading keeps the thread for a page at a time; without this, DuckDB would wait as long before each statement of a commit. */
  const letCommitProceed = async (): Promise<void> => {
    if (!isCommitting || performance.now() - heldSince < maxHoldMillis) return
    await setImmediate()
    heldSince = performance.now()
  }

  const commit = async (): Promise<void> => {
    await startCommit()
    await waitForCommit()
  }

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
    const others = [...loads.values()].filter((other) => other.stream !== stream && hasUncommittedRows(other))
    if (stream === deletionsTableName ? others.length > 0 : others.some((other) => other.stream === deletionsTableName))
      await startCommit()
    const maxBytes = load.table.columns.length > wideTableColumns ? maxWideCommitBytes : maxCommitBytes
    for (const row of rows) {
      load.hasChanges = true
      load.spool.add(row, at)
      load.records += 1
      received.rows += 1
      received.bytes += row.json.length
      if (received.rows >= maxCommitRows || received.bytes >= maxBytes) await startCommit()
    }
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
    isCommitDue ||= now() - received.since >= maxCommitMillis
  }

  /** Removes most of the rows that a finished refresh has not read again, before the commit that ends it. */
  const removeOldRows = async (load: Load, minimumGeneration: number): Promise<void> => {
    await waitForCommit()
    if (!(await hasManyOldRows(db, load.table, minimumGeneration))) return
    await commit()
    await removeOldRowsInParts(db, load.table, minimumGeneration, tables, now())
  }

  const endLoad = async (load: Load, status: LoadStatus): Promise<void> => {
    if (load.status !== 'running') return
    if (status === 'complete' && load.target.minimumGeneration > 0)
      await removeOldRows(load, load.target.minimumGeneration)
    load.status = status
    load.endedAt = now()
    load.hasChanges = true
    if (load.target.minimumGeneration > 0) await commit()
    // The streams of one export end together, and one commit ends them all.
    else isCommitDue = true
  }

  const changeVersion = async ({
    stream,
    version,
    active,
  }: Extract<Message, { _tag: 'TableVersion' }>): Promise<void> => {
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

  const writeMessage = async (message: Message): Promise<void> => {
    if (isCommitDue && message._tag !== 'Checkpoint' && message._tag !== 'Finished') await startCommit()
    switch (message._tag) {
      case 'Started': {
        const { name, schema } = message.stream
        const previous = loads.get(name)
        const running = previous?.status === 'running' ? previous : undefined
        if (running?.schema === JSON.stringify(schema)) return
        await commit()
        if (running === undefined)
          loads.set(
            name,
            await db.withMemory(`preparing the table of ${name}`, () =>
              openLoad(db, run, message.stream, { options: loadOptions[name] ?? {}, history }, now()),
            ),
          )
        else await db.withMemory(`changing the table of ${name}`, () => updateLoadSchema(db, running, message.stream))
        tables = await listStreamTables(db)
        return
      }
      case 'Records':
        return addRows(message.stream, message.rows, message.at)
      case 'Checkpoint':
        return keepState(message.stream, message.state, message.count)
      case 'SharedCheckpoint': {
        for (const { stream, state } of message.states) await keepState(stream, state, Number.NaN)
        return
      }
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
      case 'Running':
      case 'Log':
        return
    }
  }

  /** Turns an error into a `CommandError`. */
  const guardWrite = async <A>(body: () => Promise<A>): Promise<A> => {
    try {
      if (failed !== undefined) throw failed.error
      return await body()
    } catch (error) {
      await pendingCommit
      for (const { spool } of loads.values()) spool.close()
      throw error instanceof CommandError ? error : new CommandError(databaseWriteFailure(db.path, error))
    }
  }

  return {
    write: (message) => guardWrite(() => writeMessage(message)),
    finish: () =>
      guardWrite(async () => {
        for (const load of loads.values()) await endLoad(load, 'incomplete')
        await commit()
        await db.withMemory('creating the views', () => db.transaction(() => createViews(db)))
        return [...loads.values()].map(({ stream, status, records, startedAt, endedAt }) => ({
          stream,
          status,
          records,
          seconds: ((endedAt ?? now()) - startedAt) / 1000,
        }))
      }),
  }
}

/** Whether records of the load wait for the next commit. */
const hasUncommittedRows = (load: Load): boolean => load.spool.count() > 0

/** What a commit does, in words. */
const describeChanges = (changes: ReadonlyArray<Change>): string => {
  const added = changes.filter(({ spool }) => spool.count() > 0)
  const rows = added.reduce((sum, { spool }) => sum + spool.count(), 0)
  const streams = (added.length > 0 ? added : changes).map(({ load }) => load.stream)
  const names = `${streams[0]}${streams.length > 1 ? ` and ${streams.length - 1} more` : ''}`
  if (rows > 0) return `committing ${rows.toLocaleString('en')} records of ${names}`
  return `committing the end of ${names}`
}
