import { defineCommand, progressDelay } from '../cdk'
import { diffVersions } from '../lake'
import { shortenText } from '../report'
import { diffSnapshots, isIdentical, type StreamDifference } from '../snapshot'
import { fileOptions, placeOptions, requirePlace, toVersion, verbUsageError } from './options'
import { toSnapshotOptions, useSnapshot } from './snapshot-file'
import { formatJson, formatTable } from './table'

const maxValueWidth = 80

export const diffCommand = defineCommand({
  name: 'diff',
  summary: 'Shows the differences between two snapshots, or between two versions of a lake.',
  operands: 'A.duckdb B.duckdb | VERSION VERSION',
  options: {
    lake: { ...placeOptions.lake, help: 'A DuckLake; compares its versions with these numbers' },
    extensions: placeOptions.extensions,
    ...fileOptions,
    json: { type: 'boolean', help: 'Print the differences as JSON' },
  },
  examples: ['feedback diff yesterday.duckdb today.duckdb', 'feedback diff --lake ducklake:postgres:dbname=lake 12 15'],
  notes:
    'For each stream: rows, columns and their types, and the first values that differ. ' +
    'Exit status: 0 they are the same, 1 they differ, 75 or 78 they could not be compared.',
  run: async (io, { options, positionals }) => {
    const [a, b, ...others] = positionals
    if (a === undefined || b === undefined || others.length > 0)
      throw verbUsageError('feedback diff', ' needs two files, or --lake and two versions.')
    const opening = toSnapshotOptions(io, options)
    const onStream = (stream: string) => io.printProgress(stream, progressDelay)
    // Opening B first makes a missing or foreign file fail under its own name.
    if (options.lake === undefined) await useSnapshot(b, 'read', async () => undefined, opening)
    const streams =
      options.lake === undefined
        ? await useSnapshot(a, 'read', (snapshot) => diffSnapshots(snapshot, b, onStream), opening)
        : await useSnapshot(
            requirePlace('feedback diff', { ...options, db: undefined }),
            'read',
            (snapshot) => diffVersions(snapshot, [toVersion('VERSION', a), toVersion('VERSION', b)], onStream),
            opening,
          )
    io.printProgress('')
    await io.print(options.json ? formatJson(streams) : formatDifferences(streams))
    return streams.every(isIdentical) ? 0 : 1
  },
})

const formatCount = (rows: number | null): string => (rows === null ? 'none' : rows.toLocaleString('en'))
const formatValue = (value: string | null): string => (value === null ? 'null' : shortenText(value, maxValueWidth))
const formatDifferences = (streams: ReadonlyArray<StreamDifference>): string => {
  const table = formatTable(
    ['stream', 'rows in A', 'rows in B', 'only in A', 'only in B', 'changed'],
    streams.map(({ stream, a, b, onlyA, onlyB, changed }) => [
      stream,
      ...[a, b, onlyA, onlyB, changed].map(formatCount),
    ]),
  )
  const types = streams.flatMap(({ stream, columns }) =>
    columns.map(({ column, a, b }) => `${stream}.${column}: ${a ?? 'not in A'}, ${b ?? 'not in B'}\n`),
  )
  const values = streams.flatMap(({ stream, values }) =>
    values.map(
      ({ key, column, a, b }) => `${stream} ${key}, ${column}: ${formatValue(a)} in A, ${formatValue(b)} in B\n`,
    ),
  )
  const verdict = streams.every(isIdentical) ? 'They are the same.' : 'They differ.'
  return [
    table,
    ...(types.length > 0 ? ['\n', ...types] : []),
    ...(values.length > 0 ? ['\n', ...values] : []),
    `\n${verdict}\n`,
  ].join('')
}
