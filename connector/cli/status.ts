import { defineCommand, usageError } from '../cdk'
import { listOpenShares } from '../lake'
import { quoteIdentifier, type Snapshot } from '../snapshot'
import { readPlaceOptions, selectOption } from './options'
import { usePlace } from './snapshot-file'
import { formatJson, formatTable } from './table'

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 }
const defaultMaxAge = '26h'

/** The seconds of a duration such as 90m; undefined for anything else. */
const parseDuration = (text: string): number | undefined => {
  const [, count, unit = ''] = /^(\d+)([smhd])$/.exec(text) ?? []
  return count === undefined ? undefined : Number(count) * (unitSeconds[unit] ?? 1)
}

type StreamStatus = {
  readonly stream: string
  readonly ok: boolean
  /** When the stream's last complete load ended, in ISO 8601; null if none is complete. */
  readonly last_complete: string | null
  readonly age_seconds: number | null
  readonly last_status: string
  readonly rows: number
  /** The start_date in its state, in ISO 8601; null for a stream without one. */
  readonly read_since: string | null
  /** Undefined if nothing is wrong. */
  readonly problem?: string
}

export const statusCommand = defineCommand({
  name: 'status',
  summary: 'Checks that every stream of a snapshot was read recently, for a monitor.',
  options: {
    ...readPlaceOptions,
    'max-age': {
      type: 'string',
      value: 'TIME',
      help: `The longest time since a stream's last complete load: 90m, 26h, 2d; default ${defaultMaxAge}`,
    },
    select: { ...selectOption, help: 'Only these streams; every stream of the file if left out' },
    json: { type: 'boolean', help: 'Print the answer as JSON' },
  },
  examples: ['feedback status --db reviews.duckdb', 'feedback status --db reviews.duckdb --max-age 90m --json'],
  notes:
    "Exit status: 0 every stream's last load is complete and not older, 1 one is not, or nothing " +
    'was ever loaded, 75 the file is in use (a run is writing it), 78 it cannot be read.',
  run: async (io, { options }) => {
    const maxAge = parseDuration(options['max-age'] ?? defaultMaxAge)
    if (maxAge === undefined)
      throw usageError(
        '--max-age must be a number with s, m, h or d, such as 26h, ' +
          `not ${options['max-age']}. See feedback status --help.`,
      )
    const selected = options.select?.split(',').map((name) => name.trim())
    const streams = await usePlace(io, 'feedback status', options, 'read', (snapshot) =>
      readStatus(snapshot, { maxAge, selected, now: Date.now() }),
    )
    const ok = streams.length > 0 && streams.every((stream) => stream.ok)
    await io.print(
      options.json
        ? formatJson({ ok, max_age_seconds: maxAge, streams })
        : formatStatus(ok, streams, options.db ?? 'The lake'),
    )
    return ok ? 0 : 1
  },
})

type StatusRequest = {
  readonly maxAge: number
  readonly selected: ReadonlyArray<string> | undefined
  readonly now: number
}

const readStatus = async (
  { db }: Snapshot,
  { maxAge, selected, now }: StatusRequest,
): Promise<ReadonlyArray<StreamStatus>> => {
  const rows = await db.query(`
    SELECT stream, any_value(streams.rows) AS rows, arg_max(loads.status, load) AS status,
      epoch_ms(max(ended) FILTER (loads.status = 'complete')) AS ended, any_value(state->>'$.startDate') AS since
    FROM _streams AS streams LEFT JOIN _loads AS loads USING (stream) LEFT JOIN _state USING (stream)
    GROUP BY stream ORDER BY stream`)
  const openShares = db.lake === undefined ? new Map<string, string>() : await listOpenShares({ db })
  // Counting the rows of a lake would take too long.
  const countRows = (stream: string) => db.scalar(`SELECT count(*) FROM ${quoteIdentifier(stream)}`)
  const counts = await Promise.all(rows.map(({ stream, rows: count }) => count ?? countRows(String(stream))))
  const known = rows.map(({ stream, status, ended, since }, i): StreamStatus => {
    const age = ended === null || ended === undefined ? null : Math.max(0, Math.round((now - Number(ended)) / 1_000))
    const lastStatus = String(status ?? 'never loaded')
    const shares = openShares.get(String(stream))
    // A running sync locks its file, so a load in a file that seems to be running was killed. A lake is not locked.
    const mayRun = db.lake !== undefined && lastStatus === 'running'
    const problem = shares ?? findProblem(mayRun ? 'complete' : lastStatus, age, maxAge)
    return {
      stream: String(stream),
      ok: problem === undefined,
      last_complete: age === null ? null : new Date(Number(ended)).toISOString(),
      age_seconds: age,
      last_status: lastStatus,
      rows: Number(counts[i]),
      read_since: since === null || since === undefined ? null : String(since),
      ...(problem === undefined ? {} : { problem }),
    }
  })
  if (selected === undefined) return known
  return selected.map((name) => known.find(({ stream }) => stream === name) ?? missingStream(name))
}

const missingStream = (stream: string): StreamStatus => ({
  stream,
  ok: false,
  last_complete: null,
  age_seconds: null,
  last_status: 'never loaded',
  rows: 0,
  read_since: null,
  problem: 'was never loaded',
})

const findProblem = (status: string, age: number | null, maxAge: number): string | undefined => {
  if (age === null) return 'has no complete load'
  if (age > maxAge) return `was last complete ${formatAge(age)} ago`
  return status === 'complete' ? undefined : 'has an incomplete last load'
}

const formatAge = (seconds: number): string => {
  if (seconds >= 2 * 86_400) return `${Math.floor(seconds / 86_400)} days`
  if (seconds >= 7_200) return `${Math.floor(seconds / 3_600)} hours`
  return seconds >= 120 ? `${Math.floor(seconds / 60)} minutes` : `${seconds} seconds`
}

const formatStatus = (ok: boolean, streams: ReadonlyArray<StreamStatus>, path: string): string => {
  if (streams.length === 0) return `${path} holds no stream yet.\n`
  const table = formatTable(
    ['stream', 'last complete', 'age', 'last load', 'rows', 'read since'],
    streams.map((stream) => [
      stream.stream,
      stream.last_complete ?? 'never',
      stream.age_seconds === null ? '' : formatAge(stream.age_seconds),
      stream.last_status,
      stream.rows.toLocaleString('en'),
      stream.read_since ?? '',
    ]),
  )
  const problems = streams.flatMap(({ stream, problem }) => (problem === undefined ? [] : [`${stream} ${problem}.\n`]))
  const verdict = ok
    ? 'Every stream is up to date.\n'
    : `${problems.join('')}Run feedback sync, and check what should have started it.\n`
  return `${table}\n${verdict}`
}
