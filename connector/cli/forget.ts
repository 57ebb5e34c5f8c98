import type { ServiceFeedback, ServiceVersions } from '../audit'
import { type CommandIo, defineCommand, type Failure, type Feed, flatMapFeed, progressDelay, usageError } from '../cdk'
import { compactLake, forgetInLake, type KeptVersions } from '../lake'
import { compactSnapshot, type ForgetReceipt, forgetPersons, isLakePath, readForgotten } from '../snapshot'
import { placeOptions, requirePlace } from './options'
import { toSnapshotOptions, useSnapshot } from './snapshot-file'
import { formatJson, formatTable } from './table'

export const forgottenOption = {
  type: 'string',
  value: 'PLACE',
  help: 'The DuckDB file, or the lake (ducklake:…), in which feedback forget has erased reviews: none of them is expected in the table, although the service has it',
} as const

/** Leaves out of what an audit reads of the service what was forgotten in a file, and says how much that was. */
export const withoutForgotten = async (io: CommandIo, path: string | undefined) => {
  if (path === undefined)
    return { versions: (service: ServiceVersions) => service, feedback: (service: ServiceFeedback) => service }
  const { isReview, isComment } = await useSnapshot(path, 'read', readForgotten, { lake: { env: io.env } })
  const keepRows = <Row>(rows: ReadonlyArray<Row>, isForgotten: (row: Row) => boolean, count: { left: number }) => {
    const kept = rows.filter((row) => !isForgotten(row))
    count.left += rows.length - kept.length
    return kept
  }
  /** Says it once the feed has ended. */
  async function* tell<A>(feed: Feed<Failure, A>, count: { readonly left: number }): Feed<Failure, A> {
    yield* feed
    if (count.left > 0)
      io.printWarning(
        `${count.left.toLocaleString('en')} of the rows that the service has were forgotten on purpose: they must not be in the table.`,
      )
  }
  return {
    versions: (service: ServiceVersions): ServiceVersions => {
      const count = { left: 0 }
      const versions = flatMapFeed(({ rows, ...item }: VersionItem) => [
        { ...item, rows: keepRows(rows, ({ id }) => isReview(id), count) },
      ])(service.versions)
      return { ...service, versions: tell(versions, count) }
    },
    feedback: (service: ServiceFeedback): ServiceFeedback => {
      const count = { left: 0 }
      const isForgotten = ({ id, time }: FeedbackRow) =>
        service.stream === 'comments' ? isComment(id, time) : isReview(id)
      return {
        ...service,
        rows: tell(
          flatMapFeed((rows: ReadonlyArray<FeedbackRow>) => [keepRows(rows, isForgotten, count)])(service.rows),
          count,
        ),
      }
    },
  }
}

type ItemOf<F> = F extends Feed<Failure, infer A> ? A : never
type VersionItem = ItemOf<ServiceVersions['versions']>
type FeedbackRow = ItemOf<ServiceFeedback['rows']>[number]

/** The ids of an option that may be given several times, each with several of them. */
const readIds = (texts: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set(texts.flatMap((text) => text.split(/[,\s]/)).filter((id) => id !== '')),
]

const readReviewIds = (texts: ReadonlyArray<string>): ReadonlyArray<string> =>
  readIds(texts).map((id, index) => {
    // The id itself stays out of the message, which may end in a log.
    if (!/^-?\d{1,19}$/.test(id))
      throw usageError(
        `feedback forget: --review takes ids of reviews, which are integers of at most 19 digits; number ${index + 1} is none. Nothing was changed. See feedback forget --help.`,
      )
    return String(BigInt(id))
  })

const formatLake = ({
  expired,
  removed_files,
  orphaned_files,
  unknown_files,
}: NonNullable<ForgetReceipt['lake']>): string =>
  [
    expired
      ? `\nThe older versions of the lake were expired, and ${removed_files.toLocaleString('en')} files removed.\n`
      : '\nNo version of the lake had rows of them, so none was expired.\n',
    ...(orphaned_files === 0
      ? []
      : [`Files that killed processes had left, and that no version named, were removed: ${orphaned_files}.\n`]),
    ...(unknown_files.length === 0
      ? []
      : [
          '\nNot searched, since the lake has not written these files in its folder:\n',
          ...unknown_files.map((path) => `  ${path}\n`),
        ]),
  ].join('')

const formatReceipt = ({ time, asked, removed, files, not_searched, lake }: ForgetReceipt): string => {
  const people = [...asked.reviews, ...asked.visit_records]
  const tables = formatTable(
    ['table', 'rows', 'older versions'],
    removed.map(({ table, rows, versions }) => [table, rows.toLocaleString('en'), versions.toLocaleString('en')]),
  )
  return [
    `Forgotten at ${time}, by SHA-256 of the id:\n${people.map((hash) => `  ${hash}\n`).join('')}\n`,
    removed.length === 0 ? 'No table had rows of them.\n' : tables,
    ...(lake === undefined ? [] : [formatLake(lake)]),
    ...(files.length === 0 ? [] : ['\nRewritten, with the SHA-256 of the file before and after:\n']),
    ...files.map(({ path, before, after }) => `  ${path}\n    ${before.sha256}\n    ${after.sha256}\n`),
    ...(not_searched.length === 0
      ? []
      : [`\nNot searched, since no id of a review that is known here is in them: ${not_searched.join(', ')}.\n`]),
    `\nNo later run brings them back into this ${lake === undefined ? 'file' : 'lake'}. Warehouses, captured messages and backups are not reached: docs/erasure.md.\n`,
  ].join('')
}

