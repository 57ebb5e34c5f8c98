import { command, misused, orTrouble } from '../cdk/cli'
import { diff as difference, isSame, type StreamDifference } from '../snapshot/diff'
import { columns } from './columns'
import { withSnapshot } from './db-option'

export const diff = command({
  name: 'diff',
  summary: 'Tells what differs between two snapshots.',
  operands: 'A.duckdb B.duckdb',
  options: { json: { type: 'boolean', help: 'Print the differences as JSON' } },
  examples: ['feedback diff yesterday.duckdb today.duckdb'],
  notes:
    'Per stream: rows, columns and their types, and the first values that differ. Exit status: 0 they are the same, 1 they differ, 2 they could not be compared.',
  run: async (io, { options, positionals }) => {
    const [a, b, ...more] = positionals
    if (a === undefined || b === undefined || more.length > 0)
      throw misused('feedback diff wants two files. See feedback diff --help.')
    return orTrouble(async () => {
      await withSnapshot(b, 'read', async () => undefined)
      const streams = await withSnapshot(a, 'read', (snapshot) => difference(snapshot, b))
      await io.print(options.json === true ? `${JSON.stringify(streams, null, 2)}\n` : report(streams))
      return streams.every(isSame) ? 0 : 1
    })
  },
})

const count = (rows: number | null): string => (rows === null ? 'none' : rows.toLocaleString('en'))

const report = (streams: ReadonlyArray<StreamDifference>): string => {
  const table = columns(
    ['stream', 'rows in A', 'rows in B', 'only in A', 'only in B', 'changed'],
    streams.map(({ stream, a, b, onlyA, onlyB, changed }) => [stream, ...[a, b, onlyA, onlyB, changed].map(count)]),
  )
  const types = streams.flatMap(({ stream, columns }) =>
    columns.map(({ column, a, b }) => `${stream}.${column}: ${a ?? 'not in A'}, ${b ?? 'not in B'}\n`),
  )
  const values = streams.flatMap(({ stream, values }) =>
    values.map(({ key, column, a, b }) => `${stream} ${key}, ${column}: ${shown(a)} in A, ${shown(b)} in B\n`),
  )
  const verdict = streams.every(isSame) ? 'They are the same.' : 'They differ.'
  return [
    table,
    ...(types.length > 0 ? ['\n', ...types] : []),
    ...(values.length > 0 ? ['\n', ...values] : []),
    `\n${verdict}\n`,
  ].join('')
}

const shownWidth = 80

const shown = (value: string | null): string =>
  value === null ? 'null' : value.length > shownWidth ? `${value.slice(0, shownWidth - 1)}…` : value
