import * as E from 'fp-ts/Either'
import { Instant, toMillis } from '../api'
import {
  type AuditedContent,
  type AuditedLoad,
  type AuditedTable,
  auditWindows,
  chooseContent,
  dialectNames,
  idTypes,
  isFeedbackBucket,
  isTableName,
  loaderNames,
  timeTypes,
  toAuditedTable,
} from '../audit'
import {
  type Command,
  CommandError,
  configFailure,
  defineCommand,
  defined,
  getOrThrow,
  mapDefined,
  type SourceState,
  usageError,
} from '../cdk'
import { auditedDimensions, auditedFeedbackStreams, auditedStreams, type ConfiguredSource, planAudit } from '../runtime'
import { isLookupStream, type SourceEnv } from '../streams'
import { answerCommand, answerOption } from './audit-answer'
import { auditDimensions, auditFeedback, auditVersions, readStates } from './audit-run'
import { loadSourceConfig, openSource } from './configured-source'
import { forgottenOption } from './forgotten'
import { configOption, readTimeZone, readWord, verbUsageError } from './options'
import { refuseDatabaseAsOutput } from './output-file'

const defaultBuckets = 4096
const allStreams = [...auditedStreams, ...auditedFeedbackStreams, ...auditedDimensions]

const chooseWord = <A extends string>(option: string, words: ReadonlyArray<A>, text: string | undefined) =>
  readWord('feedback audit', option, words, text)

const requireTableName = (option: string, text: string): string => {
  if (isTableName(text)) return text
  throw verbUsageError(
    'feedback audit',
    `: --${option} must be the name of a table in SQL, such as public.reviews, not ${text}.`,
  )
}

const readWholeNumber = (option: string, text: string, least: number, most: number): number => {
  const value = /^\d{1,7}$/.test(text) ? Number(text) : Number.NaN
  if (value >= least && value <= most) return value
  throw usageError(`feedback audit: --${option} must be a whole number from ${least} to ${most}, not ${text}.`)
}

const requireFeedbackBucket = (text: string): string => {
  if (isFeedbackBucket(text)) return text
  throw usageError(`feedback audit: --ids must be buckets of the answer, such as location:1034/2026-03, not ${text}.`)
}