export const forgetCommand = defineCommand({
  name: 'forget',
  summary: 'Erases what a snapshot holds of a person, and keeps later runs from bringing it back.',
  options: {
    ...placeOptions,
    review: {
      type: 'string',
      value: 'ID,…',
      multiple: true,
      help: 'The reviews to forget, with all that belongs to them',
    },
    'visit-record': {
      type: 'string',
      value: 'ID,…',
      multiple: true,
      help: 'Forget every review that names one of these visits, now or later, as the file shows visitRecordId',
    },
    exports: {
      type: 'string',
      value: 'PATH',
      multiple: true,
      help: 'Also clean this Parquet file (its name ends in .parquet), all those in this folder, or this file of dead letters; may be given several times',
    },
    json: { type: 'boolean', help: 'Print the receipt as JSON' },
  },
  examples: [
    'feedback forget --db reviews.duckdb --review 9007199254742043',
    'feedback forget --db reviews.duckdb --visit-record VR-20000071 --exports parquet/ --json > receipt.json',
    'feedback forget --lake ducklake:postgres:dbname=lake --review 9007199254742043',
  ],
  notes:
    'The file is rewritten without the rows, which needs its size on the same disk, and takes the place of the old one at once. In a lake, the files that held the rows are written anew, and older versions that had them are expired. Stopped at any moment, the same command finishes. Exit status: 0 it is done, also where no row was found; 75 another process uses the file or the lake, or the disk is full; 78 the file cannot be read or replaced.',
  run: async (io, { options }) => {
    const request = {
      reviews: readReviewIds(options.review),
      visitRecords: readIds(options['visit-record']),
      exports: options.exports,
    }
    if (request.reviews.length + request.visitRecords.length === 0)
      throw usageError('feedback forget needs --review or --visit-record. See feedback forget --help.')
    const place = requirePlace('feedback forget', options)
    io.printProgress(`Rewriting ${options.db ?? 'the lake'}`, progressDelay)
    const forget = isLakePath(place) ? forgetInLake : forgetPersons
    const receipt = await forget(place, request, Date.now(), toSnapshotOptions(io, options))
    io.printProgress('')
    await io.print(options.json ? formatJson(receipt) : formatReceipt(receipt))
    return 0
  },
})

const formatSize = (bytes: number): string => `${(bytes / 1e6).toLocaleString('en', { maximumFractionDigits: 1 })} MB`

const describeSizes = (path: string, before: number, after: number): string => {
  return after < before
    ? `${path}: ${formatSize(before)}, now ${formatSize(after)}\n`
    : `${path} has no place to give back: ${formatSize(before)}. It was not changed.\n`
}

/** What `--keep` asks for. */
const toKeptVersions = (text = 'newest'): KeptVersions => {
  if (text === 'newest' || text === 'all') return text
  const [, days] = /^(\d{1,5})d$/.exec(text) ?? []
  if (days === undefined)
    throw usageError(
      `--keep must be newest, all or a number of days such as 30d, not ${text}. See feedback compact --help.`,
    )
  return { days: Number(days) }
}

export const compactCommand = defineCommand({
  name: 'compact',
  summary: 'Rewrites a snapshot or a lake, so that it takes no more room than it needs.',
  options: {
    ...placeOptions,
    keep: {
      type: 'string',
      value: 'VERSIONS',
      help: 'With --lake: the versions of rows that stay: newest, all, or 30d for those of the last 30 days; newest if left out',
    },
    json: { type: 'boolean', help: 'Print the sizes as JSON' },
  },
  examples: [
    'feedback compact --db reviews.duckdb',
    'feedback compact --lake ducklake:postgres:dbname=lake --keep 30d',
  ],
  notes:
    'The new file is compared with the old one, table by table, and takes its place at once; until then it needs its size on the same disk. In a lake, versions of rows are removed and small files joined, and AT (VERSION => …) reaches back to here; no run may write meanwhile, and queries of older versions fail. Exit status: 0, 75 another process uses the file or the lake, or the disk is full, 78 it cannot be read or replaced.',
  run: async (io, { options }) => {
    const place = requirePlace('feedback compact', options)
    const opening = toSnapshotOptions(io, options)
    if (isLakePath(place)) {
      const compaction = await compactLake(place, toKeptVersions(options.keep), opening)
      const { removed_versions: removed, before, after } = compaction
      const text = `${removed.toLocaleString('en')} versions of rows removed; ${before.files} files of ${formatSize(before.bytes)}, now ${after.files} of ${formatSize(after.bytes)}\n`
      await io.print(options.json ? formatJson(compaction) : text)
      return 0
    }
    if (options.keep !== undefined)
      throw usageError('feedback compact: --keep belongs to --lake. See feedback compact --help.')
    const { before, after } = await compactSnapshot(place, opening)
    await io.print(options.json ? formatJson({ before, after }) : describeSizes(place, before, after))
    return 0
  },
})
