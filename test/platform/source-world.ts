import { existsSync, readFileSync } from 'node:fs'
import { onTestFinished } from 'vitest'
import type { Sandbox, SandboxOptions } from '../../connector/sandbox/start'
import { type Fields, parseExact, printExact } from '../support/destination'
import { expectedOfReviews } from '../support/expected-rows'
import { programPath } from '../support/program'
import { sandboxConfig, startTestSandbox } from '../support/sandbox'
import { type Connector, startContainer } from './container'
import type { ConfiguredStream, Definition, Json } from './model/connection'
import type { Verb } from './model/containers'
import { type InstalledConnection, installConnection, parseLine } from './platform'
import { obedientDestination } from './scripted'

const hour = 3_600_000

/** The lines of a command other than a sync, and its exit status. */
export const runCommand = async (
  verb: Verb,
  connector: Connector,
): Promise<{ readonly lines: ReadonlyArray<Json>; readonly status: number }> => {
  const container = startContainer({ verb, connector })
  const lines: Json[] = []
  for await (const line of container.lines) lines.push(parseExact(line) as Json)
  return { lines, status: await container.ended }
}

type Discovered = ConfiguredStream['stream'] & {
  readonly supported_sync_modes: ReadonlyArray<string>
  readonly default_cursor_field?: ReadonlyArray<string>
  readonly source_defined_primary_key: ReadonlyArray<ReadonlyArray<string>>
}

/** Each stream that discover shows, read incrementally if possible. */
export const discoverStreams = async (source: Connector): Promise<ReadonlyArray<ConfiguredStream>> => {
  const { lines } = await runCommand('discover', source)
  const found = lines.find(({ type }) => type === 'CATALOG')
  const { streams } = (found?.catalog ?? { streams: [] }) as { readonly streams: ReadonlyArray<Discovered> }
  return streams.map((stream) => {
    const isIncremental = stream.supported_sync_modes.includes('incremental')
    return {
      stream,
      sync_mode: isIncremental ? 'incremental' : 'full_refresh',
      destination_sync_mode: isIncremental ? 'append_dedup' : 'overwrite',
      primary_key: stream.source_defined_primary_key,
      cursor_field: stream.default_cursor_field ?? [],
    }
  })
}

export const asFullRefresh = (configured: ConfiguredStream): ConfiguredStream => ({
  ...configured,
  sync_mode: 'full_refresh',
  destination_sync_mode: 'overwrite',
})

export type SourceWorld = {
  readonly streams: ReadonlyArray<ConfiguredStream>
  readonly sandbox: Sandbox
  readonly source: Connector
  readonly connection: InstalledConnection
  /** Changes reviews and lets an hour pass. */
  readonly change: () => Promise<void>
  /** The rows of the service that never reached the destination. */
  readonly lost: () => Promise<ReadonlyArray<string>>
  /** The records that the destination got, by stream. */
  readonly received: (stream: string) => ReadonlyArray<Fields>
}

type WorldOptions = {
  readonly service?: SandboxOptions
  readonly config?: object
  readonly adapt?: (streams: ReadonlyArray<ConfiguredStream>) => ReadonlyArray<ConfiguredStream>
  readonly destination?: Connector & { readonly received: string }
}

const printSorted = (row: Fields): string =>
  printExact(Object.fromEntries(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1))))

/** Our source at a sandbox, connected to a destination that keeps what it gets. */
export const startSourceWorld = async (
  definition: Definition,
  { service = {}, config = {}, adapt = (streams) => streams, destination = obedientDestination() }: WorldOptions = {},
): Promise<SourceWorld> => {
  let clock = Date.now()
  const sandbox = await startTestSandbox({
    ...{ reviews: 70, years: 1, locations: 2, providers: 2, until: clock - hour },
    now: () => clock,
    ...service,
  })
  onTestFinished(() => sandbox.close())
  const source = {
    entrypoint: programPath('source-feedback'),
    config: sandboxConfig(sandbox, { page_size: 20, ...config }),
  }
  const streams = adapt(await discoverStreams(source))
  const received = (stream: string): ReadonlyArray<Fields> =>
    existsSync(destination.received)
      ? readFileSync(destination.received, 'utf8')
          .split('\n')
          .flatMap((line) => {
            const record = parseLine(line)?.record as { readonly stream: string; readonly data: Fields } | undefined
            return record?.stream === stream ? [record.data] : []
          })
      : []
  return {
    sandbox,
    source,
    streams,
    connection: installConnection({ definition, streams }, destination),
    change: async () => {
      clock += hour
      await sandbox.churn({ change: 15, delete: 4, add: 5 })
      clock += hour
    },
    received,
    lost: async () => {
      const expected = expectedOfReviews(await sandbox.truth())
      const selected = new Set(streams.map(({ stream }) => stream.name))
      return Object.entries(expected).flatMap(([stream, rows]) => {
        if (!selected.has(stream)) return []
        // Things that many reviews name carry the time of one of them.
        const isThing = rows[0]?.reviewModifiedTime === undefined && stream !== 'reviews'
        const there = new Set(
          received(stream).map(({ reviewModifiedTime, ...row }) =>
            printSorted(isThing ? row : { ...row, ...(stream === 'reviews' ? {} : { reviewModifiedTime }) }),
          ),
        )
        // Of the wordings of a question, one is sent in a run.
        const wordings = (row: Fields) => (stream === 'questions' ? rows.filter(({ id }) => id === row.id) : [row])
        return rows.flatMap((row) =>
          wordings(row).some((wording) => there.has(printSorted(wording))) ? [] : [`${stream} ${printSorted(row)}`],
        )
      })
    },
  }
}
