import { randomUUID } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { toMillis } from '../api'
import {
  type AuditedLoad,
  type AuditedTable,
  type AuditWindow,
  bucketStatement,
  checkDimensionStatementSize,
  checkFeedbackStatementSize,
  checkStatementSize,
  clockZone,
  createContentDigest,
  deleteDimensionStatement,
  deleteFeedbackStatement,
  deleteStatement,
  dimensionStatement,
  type Expected,
  type ExpectedFeedback,
  feedbackBucketStatement,
  feedbackRowStatement,
  fieldName,
  formatSeed,
  readDimensions,
  reviewStatement,
  useExpected,
  useExpectedFeedback,
} from '../audit'
import {
  CommandError,
  type CommandIo,
  checkStateServices,
  configFailure,
  defined,
  formatStateFile,
  getOrThrow,
  loadAirbyteState,
  mapDefined,
  type SourceState,
} from '../cdk'
import {
  type ConfiguredSource,
  createDimensionService,
  createFeedbackService,
  createVersionService,
  rewindStream,
} from '../runtime'
import { rewindEntities, type SourceEnv } from '../streams'
import { readDifferences } from './audit-answer'
import { withoutForgotten } from './forgotten'
import { writeOutputFile } from './output-file'
import { formatJson } from './table'

/**
 * The states of the last load; undefined if none are given. Rejects states of another service, and states without the
 * stream.
 */
export const readStates = async (
  { stream, state }: { readonly stream: string; readonly state: string | undefined },
  service: ConfiguredSource['service'],
): Promise<SourceState | undefined> => {
  if (state === undefined) return undefined
  const states = getOrThrow(checkStateServices(await loadAirbyteState(state), service))
  if (states[stream] === undefined)
    throw new CommandError(
      configFailure(`${state} has no state of ${stream}. Give the state of the run that loaded the table.`),
    )
  return states
}

/** `forgotten`: the file that records what was forgotten. */
type AuditOptions = Readonly<Record<'folder' | 'out' | 'forgotten', string | undefined>> & {
  readonly stream: string
  /** The states at the end of the last load; undefined if none are given. */
  readonly states: SourceState | undefined
  /** The answer file whose rows are repaired; undefined to print a statement. */
  readonly repair: string | undefined
  readonly json: boolean
}

/**
 * Audits a table made from reviews: prints a statement, or writes files that repair the reviews in the file `repair`.
 */
export const auditVersions = async (
  io: CommandIo,
  source: SourceEnv,
  table: AuditedTable,
  {
    bucketCount,
    buckets,
    load,
    repair,
    ...options
  }: AuditOptions & {
    readonly bucketCount: number
    readonly buckets: ReadonlyArray<number> | undefined
    readonly load: AuditedLoad
    /** Writes this file, a dbt seed, instead of a statement. */
    readonly seed: string | undefined
  },
): Promise<void> => {
  const { stream, states, seed } = options
  const differences = repair === undefined ? undefined : await readDifferences(io, repair, 'reviews')
  const withMention = new Set(differences?.map(({ id }) => id))
  const digest = mapDefined(table.content, (content) => createContentDigest(content, bucketCount, buckets, table))
  const { versions } = await withoutForgotten(io, options.forgotten)
  const service = versions(createVersionService(source, stream, { withMention, digest }))
  await useExpected(
    service,
    load,
    { bucketCount, spillPath: createSpillPath(), zone: seed === undefined ? clockZone(table) : undefined },
    async (expected) => {
      if (seed !== undefined) return writeOutputFile(seed, await formatSeed(expected))
      if (differences === undefined)
        return printStatement(io, options, await describeVersions(table, expected, buckets))
      if (differences.length === 0) return io.printWarning('There is nothing to repair.')
      const { versions, newer } = await expected.findVersions(differences.map(({ id }) => id))
      const missed = { versions, newer, cutoff: expected.scope.cutoff }
      await writeRepairFiles(io, options.folder, {
        deletions: deleteStatement(table, differences),
        states: getOrThrow(rewindStream(source, stream, states ?? {}, missed)),
        start: 'Within 24 hours, start',
      })
    },
  )
}