const statementCommand = defineCommand({
  name: 'audit',
  summary: 'Prints SQL that compares a table of your warehouse with the service, row by row, without moving data.',
  options: {
    config: configOption,
    stream: {
      type: 'string',
      value: 'NAME',
      help: `The stream that the table was loaded from: ${allStreams.join(', ')}`,
      required: true,
    },
    table: {
      type: 'string',
      value: 'TABLE',
      help: 'The name of the table in SQL, such as public.reviews',
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
      help:
        `What wrote the table: ${loaderNames.join(', ')}; default airbyte. It ` +
        'decides the types of the columns and which rows are marked as deleted',
    },
    state: {
      type: 'string',
      value: 'FILE',
      help: 'The state of the last load; the comparison is as of the time that it reached',
    },
    cutoff: { type: 'string', value: 'TIME', help: 'Compare as of this time instead; without both, as of now' },
    deletions: {
      type: 'string',
      value: 'TABLE',
      help: 'The table of deleted_reviews, if the reviews it names are still in the table',
    },
    'all-versions': {
      type: 'boolean',
      help: 'The table keeps every version of a review (append): the newest counts, and older ones are fine',
    },
    deep: { type: 'boolean', help: 'Compare the content of each row too, not only its id and version' },
    without: {
      type: 'string',
      value: 'NAME,…',
      help:
        'With --deep: skip these columns, or members such as location.name, which the table lacks or stores ' +
        'differently',
    },
    buckets: { type: 'string', value: 'N', help: `Number of buckets of ids, default ${defaultBuckets}` },
    ids: {
      type: 'string',
      value: 'BUCKET,…',
      help: 'Print the statement that lists the differences in these buckets',
    },
    forgotten: forgottenOption,
    window: {
      type: 'string',
      value: 'WINDOW',
      help:
        `For ${auditedFeedbackStreams.join(' and ')}: a bucket is ` +
        `an entity and a ${auditWindows.join(' or a ')}, default month`,
    },
    'id-column': { type: 'string', value: 'NAME', help: "The column of the review's id" },
    'id-type': { type: 'string', value: 'TYPE', help: `The type of that column: ${idTypes.join(', ')}` },
    'version-column': { type: 'string', value: 'NAME', help: "The column of the review's modification time" },
    'version-type': {
      type: 'string',
      value: 'TYPE',
      help:
        `The type of that column: ${timeTypes.join(', ')}; timestamp ` +
        'has no zone, text is ISO 8601, millis counts from 1970',
    },
    'time-zone': {
      type: 'string',
      value: 'ZONE',
      help: 'The zone of times without one, default UTC; target-postgres writes them in the zone of the server',
    },
    'deleted-column': {
      type: 'string',
      value: 'NAME',
      help: 'The column that marks deleted rows; default that of the loader, if the config has deletes: tombstones',
    },
    repair: {
      type: 'string',
      value: 'FILE',
      help:
        'Instead of a statement, write repair files into --folder for the rows in FILE: the answer of an --ids ' +
        'statement, as CSV or JSON',
    },
    folder: { type: 'string', value: 'FOLDER', help: 'Where --repair writes its files; default audit-repair' },
    seed: {
      type: 'string',
      value: 'FILE',
      help: 'Instead of a statement, write a seed for the tests of the dbt package',
    },
    out: { type: 'string', value: 'FILE', help: 'Write the statement into this file; stdout if left out' },
    json: { type: 'boolean', help: 'Print the statement with the cutoff and the numbers of reviews and rows, as JSON' },
  },
  examples: [
    'feedback audit --config config.json --stream reviews --dialect postgres --table public.reviews > audit.sql',
    'feedback audit --config config.json --stream reviews --dialect snowflake ' +
      '--loader airbyte --table RAW.FEEDBACK.REVIEWS --state state.json',
    'feedback audit --config config.json --stream reviews --dialect postgres --table public.reviews --ids 17,2048',
    'feedback audit --config config.json --stream reviews --dialect ' +
      'postgres --table public.reviews --deep --without brand',
    'feedback audit --answer answer.csv',
    'feedback audit --config config.json --stream reviews --dialect postgres ' +
      '--table public.reviews --repair answer.csv --folder repair --state state.json',
  ],
  notes:
    'Reads the ids and versions of all reviews, or the ids and times of the feedback of every ' +
    'entity, and sends nothing to the warehouse. Run the statement there: no rows mean that the ' +
    'table equals the service as of the time that it names. Exit status: 0 the statement was ' +
    'printed, 75 or 78 the service could not be read; with --answer: 0 the table equals the ' +
    'service, 1 it differs, 78 the file is not an answer.',
  run: async (io, { options }) => {
    chooseWord('stream', allStreams, options.stream)
    if (options.state !== undefined && options.cutoff !== undefined)
      throw verbUsageError('feedback audit', ' takes --state or --cutoff, not both.')
    if (options.cutoff !== undefined && !Instant.is(options.cutoff))
      throw usageError(`feedback audit: --cutoff must be a time such as 2026-10-01T00:00:00Z, not ${options.cutoff}.`)
    const isFeedback = auditedFeedbackStreams.includes(options.stream)
    const bucketCount = readWholeNumber('buckets', options.buckets ?? String(defaultBuckets), 1, 16_384)
    const names = options.ids?.split(',').map((text) => text.trim())
    const groups = isFeedback ? names?.map(requireFeedbackBucket) : undefined
    const buckets = isFeedback ? undefined : names?.map((text) => readWholeNumber('ids', text, 0, bucketCount - 1))
    const window = chooseWord('window', auditWindows, options.window) ?? 'month'
    for (const file of [options.out, options.seed])
      if (file !== undefined) await refuseDatabaseAsOutput(file, undefined)
    const config = await loadSourceConfig(io, options.config)
    if (config.partition !== undefined)
      throw new CommandError(
        configFailure(
          'The config has partition, which is a share of the reviews. Leave it out to audit the whole table.',
        ),
      )
    if (options.repair !== undefined && names !== undefined)
      throw verbUsageError('feedback audit', ' takes --repair or --ids, not both.')
    const isDimension = auditedDimensions.includes(options.stream)
    if (options.deep && (isFeedback || isDimension))
      throw usageError(`feedback audit: --deep compares the rows of reviews, not those of ${options.stream}.`)
    if (isDimension && names !== undefined)
      throw usageError(`feedback audit: the statement about ${options.stream} names what differs; leave out --ids.`)
    const hasOther = names !== undefined || options.repair !== undefined || options.deep || isFeedback || isDimension
    if (options.seed !== undefined && hasOther)
      throw usageError('feedback audit: --seed needs a stream made from reviews, without --ids, --repair and --deep.')
    const plain = readTable(options, config.deletes === 'tombstones')
    const configured = openSource(io, config)
    try {
      const states = await readStates(options, configured.service)
      const content = readContent(options, configured.streams)
      const table = { ...plain, ...defined({ content }) }
      if (isFeedback) await auditFeedback(io, configured.env, table, { ...options, states, window, buckets: groups })
      else if (isDimension) {
        const attributes = listDimensionAttributes(options.stream, configured)
        const load = planLoad(configured.env, options, states)
        await auditDimensions(io, configured.env, table, { ...options, states, attributes, load })
      } else {
        const load = planLoad(configured.env, options, states)
        await auditVersions(io, configured.env, table, { ...options, states, bucketCount, buckets, load })
      }
    } finally {
      await configured.close()
    }
    return 0
  },
})

