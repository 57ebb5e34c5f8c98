import { parseExactJson } from '../json/exact'
import type { JsonSchema } from '../schema'
import { listOf, membersOf } from './differences'

/** A stream as a catalog or a SCHEMA declares it. */
export type DeclaredStream = {
  readonly name: string
  readonly schema: JsonSchema
  readonly key: ReadonlyArray<string>
  readonly isIncremental: boolean
}

/** A line of stdout, in either protocol. */
export type RunEvent =
  | { readonly type: 'schema'; readonly stream: DeclaredStream }
  | { readonly type: 'record'; readonly stream: string; readonly record: Readonly<Record<string, unknown>> }
  /** Without a stream, it is the state of all streams. `count`: how many records it claims to cover. */
  | { readonly type: 'state'; readonly stream: string | undefined; readonly state: unknown; readonly count?: number }
  | { readonly type: 'status'; readonly stream: string; readonly status: string }
  | { readonly type: 'error'; readonly message: string }
  | { readonly type: 'other' }
  | { readonly type: 'unreadable' }

/** How to run a source in one of the two protocols and interpret its output. */
type TestedProtocol = {
  readonly discoverArgs: ReadonlyArray<string>
  readonly readCatalog: (stdout: string) => ReadonlyArray<DeclaredStream>
  /** The arguments and files for reading all streams. */
  readonly readArgs: ReadonlyArray<string>
  readonly configure: (stdout: string) => Readonly<Record<string, unknown>>
  readonly readLine: (line: string) => RunEvent
  /** The state for the next run: the last one of each stream, or the given one if there was none. */
  readonly joinStates: (states: ReadonlyMap<string | undefined, unknown>, given: unknown) => unknown
  /** Streams are declared only in a catalog, and announce their start and end. */
  readonly hasStatuses: boolean
}

const parseLine = (line: string): Readonly<Record<string, unknown>> => {
  try {
    return membersOf(parseExactJson(line))
  } catch {
    return {}
  }
}

const streamNameOf = (value: unknown): string => String(membersOf(membersOf(value).stream_descriptor).name)

const readAirbyteLine = (line: string): RunEvent => {
  const { type, record, state, trace } = parseLine(line)
  const { stream_status, error } = membersOf(trace)
  if (type === 'RECORD') {
    const { stream, data } = membersOf(record)
    return typeof stream === 'string' ? { type: 'record', stream, record: membersOf(data) } : { type: 'unreadable' }
  }
  if (type === 'STATE') {
    const { stream, sourceStats } = membersOf(state)
    const { recordCount } = membersOf(sourceStats)
    const count = typeof recordCount === 'number' ? { count: recordCount } : {}
    return { type: 'state', stream: streamNameOf(stream), state, ...count }
  }
  if (type === 'TRACE' && stream_status !== undefined)
    return { type: 'status', stream: streamNameOf(stream_status), status: String(membersOf(stream_status).status) }
  if (type === 'TRACE' && error !== undefined) return { type: 'error', message: String(membersOf(error).message) }
  return { type: type === 'TRACE' || type === 'LOG' ? 'other' : 'unreadable' }
}

const readSingerLine = (line: string): RunEvent => {
  const { type, stream, record, value, ...schema } = parseLine(line)
  if (type === 'SCHEMA') return { type: 'schema', stream: readSingerStream({ ...schema, stream }) }
  if (type === 'RECORD' && typeof stream === 'string') return { type: 'record', stream, record: membersOf(record) }
  if (type === 'STATE') return { type: 'state', stream: undefined, state: value }
  return { type: type === 'ACTIVATE_VERSION' ? 'other' : 'unreadable' }
}

const readSingerStream = (value: unknown): DeclaredStream => {
  const { stream, schema, key_properties } = membersOf(value)
  return {
    name: String(stream),
    schema: membersOf(schema),
    key: listOf(key_properties).map(String),
    isIncremental: true,
  }
}

const readAirbyteStream = (value: unknown): DeclaredStream => {
  const { name, json_schema, source_defined_primary_key, supported_sync_modes } = membersOf(value)
  return {
    name: String(name),
    schema: membersOf(json_schema),
    // The path has one step, because the kit's keys are attributes of the record.
    key: listOf(source_defined_primary_key).map((path) => String(listOf(path)[0])),
    isIncremental: listOf(supported_sync_modes).includes('incremental'),
  }
}

const airbyteStreams = (stdout: string): ReadonlyArray<unknown> =>
  stdout.split('\n').flatMap((line) => listOf(membersOf(parseLine(line).catalog).streams))

export const testedProtocols = {
  airbyte: {
    discoverArgs: ['discover'],
    readCatalog: (stdout) => airbyteStreams(stdout).map(readAirbyteStream),
    readArgs: ['read'],
    configure: (stdout) => ({
      catalog: {
        streams: airbyteStreams(stdout).map((stream) => ({
          stream,
          sync_mode: readAirbyteStream(stream).isIncremental ? 'incremental' : 'full_refresh',
          destination_sync_mode: 'append',
        })),
      },
    }),
    readLine: readAirbyteLine,
    joinStates: (states, given) => [
      ...listOf(given).filter((state) => !states.has(streamNameOf(membersOf(state).stream))),
      ...states.values(),
    ],
    hasStatuses: true,
  },
  singer: {
    discoverArgs: ['--discover'],
    readCatalog: (stdout) => listOf(parseLine(stdout).streams).map(readSingerStream),
    readArgs: [],
    configure: (stdout) => ({ catalog: parseLine(stdout) }),
    readLine: readSingerLine,
    joinStates: (states, given) => states.get(undefined) ?? given,
    hasStatuses: false,
  },
} as const satisfies Readonly<Record<string, TestedProtocol>>
