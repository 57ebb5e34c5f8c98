import { parseJson } from '../../connector/api/json-text'
import type { Sandbox } from '../../connector/sandbox/start'
import { configFor, type Folder, type How, type Ran, run } from './built'
import { recordTexts, type SingerState, type SingerStream } from './lines'

/** Runs the built tap against a sandbox; catalogs and states are handed over as files. */
export const tap =
  (sandbox: Sandbox, files: Folder) =>
  (
    given: { readonly catalog?: object; readonly state?: unknown; readonly config?: object; readonly flags?: string[] },
    how: How = {},
  ): Promise<Ran> => {
    const name = (what: string) => `${what}-${Math.random().toString(36).slice(2)}.json`
    const file = (what: string, value: unknown): string[] =>
      value === undefined ? [] : [`--${what}`, files.put(name(what), value)]
    return run(
      'tap-feedback',
      [
        ...file('config', configFor(sandbox, given.config)),
        ...file('catalog', given.catalog),
        ...file('state', given.state),
        ...(given.flags ?? []),
      ],
      how,
    )
  }

type Metadata = SingerStream['metadata'][number]['metadata']

/** The stream with metadata added at breadcrumbs that `wanted` answers for. */
export const withMetadata = (
  stream: SingerStream,
  wanted: (attribute: string | undefined, metadata: Metadata) => Metadata,
): SingerStream => ({
  ...stream,
  metadata: stream.metadata.map(({ breadcrumb, metadata }) => ({
    breadcrumb,
    metadata: { ...metadata, ...wanted(breadcrumb[1], metadata) },
  })),
})

/** A catalog that selects these streams whole. */
export const selecting = (streams: ReadonlyArray<SingerStream>) => ({
  streams: streams.map((stream) => withMetadata(stream, () => ({ selected: true }))),
})

/** A catalog that selects only what leaves anyway: keys and cursors. */
export const selectingAutomatic = (streams: ReadonlyArray<SingerStream>) => ({
  streams: streams.map((stream) => withMetadata(stream, (attribute) => ({ selected: attribute === undefined }))),
})

/** The key of each record of a stream, as text: ids may lie beyond what a number holds. */
export const keysOf = ({ tap_stream_id, key_properties }: SingerStream, stdout: string): ReadonlyArray<string> =>
  recordTexts(stdout, tap_stream_id).map((text) => {
    const record = parseJson(text) as Readonly<Record<string, unknown>>
    return key_properties.map((key) => String(record[key])).join(' ')
  })

export const bookmarkOf = (state: SingerState, stream: string): string =>
  String(state.bookmarks[stream]?.modifiedTimeFrom)
