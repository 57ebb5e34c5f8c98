import { defineCommand, progressDelay } from '../cdk'
import { forgetInLake } from '../lake'
import { type ForgetReceipt, forgetPersons, isLakePath } from '../snapshot'
import { placeOptions, requirePlace, verbUsageError } from './options'
import { toSnapshotOptions } from './snapshot-file'
import { formatJson, formatTable } from './table'

/** The ids in an option that may be repeated and may list several ids each time. */
const readIds = (texts: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set(texts.flatMap((text) => text.split(/[,\s]/)).filter((id) => id !== '')),
]

const readReviewIds = (texts: ReadonlyArray<string>): ReadonlyArray<string> =>
  readIds(texts).map((id, index) => {
    // The message does not quote the id, because it may end up in a log.
    if (!/^-?\d{1,19}$/.test(id))
      throw verbUsageError(
        'feedback forget',
        ': --review takes ids of reviews, which are integers of at most 19 digits; ' +
          `number ${index + 1} is not one. Nothing was changed.`,
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
      : '\nNo version of the lake had any of their rows, so none was expired.\n',
    ...(orphaned_files === 0
      ? []
      : [`Removed files that killed processes left behind and no version uses: ${orphaned_files}.\n`]),
    ...(unknown_files.length === 0
      ? []
      : [
          '\nNot searched, because the lake did not write these files into its folder:\n',
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
    removed.length === 0 ? 'No table had any of their rows.\n' : tables,
    ...(lake === undefined ? [] : [formatLake(lake)]),
    ...(files.length === 0 ? [] : ['\nRewritten, with the SHA-256 of the file before and after:\n']),
    ...files.map(({ path, before, after }) => `  ${path}\n    ${before.sha256}\n    ${after.sha256}\n`),
    ...(not_searched.length === 0
      ? []
      : [`\nNot searched, because they hold no review id that is known here: ${not_searched.join(', ')}.\n`]),
    `\nNo later run brings them back into this ${lake === undefined ? 'file' : 'lake'}. ` +
      `Warehouses, captured messages and backups are not covered: see docs/erasure.md.\n`,
  ].join('')
}

export const forgetCommand = defineCommand({
  name: 'forget',
  summary: "Erases a person's reviews from a snapshot, and keeps later runs from bringing them back.",
  options: {
    ...placeOptions,
    review: {
      type: 'string',
      value: 'ID,…',
      multiple: true,
      help: 'Reviews to forget, with everything that belongs to them',
    },
    'visit-record': {
      type: 'string',
      value: 'ID,…',
      multiple: true,
      help: 'Forget every review of these visits, now and later; ID is visitRecordId as the file shows it',
    },
    exports: {
      type: 'string',
      value: 'PATH',
      multiple: true,
      help: 'Also clean this .parquet file, all of them in this folder, or this dead-letter file; may be repeated',
    },
    json: { type: 'boolean', help: 'Print the receipt as JSON' },
  },
  examples: [
    'feedback forget --db reviews.duckdb --review 9007199254742043',
    'feedback forget --db reviews.duckdb --visit-record VR-20000071 --exports parquet/ --json > receipt.json',
    'feedback forget --lake ducklake:postgres:dbname=lake --review 9007199254742043',
  ],
  notes:
    'A copy without the rows replaces the file, which needs space on the same disk. In a lake, the ' +
    'files that held the rows are rewritten, and older versions that had them expire. If it is ' +
    'stopped, run the same command again. Exit status: 0 done, even if no row was found; 75 another ' +
    'process uses the file or the lake, or the disk is full; 78 the file cannot be read or replaced.',
  run: async (io, { options }) => {
    const request = {
      reviews: readReviewIds(options.review),
      visitRecords: readIds(options['visit-record']),
      exports: options.exports,
    }
    if (request.reviews.length + request.visitRecords.length === 0)
      throw verbUsageError('feedback forget', ' needs --review or --visit-record.')
    const place = requirePlace('feedback forget', options)
    io.printProgress(`Rewriting ${options.db ?? 'the lake'}`, progressDelay)
    const forget = isLakePath(place) ? forgetInLake : forgetPersons
    const receipt = await forget(place, request, Date.now(), toSnapshotOptions(io, options))
    io.printProgress('')
    await io.print(options.json ? formatJson(receipt) : formatReceipt(receipt))
    return 0
  },
})
