import { randomUUID } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { Instant, toMillis } from '../api'
import {
  type AuditedTable,
  bucketStatement,
  type Difference,
  decodeDifferences,
  deleteStatement,
  dialectNames,
  type Expected,
  idTypes,
  maxStatementBytes,
  reviewStatement,
  timeTypes,
  useExpected,
} from '../audit'
import {
  CommandError,
  type CommandIo,
  configFailure,
  defineCommand,
  formatStateFile,
  getOrThrow,
  loadAirbyteState,
  loadConfig,
  suggestName,
  usageError,
} from '../cdk'
import { sourceFormat } from '../config'
import { auditedStreams, createSource, createVersionService } from '../runtime'
import { decodeExportState, exportFilters, rewindStates, type SourceEnv, streamsReadWith } from '../streams'
import { configOption, variablePrefix } from './options'
import { refuseDatabaseAsOutput, writeOutputFile } from './snapshot-file'
import { formatJson } from './table'

const loaderNames = ['airbyte', 'meltano', 'snapshot'] as const

/** How each loader lays a stream down, where no option says otherwise. */
const loaders = {
  airbyte: { idType: 'number', versionType: 'timestamptz', deletedColumn: '_ab_cdc_deleted_at' },
  meltano: { idType: 'number', versionType: 'timestamp', deletedColumn: '_sdc_deleted_at' },
  snapshot: { idType: 'number', versionType: 'timestamptz', deletedColumn: undefined },
} as const

const defaultBuckets = 4096

/** One of a list of words; `otherwise` if the option was left out. */
const chooseWord = <A extends string>(
  option: string,
  words: ReadonlyArray<A>,
  text: string | undefined,
  otherwise: A,
): A => {
  if (text === undefined) return otherwise
  const word = words.find((each) => each === text)
  if (word === undefined)
    throw usageError(
      `feedback audit: --${option} must be one of ${words.join(', ')}, not ${text}.${suggestName(text, words)} See feedback audit --help.`,
    )
  return word
}

