import { CommandError, configFailure, type Message, printJsonText, type Row } from '../../cdk'
import { databaseWriteFailure, type Snapshot } from '../store/database'
import { checkStateService, closeAbandonedLoads, deletionsTableSql, type LoadStatus } from '../store/metadata'
import { protectFiles } from '../store/open'
import { deletionsTableName, listStreamTables } from '../store/tables'
import { createViews } from '../store/views'
import { commitLoads, limitLoadMemory, raiseMergeMemory } from './commit'
import { insertBatch, type Load, type LoadOptions, openLoad, updateLoadSchema } from './stream-load'

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

/** What is inserted at once: more costs memory, less costs time. */
const maxInsertBytes = 500_000
/** A transaction is committed at the first of these limits. Larger ones cost less for each row; smaller ones lose less when a run is killed. */
const maxCommitRows = 65_536
const maxCommitBytes = 100_000_000
const maxCommitMillis = 5_000

/** Writes a run's messages into the snapshot. A committed state covers committed rows only, whenever the process is killed. */
export const createSnapshotWriter = async (
  { db }: Snapshot,
  { now, loadOptions = {}, history = false }: SnapshotWriterOptions,
): Promise<SnapshotWriter> => {
  await db.run(deletionsTableSql)
  await closeAbandonedLoads(db)
  await limitLoadMemory(db)
  const run = Number(await db.scalar('SELECT coalesce(max(run), 0) + 1 FROM _loads'))
  const loads = new Map<string, Load>()
  const checkedServices = new Set<string>()
  let tables = await listStreamTables(db)
  /** What was received since the last commit; `begun`: DuckDB has an open transaction. */
  let transaction = { rows: 0, bytes: 0, since: now(), begun: false }
  let pendingBytes = 0
  /** The insert that runs while more messages are read; nothing else may use the connection until it ends. */
  let pendingInsert: Promise<void> = Promise.resolve()

  const insert = async (): Promise<void> => {
    pendingBytes = 0
    if (!transaction.begun) await db.run('BEGIN')
    transaction.begun = true
    for (const load of loads.values()) await insertBatch(db, load)
  }

  const startInsert = async (): Promise<void> => {
    await pendingInsert
    pendingInsert = insert()
    db.trackWork(pendingInsert)
  }

  const commit = async (): Promise<void> => {
    await pendingInsert
    const changedLoads = [...loads.values()].filter((load) => load.hasChanges)
    if (changedLoads.length > 0) {
      await insert()
      await raiseMergeMemory(db)
      await commitLoads(db, changedLoads, tables, now())
      await limitLoadMemory(db)
      protectFiles(db.path)
    }
    for (const load of changedLoads) {
      load.lastRowId = undefined
      load.state = undefined
      load.hasChanges = false
    }
    transaction = { rows: 0, bytes: 0, since: now(), begun: false }
  }

  const findLoad = (stream: string): Load => {
    const load = loads.get(stream)
    if (load === undefined)
      throw new CommandError(configFailure(`Stream ${stream} sends records without having been declared.`))
    load.hasChanges = true
    return load
  }

  const addRows = async (stream: string, rows: ReadonlyArray<Row>, at: number): Promise<void> => {
    const load = findLoad(stream)
    const others = [...loads.values()].filter((other) => other.stream !== stream && hasUncommittedRows(other))
    if (stream === deletionsTableName ? others.length > 0 : others.some((other) => other.stream === deletionsTableName))
      await commit()
    for (const row of rows) {
      load.hasChanges = true
      load.batch.add(row, at)
      load.records += 1
      transaction.rows += 1
      transaction.bytes += row.json.length
      pendingBytes += row.json.length
      if (pendingBytes >= maxInsertBytes) await startInsert()
      if (transaction.rows >= maxCommitRows || transaction.bytes >= maxCommitBytes) await commit()
    }
  }

  /** `count`: NaN where the source does not count its records. */
  const keepState = async (stream: string, state: unknown, count: number): Promise<void> => {
    const load = findLoad(stream)
    load.state = printJsonText(state)
    const service = servicePattern.exec(load.state)?.[1]
    if (service !== undefined && !checkedServices.has(service)) {
      await pendingInsert
      await checkStateService(db, stream, service)
      checkedServices.add(service)
    }
    if (Number.isFinite(count)) load.sourceRecords = (load.sourceRecords ?? 0) + count
    if (now() - transaction.since >= maxCommitMillis) await commit()
  }

  const endLoad = async (load: Load, status: LoadStatus): Promise<void> => {
    if (load.status !== 'running') return
    load.status = status
    load.endedAt = now()
    load.hasChanges = true
    await commit()
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
    load.activatesGeneration = true
    load.hasChanges = true
    await commit()
    load.activatesGeneration = false
  }

  const writeMessage = async (message: Message): Promise<void> => {
    switch (message._tag) {
      case 'Started': {
        const { name, schema } = message.stream
        const previous = loads.get(name)
        const running = previous?.status === 'running' ? previous : undefined
        if (running?.schema === JSON.stringify(schema)) return
        await commit()
        if (running === undefined)
          loads.set(name, await openLoad(db, run, message.stream, { options: loadOptions[name] ?? {}, history }, now()))
        else await updateLoadSchema(db, running, message.stream)
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

  /** Turns an error into a `CommandError` and rolls back the open transaction. */
  const guardWrite = async <A>(body: () => Promise<A>): Promise<A> => {
    try {
      return await body()
    } catch (error) {
      await pendingInsert.catch(() => undefined)
      if (transaction.begun) await db.run('ROLLBACK').catch(() => undefined)
      throw error instanceof CommandError ? error : new CommandError(databaseWriteFailure(db.path, error))
    }
  }

  return {
    write: (message) => guardWrite(() => writeMessage(message)),
    finish: () =>
      guardWrite(async () => {
        for (const load of loads.values()) await endLoad(load, 'incomplete')
        await db.transaction(() => createViews(db))
        return [...loads.values()].map(({ stream, status, records, startedAt, endedAt }) => ({
          stream,
          status,
          records,
          seconds: ((endedAt ?? now()) - startedAt) / 1000,
        }))
      }),
  }
}

/** Whether rows of the load are waiting for the next commit. */
const hasUncommittedRows = (load: Load): boolean => load.lastRowId !== undefined || load.batch.count() > 0
