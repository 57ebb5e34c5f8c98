import type { JsonSchema } from '../../connector/cdk/schema'

type Data = Readonly<Record<string, unknown>>

export type AirbyteStream = {
  readonly name: string
  readonly json_schema: JsonSchema
  readonly supported_sync_modes: ReadonlyArray<string>
  readonly default_cursor_field?: ReadonlyArray<string>
  readonly source_defined_primary_key?: ReadonlyArray<ReadonlyArray<string>>
}

/** A line of an Airbyte source, as far as tests look into it. */
export type AirbyteLine = {
  readonly type: string
  readonly record?: { readonly stream: string; readonly data: Data; readonly emitted_at: number }
  readonly state?: {
    readonly type: string
    readonly stream: { readonly stream_descriptor: { readonly name: string }; readonly stream_state: Data }
    readonly sourceStats: { readonly recordCount: number }
  }
  readonly trace?: {
    readonly type: string
    readonly error?: { readonly message: string; readonly failure_type: string }
    readonly stream_status?: { readonly stream_descriptor: { readonly name: string }; readonly status: string }
  }
  readonly catalog?: { readonly streams: ReadonlyArray<AirbyteStream> }
  readonly connectionStatus?: { readonly status: string; readonly message?: string }
  readonly spec?: { readonly connectionSpecification: JsonSchema; readonly documentationUrl: string }
}

export type SingerState = {
  readonly bookmarks: Readonly<Record<string, Data>>
  readonly currently_syncing?: string | null
}

/** A line of a Singer tap, as far as tests look into it. */
export type SingerLine =
  | {
      readonly type: 'SCHEMA'
      readonly stream: string
      readonly schema: JsonSchema
      readonly key_properties: ReadonlyArray<string>
    }
  | { readonly type: 'RECORD'; readonly stream: string; readonly record: Data; readonly time_extracted: string }
  | { readonly type: 'STATE'; readonly value: SingerState }

export type SingerStream = {
  readonly tap_stream_id: string
  readonly schema: JsonSchema
  readonly key_properties: ReadonlyArray<string>
  readonly replication_key?: string
  readonly metadata: ReadonlyArray<{ readonly breadcrumb: ReadonlyArray<string>; readonly metadata: Data }>
}

const splitLines = (stdout: string): ReadonlyArray<string> => stdout.split('\n').filter((line) => line !== '')

export const airbyteLines = (stdout: string): ReadonlyArray<AirbyteLine> =>
  splitLines(stdout).map((line) => JSON.parse(line))
export const singerLines = (stdout: string): ReadonlyArray<SingerLine> =>
  splitLines(stdout).map((line) => JSON.parse(line))

/** The text of each record of a stream, in either protocol. */
export const recordTexts = (stdout: string, stream: string): ReadonlyArray<string> =>
  splitLines(stdout).flatMap((line) => {
    const head = ['"record":{"stream":', '"stream":'].map((start) => `${start}${JSON.stringify(stream)},`)
    if (!line.startsWith('{"type":"RECORD",') || !head.some((text) => line.startsWith(text, 17))) return []
    const [from, to] =
      line.includes('"data":', 17) && line.startsWith('"record":', 17)
        ? [line.indexOf('"data":') + 7, line.lastIndexOf(',"emitted_at":')]
        : [line.indexOf('"record":') + 9, line.lastIndexOf(',"time_extracted":')]
    return [line.slice(from, to)]
  })

/** The records of a stream in the output of `read` or a tap, decoded. */
export const airbyteRecords = (stdout: string, stream: string): ReadonlyArray<Data> =>
  airbyteLines(stdout).flatMap(({ record }) => (record?.stream === stream ? [record.data] : []))
export const singerRecords = (stdout: string, stream: string): ReadonlyArray<Data> =>
  singerLines(stdout).flatMap((line) => (line.type === 'RECORD' && line.stream === stream ? [line.record] : []))

/** Each stream's last state, as a platform hands it back. */
export const airbyteState = (stdout: string): ReadonlyArray<AirbyteLine['state']> => {
  const last = new Map(
    airbyteLines(stdout).flatMap(({ state }) =>
      state === undefined ? [] : [[state.stream.stream_descriptor.name, state] as const],
    ),
  )
  return [...last.values()]
}
export const singerState = (stdout: string): SingerState => {
  const last = singerLines(stdout).at(-1)
  if (last?.type !== 'STATE') throw new Error('The last line is no STATE')
  return last.value
}

/** A catalog that selects all of `streams`. */
export const configureStreams = (streams: ReadonlyArray<AirbyteStream>, mode: 'full_refresh' | 'incremental') => ({
  streams: streams.map((stream) => ({
    stream,
    sync_mode: stream.supported_sync_modes.includes(mode) ? mode : 'full_refresh',
    destination_sync_mode: 'append',
  })),
})