/** A table's name in SQL: parts between dots, each bare or in quotes. */
const tablePattern =
  /^(?:[\p{L}_][\p{L}\p{N}_$-]*|"[^"]+"|`[^`]+`)(?:\.(?:[\p{L}_][\p{L}\p{N}_$-]*|"[^"]+"|`[^`]+`)){0,3}$/u

const requireTableName = (option: string, text: string): string => {
  if (tablePattern.test(text)) return text
  throw usageError(
    `feedback audit: --${option} must be a table as SQL names it, such as public.reviews, not ${text}. See feedback audit --help.`,
  )
}

const readWholeNumber = (option: string, text: string, least: number, most: number): number => {
  const value = /^\d{1,7}$/.test(text) ? Number(text) : Number.NaN
  if (value >= least && value <= most) return value
  throw usageError(`feedback audit: --${option} must be a whole number from ${least} to ${most}, not ${text}.`)
}

export const auditCommand = defineCommand({
  name: 'audit',
  summary: 'Prints SQL that holds a table of a warehouse against the service, row by row, without moving its data.',
  options: {
    config: configOption,
    stream: {
      type: 'string',
      value: 'NAME',
      help: `The stream that the table was loaded from: ${auditedStreams.join(', ')}`,
      required: true,
    },
    table: {
      type: 'string',
      value: 'TABLE',
      help: 'The table as SQL names it, such as public.reviews',
      required: true,
    },
    dialect: {
      type: 'string',
      value: 'NAME',
      help: `The dialect of the warehouse: ${dialectNames.join(', ')}`,
      required: true,
    },
    loader: {
      type: 'string',
      value: 'NAME',
      help: `What wrote the table: ${loaderNames.join(', ')}; default airbyte. It decides the types of the columns and which rows are marked as deleted`,
    },
    state: {
      type: 'string',
      value: 'FILE',
      help: 'The state that the last load ended with: the table is held against the service as of the time that this state has reached',
    },
    cutoff: { type: 'string', value: 'TIME', help: 'As of this time instead; if both are left out, as of now' },
    deletions: {
      type: 'string',
      value: 'TABLE',
      help: 'The table of deleted_reviews, where the reviews that it names still lie in the table',
    },
    'all-versions': {
      type: 'boolean',
      help: 'The table keeps every version of a review (append): the newest counts, and nothing is doubled',
    },
    buckets: { type: 'string', value: 'N', help: `Number of buckets of ids, default ${defaultBuckets}` },
    ids: {
      type: 'string',
      value: 'BUCKET,…',
      help: 'Print the statement that names the reviews that differ in these buckets',
    },
    'id-column': { type: 'string', value: 'NAME', help: "The column of the review's id" },
    'id-type': { type: 'string', value: 'TYPE', help: `How it holds the id: ${idTypes.join(', ')}` },
    'version-column': { type: 'string', value: 'NAME', help: "The column of the review's modification time" },
    'version-type': {
      type: 'string',
      value: 'TYPE',
      help: `How it holds the time: ${timeTypes.join(', ')}; timestamp has no zone and is in UTC, text is ISO 8601, millis counts from 1970`,
    },
    'deleted-column': {
      type: 'string',
      value: 'NAME',
      help: 'The column that marks deleted rows; default that of the loader, if the config has deletes: tombstones',
    },
    repair: {
      type: 'string',
      value: 'FILE',
      help: 'Instead of a statement, write what repairs the reviews of this file into --folder: the answer of the statement of --ids, as CSV or JSON',
    },
    folder: {
      type: 'string',
      value: 'FOLDER',
      help: 'Where --repair writes delete.sql and the states; default audit-repair',
    },
    out: { type: 'string', value: 'FILE', help: 'Write the statement into this file; stdout if left out' },
    json: { type: 'boolean', help: 'Print the statement with the cutoff and the numbers of reviews and rows, as JSON' },
  },
  examples: [
    'feedback audit --config config.json --stream reviews --dialect postgres --table public.reviews > audit.sql',
    'feedback audit --config config.json --stream reviews --dialect snowflake --loader airbyte --table RAW.FEEDBACK.REVIEWS --state state.json',
    'feedback audit --config config.json --stream reviews --dialect postgres --table public.reviews --ids 17,2048',
    'feedback audit --config config.json --stream reviews --dialect postgres --table public.reviews --repair answer.csv --folder repair --state state.json',
  ],
  notes:
    'The ids and versions of all reviews are read by a scan that misses none; nothing is sent to the warehouse. Run the statement there: no rows mean that the table equals the service as of the time that it names. Exit status: 0 the statement was printed, 75 or 78 the service could not be read.',
  run: async (io, { options }) => {
    if (!auditedStreams.includes(options.stream))
      throw usageError(
        `feedback audit: --stream must be one of ${auditedStreams.join(', ')}, not ${options.stream}.${suggestName(options.stream, auditedStreams)} See feedback audit --help.`,
      )
    if (options.state !== undefined && options.cutoff !== undefined)
      throw usageError('feedback audit takes --state or --cutoff, not both. See feedback audit --help.')
    const bucketCount = readWholeNumber('buckets', options.buckets ?? String(defaultBuckets), 1, 16_384)
    const buckets = options.ids?.split(',').map((text) => readWholeNumber('ids', text.trim(), 0, bucketCount - 1))
    const out = options.out
    if (out !== undefined) await refuseDatabaseAsOutput(out, undefined)
    const config = await loadConfig(io, sourceFormat, options.config, variablePrefix)
    if (config.partition !== undefined)
      throw new CommandError(
        configFailure(
          'The config has partition, which is a share of the reviews. Leave it out to audit the whole table.',
        ),
      )
    if (options.repair !== undefined && buckets !== undefined)
      throw usageError('feedback audit takes --repair or --ids, not both. See feedback audit --help.')
    const table = toAuditedTable(options, config.deletes === 'tombstones')
    const cutoff = await chooseCutoff(options)
    const differences = options.repair === undefined ? undefined : await readDifferences(options.repair)
    const configured = getOrThrow(createSource(config, { onNotice: io.printWarning }))
    try {
      const withMention = new Set(differences?.map(({ id }) => id))
      await useExpected(
        createVersionService(configured.env, options.stream, withMention),
        { cutoff, bucketCount, spillPath: join(tmpdir(), `feedback-audit.${randomUUID()}`) },
        async (expected) => {
          if (differences !== undefined) return writeRepair(io, configured.env, table, expected, differences, options)
          const sql = await renderStatement(table, expected, buckets)
          const text = options.json ? formatJson(describeStatement(table, expected, sql)) : sql
          await (out === undefined ? io.print(text) : writeOutputFile(out, text))
        },
      )
    } finally {
      await configured.close()
    }
    return 0
  },
})

/** The options of `feedback audit` that describe the table. */
type TableOptions = {
  readonly [K in
    | 'dialect'
    | 'loader'
    | 'deletions'
    | 'id-column'
    | 'id-type'
    | 'version-column'
    | 'version-type'
    | 'deleted-column']: string | undefined
} & { readonly stream: string; readonly table: string; readonly 'all-versions': boolean }

const toAuditedTable = (options: TableOptions, hasTombstones: boolean): AuditedTable => {
  const loader = loaders[chooseWord('loader', loaderNames, options.loader, 'airbyte')]
  const isPart = options.stream.startsWith('review_')
  return {
    dialect: chooseWord('dialect', dialectNames, options.dialect, 'duckdb'),
    name: requireTableName('table', options.table),
    idColumn: options['id-column'] ?? (isPart ? 'reviewId' : 'id'),
    idType: chooseWord('id-type', idTypes, options['id-type'], loader.idType),
    versionColumn: options['version-column'] ?? (isPart ? 'reviewModifiedTime' : 'modifiedTime'),
    versionType: chooseWord('version-type', timeTypes, options['version-type'], loader.versionType),
    deletedColumn:
      options['deleted-column'] ??
      (hasTombstones && options.stream !== 'deleted_reviews' ? loader.deletedColumn : undefined),
    deletionsName: options.deletions === undefined ? undefined : requireTableName('deletions', options.deletions),
    rows: isPart ? 'parts' : options['all-versions'] ? 'newest' : 'one',
  }
}

/** As of when the table is held against the service, in milliseconds; undefined: as of the end of the scan. */
const chooseCutoff = async ({
  stream,
  state,
  cutoff,
}: {
  readonly stream: string
  readonly state: string | undefined
  readonly cutoff: string | undefined
}): Promise<number | undefined> => {
  if (cutoff !== undefined) {
    if (!Instant.is(cutoff))
      throw usageError(`feedback audit: --cutoff must be a time such as 2026-10-01T00:00:00Z, not ${cutoff}.`)
    return toMillis(cutoff)
  }
  if (state === undefined) return undefined
  const saved = (await loadAirbyteState(state))[stream]
  if (saved === undefined)
    throw new CommandError(
      configFailure(`${state} has no state of ${stream}. Give the state of the run that loaded the table.`),
    )
  const { cursor, slack } = getOrThrow(decodeExportState(stream, O.some(saved)))
  return O.toUndefined(O.map((time: number) => time - slack)(cursor))
}

/** The statement about all buckets, or about the reviews of some. */
const renderStatement = async (
  table: AuditedTable,
  { scope, listBuckets, listReviews }: Expected,
  buckets: ReadonlyArray<number> | undefined,
): Promise<string> => {
  const sql =
    buckets === undefined
      ? bucketStatement(table, scope, await listBuckets())
      : reviewStatement(table, scope, buckets, await listReviews(buckets))
  const most = maxStatementBytes(table.dialect)
  if (sql.length <= most) return sql
  throw new CommandError(
    configFailure(
      `The statement would have ${megabytes(sql.length)} MB, and ${table.dialect} takes ${megabytes(most)}: ${scope.changedIds.length.toLocaleString('en')} reviews have changed since ${new Date(scope.cutoff).toISOString()}${buckets === undefined ? '' : `, and ${buckets.length} buckets are asked for`}. ${buckets === undefined ? 'Load the table again and give the state of that run, or use fewer --buckets' : 'Give fewer buckets with --ids'}.`,
    ),
  )
}

const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(1)

const describeStatement = (table: AuditedTable, { scope, reviews, rows }: Expected, sql: string) => ({
  stream: scope.stream,
  table: table.name,
  dialect: table.dialect,
  cutoff: new Date(scope.cutoff).toISOString(),
  reviews,
  rows,
  changed_since: scope.changedIds.length,
  buckets: scope.bucketCount,
  sql,
})

const readDifferences = async (path: string): Promise<ReadonlyArray<Difference>> => {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new CommandError(configFailure(`${path} cannot be read (${error.code ?? error.message}). Check the path.`))
  })
  const decoded = decodeDifferences(text)
  if (E.isLeft(decoded)) throw new CommandError(configFailure(`${path} ${decoded.left.message}`))
  return decoded.right
}

/** Writes the files that repair a table, and prints how they are used. */
const writeRepair = async (
  io: CommandIo,
  source: SourceEnv,
  table: AuditedTable,
  { scope, findVersions }: Expected,
  differences: ReadonlyArray<Difference>,
  {
    stream,
    state,
    folder = 'audit-repair',
  }: { readonly stream: string; readonly state: string | undefined; readonly folder: string | undefined },
): Promise<void> => {
  if (differences.length === 0) return io.printWarning('There is nothing to repair.')
  const { versions, newer } = await findVersions(differences.map(({ id }) => id))
  const given = state === undefined ? {} : await loadAirbyteState(state)
  const states =
    versions.length === 0
      ? {}
      : getOrThrow(
          rewindStates(
            given,
            { stream, together: streamsReadWith(stream), versions, newer, cutoff: scope.cutoff },
            { ...source, filters: exportFilters(source, stream), now: source.now() },
          ),
        )
  const list = Object.entries(states).map(([name, value]) => ({ stream: name, state: JSON.stringify(value) }))
  const files = {
    'delete.sql': deleteStatement(table, differences),
    'state.json': list.length === 0 ? '' : formatStateFile(list),
    'singer-state.json': list.length === 0 ? '' : `${JSON.stringify({ singer_state: { bookmarks: states } })}\n`,
  }
  await mkdir(folder, { recursive: true }).catch((error: NodeJS.ErrnoException) => {
    throw new CommandError(
      configFailure(`${folder} cannot be made (${error.code ?? error.message}). Give another --folder.`),
    )
  })
  for (const [name, text] of Object.entries(files)) if (text !== '') await writeOutputFile(join(folder, name), text)
  io.printWarning('To repair the table:')
  if (files['delete.sql'] !== '') io.printWarning(`  1. Run ${join(folder, 'delete.sql')} in the warehouse.`)
  if (list.length > 0)
    io.printWarning(
      `  ${files['delete.sql'] === '' ? 1 : 2}. Within 24 hours, start the next run from ${join(folder, 'state.json')} (Airbyte) or ${join(folder, 'singer-state.json')} (Singer, Meltano).`,
    )
}