/** The statement about all buckets, or about the reviews in some of them. */
const describeVersions = async (
  table: AuditedTable,
  { scope, reviews, rows, listBuckets, listReviews }: Expected,
  buckets: ReadonlyArray<number> | undefined,
) => {
  const sql =
    buckets === undefined
      ? bucketStatement(table, scope, await listBuckets())
      : reviewStatement(table, scope, buckets, await listReviews(buckets))
  return {
    stream: scope.stream,
    table: table.name,
    dialect: table.dialect,
    cutoff: new Date(scope.cutoff).toISOString(),
    reviews,
    rows,
    changed_since: scope.changedIds.length,
    buckets: scope.bucketCount,
    ...defined({ columns: table.content?.fields.map(fieldName) }),
    sql: getOrThrow(checkStatementSize(sql, table, scope, buckets)),
  }
}

/**
 * Audits a table of what reviews refer to: prints a statement, or writes files that repair the rows in the file
 * `repair`.
 */
export const auditDimensions = async (
  io: CommandIo,
  source: SourceEnv,
  table: AuditedTable,
  {
    attributes,
    load,
    repair,
    ...options
  }: AuditOptions & {
    /** The attributes that are compared beside the key, such as the name. */
    readonly attributes: ReadonlyArray<string>
    readonly load: AuditedLoad
  },
): Promise<void> => {
  const { stream, states } = options
  const differences = repair === undefined ? undefined : await readDifferences(io, repair, 'dimensions')
  const expected = await readDimensions(createDimensionService(source, stream, load), attributes)
  const cutoff = new Date(expected.cutoff).toISOString()
  if (differences === undefined) {
    const sql = getOrThrow(checkDimensionStatementSize(dimensionStatement(table, expected), table))
    const { name, dialect } = table
    return printStatement(io, options, { stream, table: name, dialect, cutoff, rows: expected.dimensions.size, sql })
  }
  if (differences.length === 0) return io.printWarning('There is nothing to repair.')
  const versions = differences.flatMap(({ dimension }) => {
    const found = expected.dimensions.get(dimension)
    return found === undefined ? [] : [{ modifiedTime: found.version, mentionTime: undefined }]
  })
  // Everything since the oldest one is read again, because reading only part of it could bring an older name back.
  const missed = { versions, newer: 0, cutoff: expected.cutoff }
  await writeRepairFiles(io, options.folder, {
    deletions: deleteDimensionStatement(table, differences),
    states: getOrThrow(rewindStream(source, stream, states ?? {}, missed)),
    start: 'Start',
  })
}

/** Writes `delete.sql` and the states for both protocols. `start`: the beginning of the sentence about the next run. */
const writeRepairFiles = async (
  io: CommandIo,
  folder = 'audit-repair',
  { deletions, states, start }: { readonly deletions: string; readonly states: SourceState; readonly start: string },
): Promise<void> => {
  const list = Object.entries(states).map(([name, value]) => ({ stream: name, state: JSON.stringify(value) }))
  const [deletionFile, airbyteState, singerState] = ['delete.sql', 'state.json', 'singer-state.json'].map((name) =>
    join(folder, name),
  ) as [string, string, string]
  await mkdir(folder, { recursive: true }).catch((error: NodeJS.ErrnoException) => {
    throw new CommandError(
      configFailure(`${folder} cannot be created (${error.code ?? error.message}). Give another --folder.`),
    )
  })
  await writeOutputFile(deletionFile, deletions)
  await writeOutputFile(airbyteState, formatStateFile(list))
  await writeOutputFile(singerState, `${JSON.stringify({ singer_state: { bookmarks: states } })}\n`)
  io.printWarning(
    `To repair the table:\n  1. Run ${deletionFile} in the warehouse.\n  2. ${start} ` +
      `the next run from ${airbyteState} (Airbyte) or ${singerState} (Singer, Meltano).`,
  )
}

