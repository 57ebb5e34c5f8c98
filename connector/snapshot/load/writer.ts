import { CommandError, configFailure, type Message, printJsonText, type Row } from '../../cdk'
import { createMemorySetter, databaseWriteFailure, type Snapshot } from '../store/database'
import { checkStateService, closeAbandonedLoads, deletionsTableSql, type LoadStatus } from '../store/metadata'
import { protectFiles } from '../store/open'
import { deletionsTableName, listStreamTables } from '../store/tables'
import { createViews } from '../store/views'
import { commitChanges, takeChange } from './commit'
import { createSpool, wideTableColumns } from './insert'
import { type Load, type LoadOptions, openLoad, updateLoadSchema } from './stream-load'

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
/** The records of a wide table take many times their size while they are typed. */
const maxWideCommitBytes = 4_000_000

/**
 * What DuckDB may use while records are typed and merged: each once the one before was too little. It fills what it may use with pages
 * of the file, so the steps keep the peak near what a commit needs, which grows with the file.
 */
export const memoryLimits = ['96MB', '384MB', '1GB', '2GB']

/** Writes a run's messages into the snapshot. A committed state covers committed rows only, whenever the process is killed. */
export const createSnapshotWriter = async (
  { db }: Snapshot,
  { now, loadOptions = {}, history = false }: SnapshotWriterOptions,
): Promise<SnapshotWriter> => {
  await db.run(deletionsTableSql)
  await closeAbandonedLoads(db)
  await db.run('SET preserve_insertion_order = false')
  const run = Number(await db.scalar('SELECT coalesce(max(run), 0) + 1 FROM _loads'))
  const loads = new Map<string, Load>()
  const checkedServices = new Set<string>()
  let tables = await listStreamTables(db)
  /** What was received since the last commit began. */
  let received = { rows: 0, bytes: 0, since: now() }
  /** The states of a page come one after another: a commit between them would leave the others at an older page. */
  let isCommitDue = false
  /** The commit that runs while more messages are read; nothing else may use the connection until it ends. */
  let pendingCommit: Promise<void> = Promise.resolve()
  let failed: { readonly error: unknown } | undefined
  const withMemory = createMemorySetter(db, memoryLimits)

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
    pendingCommit = withMemory(() => commitChanges(db, changes, tables, now()))
      .then(() => protectFiles(db.path))
      .catch((error) => {
        failed = { error }
      })
      .finally(() => {
        for (const { spool } of changes) spool.close()
      })
    db.trackWork(pendingCommit)
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
    if (isCommitDue && message._tag !== 'Checkpoint') await startCommit()
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
            await withMemory(() =>
              openLoad(db, run, message.stream, { options: loadOptions[name] ?? {}, history }, now()),
            ),
          )
        else await withMemory(() => updateLoadSchema(db, running, message.stream))
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
        await withMemory(() => db.transaction(() => createViews(db)))
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
