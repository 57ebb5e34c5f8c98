import { defined } from '../../connector/cdk/schema'

type Line = Readonly<Record<string, unknown>>

/** The messages of a protocol: those before a stream, a record, a state and those after the stream. */
export type MessageFormat = {
  readonly open: (stream: string, key: string) => ReadonlyArray<Line>
  readonly record: (stream: string, data: Line) => Line
  readonly state: (stream: string, at: number) => Line
  readonly close: (stream: string) => ReadonlyArray<Line>
}

export const airbyteFormat: MessageFormat = {
  open: () => [],
  record: (stream, data) => ({ type: 'RECORD', record: { stream, data, emitted_at: 1 } }),
  state: (name, at) => ({
    type: 'STATE',
    state: { type: 'STREAM', stream: { stream_descriptor: { name }, stream_state: { at } } },
  }),
  close: (name) => [
    {
      type: 'TRACE',
      trace: {
        type: 'STREAM_STATUS',
        emitted_at: 1,
        stream_status: { stream_descriptor: { name }, status: 'COMPLETE' },
      },
    },
  ],
}

export const singerFormat: MessageFormat = {
  open: (stream, key) => [{ type: 'SCHEMA', stream, key_properties: [key], schema: { properties: {} } }],
  record: (stream, record) => ({ type: 'RECORD', stream, record }),
  state: (stream, at) => ({ type: 'STATE', value: { bookmarks: { [stream]: { at } } } }),
  close: () => [],
}

/**
 * A stream's messages: the records from index `from` on, a state after every `every` records, and the end of the
 * stream.
 */
export const formatStream = (
  format: MessageFormat,
  stream: string,
  key: string,
  records: ReadonlyArray<Line>,
  { from = 0, every = 250 }: { readonly from?: number; readonly every?: number } = {},
): ReadonlyArray<Line> => [
  ...format.open(stream, key),
  ...records
    .slice(from)
    .flatMap((data, index) =>
      (from + index + 1) % every === 0
        ? [format.record(stream, data), format.state(stream, from + index + 1)]
        : [format.record(stream, data)],
    ),
  format.state(stream, records.length),
  ...format.close(stream),
]

export const formatLines = (lines: ReadonlyArray<Line>): string =>
  lines.map((line) => `${JSON.stringify(line)}\n`).join('')

/** A configured catalog of streams by their primary keys. */
export const configuredCatalogOf = (keys: Readonly<Record<string, string>>, more: Line = {}): unknown => ({
  streams: Object.entries(keys).map(([name, key]) => ({
    stream: { name, json_schema: {}, supported_sync_modes: ['full_refresh'] },
    sync_mode: 'full_refresh',
    destination_sync_mode: 'append_dedup',
    primary_key: [[key]],
    ...more,
  })),
})

export const mapping = {
  visit_records: {
    firstName: 'given_name',
    lastName: 'family_name',
    email: 'mail',
    locationCode: 'clinic',
    visitTime: 'at',
  },
}

/** A visit as a warehouse holds it; those with an even number have their id, the others only their key. */
export const visitRow = (id: number, more: Line = {}): Line => ({
  id,
  ...defined({ visitRecordId: id % 2 === 0 ? `visit-${id}` : undefined }),
  given_name: 'Ada',
  family_name: `Byron ${id}`,
  mail: `ada${id}@example.com`,
  clinic: `W${id % 500}`,
  npi: 1234567890 + (id % 9),
  at: new Date(Date.now() - (id % 20) * 86_400_000).toISOString(),
  ...more,
})

export const locationRow = (id: number): Line => ({
  code: `W${id}`,
  name: `Clinic ${id}`,
  city: 'London',
  active: 'true',
})
