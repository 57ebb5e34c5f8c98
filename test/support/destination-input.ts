type Line = Readonly<Record<string, unknown>>

/** Airbyte or Singer messages, one by one. */
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

/** Records of a stream from the one after `from` on, a state after every `every`, and its end. */
export const formatStream = (
  face: MessageFormat,
  stream: string,
  key: string,
  records: ReadonlyArray<Line>,
  { from = 0, every = 250 }: { readonly from?: number; readonly every?: number } = {},
): ReadonlyArray<Line> => [
  ...face.open(stream, key),
  ...records
    .slice(from)
    .flatMap((data, index) =>
      (from + index + 1) % every === 0
        ? [face.record(stream, data), face.state(stream, from + index + 1)]
        : [face.record(stream, data)],
    ),
  face.state(stream, records.length),
  ...face.close(stream),
]

export const formatLines = (lines: ReadonlyArray<Line>): string =>
  lines.map((line) => `${JSON.stringify(line)}\n`).join('')

/** A configured catalog of these streams. */
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

/** A visit as a warehouse has it; some bring their id, others only their key. */
export const visitRow = (id: number, more: Line = {}): Line => ({
  id,
  ...(id % 2 === 0 ? { visitRecordId: `visit-${id}` } : {}),
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