/** Prints a statement, or the statement and its numbers as JSON. */
const printStatement = async (
  io: CommandIo,
  { out, json }: Pick<AuditOptions, 'out' | 'json'>,
  described: { readonly sql: string; readonly [key: string]: unknown },
): Promise<void> => {
  const text = json ? formatJson(described) : described.sql
  await (out === undefined ? io.print(text) : writeOutputFile(out, text))
}

/** The file for rows that do not fit into memory. */
const createSpillPath = (): string => join(tmpdir(), `feedback-audit.${randomUUID()}`)

/**
 * Audits a table of a stream by entity: prints a statement, or writes files that repair the rows in the file `repair`.
 */
export const auditFeedback = async (
  io: CommandIo,
  source: SourceEnv,
  table: AuditedTable,
  {
    window,
    buckets,
    repair,
    ...options
  }: AuditOptions & {
    readonly window: AuditWindow
    readonly buckets: ReadonlyArray<string> | undefined
    /** Compare as of this time. */
    readonly cutoff: string | undefined
  },
): Promise<void> => {
  const { stream, states: given } = options
  const cutoff = mapDefined(options.cutoff, toMillis)
  const differences = repair === undefined ? undefined : await readDifferences(io, repair, 'rows')
  const limits = defined({ cutoff, state: given?.[stream] })
  const service = getOrThrow(createFeedbackService(source, stream, limits, io.printWarning))
  const how = { window, spillPath: createSpillPath(), zone: clockZone(table) }
  const { feedback } = await withoutForgotten(io, options.forgotten)
  await useExpectedFeedback(feedback(service), how, async (expected) => {
    const { scope, findOldest } = expected
    const leftOut = scope.leftOut.map(({ entity, reason }) => `${entity} (${reason})`).join(', ')
    if (scope.entities.length === 0)
      throw new CommandError(
        configFailure(
          `No entity of ${stream} can be compared${leftOut === '' ? '' : `: ${leftOut}`}. ` +
            'Name the entities in the config, and give the state of the last load.',
        ),
      )
    for (const { entity, reason } of scope.leftOut) io.printWarning(`${entity} is left out: ${reason}.`)
    if (differences === undefined) return printStatement(io, options, await describeFeedback(table, expected, buckets))
    if (differences.length === 0) return io.printWarning('There is nothing to repair.')
    // Without a given state: the state at the end of the read that just finished, as of the cutoff.
    const state = given?.[stream] ?? service.state()
    const reached = given === undefined && cutoff !== undefined ? scope.entities : []
    const oldest = new Map([
      ...reached.map((entity) => [entity.entity, entity.cutoff] as const),
      ...(await findOldest(differences)),
    ])
    await writeRepairFiles(io, options.folder, {
      deletions: deleteFeedbackStatement(table, scope, differences),
      states: { ...given, [stream]: getOrThrow(rewindEntities(stream, state, oldest)) },
      start: 'Start',
    })
  })
}

/** The statement about all windows, or about the rows in some of them. */
const describeFeedback = async (
  table: AuditedTable,
  { scope, rows, listGroups, listRows }: ExpectedFeedback,
  buckets: ReadonlyArray<string> | undefined,
) => {
  const sql =
    buckets === undefined
      ? feedbackBucketStatement(table, scope, await listGroups())
      : feedbackRowStatement(table, scope, buckets, await listRows(buckets))
  const cutoffs = scope.entities.map(({ cutoff }) => cutoff)
  const toTime = (millis: number): string => new Date(millis).toISOString()
  return {
    stream: scope.stream,
    table: table.name,
    dialect: table.dialect,
    cutoff: toTime(Math.min(...cutoffs)),
    last_cutoff: toTime(Math.max(...cutoffs)),
    entities: scope.entities.length,
    left_out: scope.leftOut.map(({ entity }) => entity),
    rows,
    window: scope.window,
    sql: getOrThrow(checkFeedbackStatementSize(sql, table, buckets)),
  }
}