/** An answer is read without a service, so it needs none of a statement's options. */
export const auditCommand: Command = {
  ...statementCommand,
  options: { ...statementCommand.options, answer: answerOption },
  run: (io, program, args) =>
    (args.some((arg) => /^--answer(?:=|$)/.test(arg)) ? answerCommand : statementCommand).run(io, program, args),
}

/** The options that describe the table. */
type TableOptions = Readonly<
  Record<
    | 'dialect'
    | 'loader'
    | 'deletions'
    | 'time-zone'
    | 'id-column'
    | 'id-type'
    | 'version-column'
    | 'version-type'
    | 'deleted-column',
    string | undefined
  >
> & { readonly stream: string; readonly table: string; readonly 'all-versions': boolean }

const readTable = (options: TableOptions, hasTombstones: boolean): AuditedTable =>
  toAuditedTable(options.stream, chooseWord('loader', loaderNames, options.loader) ?? 'airbyte', {
    dialect: chooseWord('dialect', dialectNames, options.dialect) ?? 'duckdb',
    name: requireTableName('table', options.table),
    hasTombstones,
    keepsVersions: options['all-versions'],
    ...defined({
      idColumn: options['id-column'],
      idType: chooseWord('id-type', idTypes, options['id-type']),
      versionColumn: options['version-column'],
      versionType: chooseWord('version-type', timeTypes, options['version-type']),
      deletedColumn: options['deleted-column'],
      timeZone: mapDefined(options['time-zone'], readTimeZone),
      deletionsName: mapDefined(options.deletions, (text) => requireTableName('deletions', text)),
    }),
  })

/** The content of a row to compare; undefined for none. */
const readContent = (
  { stream, deep, without }: { readonly stream: string; readonly deep: boolean; readonly without: string | undefined },
  streams: ConfiguredSource['streams'],
): AuditedContent | undefined => {
  const configured = streams.find(({ name }) => deep && name === stream)
  const names = without?.split(',').map((name) => name.trim()) ?? []
  const chosen = configured === undefined ? E.right(undefined) : chooseContent(configured, names)
  if (E.isRight(chosen) && (deep || names.length === 0)) return chosen.right
  throw verbUsageError('feedback audit', `: --without ${E.isLeft(chosen) ? `must be ${chosen.left}` : 'needs --deep'}.`)
}

/**
 * The attributes of a dimension that are compared beside its key. Rejects a dimension that does not come from reviews.
 */
const listDimensionAttributes = (name: string, { env, streams }: ConfiguredSource): ReadonlyArray<string> => {
  const stream = streams.find((other) => other.name === name)
  if (stream === undefined || isLookupStream(stream) || (name === 'sources' && env.sourceLookup !== undefined))
    throw new CommandError(
      configFailure(
        `${name} comes from the lookup of the config, and each run reads the whole list: ` +
          'refresh the stream to repair it. An audit compares what comes from reviews.',
      ),
    )
  return ['name', 'npi'].filter((attribute) => attribute in ((stream.schema.properties ?? {}) as object))
}

/** The load that the table is compared after. */
const planLoad = (
  source: SourceEnv,
  { stream, cutoff }: { readonly stream: string; readonly cutoff: string | undefined },
  states: SourceState | undefined,
): AuditedLoad => {
  if (cutoff !== undefined) return { cutoff: toMillis(cutoff) }
  return states === undefined ? { cutoff: undefined } : getOrThrow(planAudit(source, stream, states))
}
