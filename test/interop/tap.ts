import { parseExactJson } from '../../connector/cdk/json/exact'
import type { Sandbox } from '../../connector/sandbox/start'
import type { JsonFolder } from '../support/files'
import { recordTexts, type SingerState, type SingerStream } from '../support/lines'
import { type ProgramOptions, type ProgramResult, runProgram } from '../support/program'
import { sandboxConfig } from '../support/sandbox'

/** Runs the built tap against a sandbox; catalogs and states are handed over as files. */
export const createTapRunner =
  (sandbox: Sandbox, files: JsonFolder) =>
  (
    given: { readonly catalog?: object; readonly state?: unknown; readonly config?: object; readonly flags?: string[] },
    how: ProgramOptions = {},
  ): Promise<ProgramResult> => {
    const name = (what: string) => `${what}-${Math.random().toString(36).slice(2)}.json`
    const file = (what: string, value: unknown): string[] =>
      value === undefined ? [] : [`--${what}`, files.put(name(what), value)]
    return runProgram(
      'tap-feedback',
      [
        ...file('config', sandboxConfig(sandbox, given.config)),
        ...file('catalog', given.catalog),
        ...file('state', given.state),
        ...(given.flags ?? []),
      ],
      how,
    )
  }

type Metadata = SingerStream['metadata'][number]['metadata']

/** The stream with metadata added at breadcrumbs that `wanted` answers for. */
export const addMetadata = (
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
export const selectAll = (streams: ReadonlyArray<SingerStream>) => ({
  streams: streams.map((stream) => addMetadata(stream, () => ({ selected: true }))),
})

/** A catalog that selects only what leaves anyway: keys and cursors. */
export const selectAutomatic = (streams: ReadonlyArray<SingerStream>) => ({
  streams: streams.map((stream) => addMetadata(stream, (attribute) => ({ selected: attribute === undefined }))),
})

/** The key of each record of a stream, as text, since ids may be too large for a number. */
export const recordKeys = ({ tap_stream_id, key_properties }: SingerStream, stdout: string): ReadonlyArray<string> =>
  recordTexts(stdout, tap_stream_id).map((text) => {
    const record = parseExactJson(text) as Readonly<Record<string, unknown>>
    return key_properties.map((key) => String(record[key])).join(' ')
  })

export const readBookmark = (state: SingerState, stream: string): string =>
  String(state.bookmarks[stream]?.modifiedTimeFrom)
