import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as RA from 'fp-ts/ReadonlyArray'
import type { SourceState } from '../catalog'
import type { Message } from '../message'
import type { CommandIo } from '../program/command'
import type { ProtocolOutput } from '../protocol'
import { defined } from '../schema'
import {
  consumeMessages,
  type MessageConsumer,
  type MessageCopy,
  type OpenSource,
  type ReadOutcome,
} from '../source-program'
import type { SingerState } from '../state-file'
import type { Stream } from '../stream'
import type { SingerSelection } from './catalog'
import type { SingerLogger } from './command-line'
import { createSingerEncoder, tableVersionsOf } from './encode'

/** Starts with the stream that was interrupted; the streams before it follow. Streams that are read last stay last. */
const rotateStreams = <Env>(
  streams: ReadonlyArray<Stream<Env>>,
  first: O.Option<string>,
): ReadonlyArray<Stream<Env>> => {
  const { left: others, right: last } = pipe(
    streams,
    RA.partition(({ reader }) => reader.isLast === true),
  )
  const index = O.isSome(first) ? others.findIndex(({ name }) => name === first.value) : -1
  return index <= 0 ? streams : [...others.slice(index), ...others.slice(0, index), ...last]
}

/** What a run of the tap reads. */
export type TapRun<Env> = {
  readonly open: OpenSource<Env>
  readonly selection: SingerSelection
  readonly state: SingerState
  readonly log: SingerLogger
  readonly tableVersions: boolean
  /** Receives each message, as stdout does. */
  readonly copy: MessageCopy | undefined
}

/**
 * The bookmarks to continue from. A versioned full refresh that has no version yet starts over. Otherwise the rows that
 * an earlier run sent without that version would be deleted.
 */
const bookmarksToContinue = <Env>({ open, selection, state, tableVersions }: TapRun<Env>): SourceState => {
  const versions = tableVersionsOf(state.value)
  const isRefreshed = (name: string): boolean =>
    selection.catalog.find((selected) => selected.name === name)?.syncMode === 'full_refresh' ||
    open.streams.find((stream) => stream.name === name)?.syncModes.includes('incremental') === false
  return tableVersions
    ? Object.fromEntries(Object.entries(state.bookmarks).filter(([name]) => versions.has(name) || !isRefreshed(name)))
    : state.bookmarks
}

/** Prints lines on stdout and entries to the log. */
const printTo =
  (io: CommandIo, log: SingerLogger) =>
  async ({ lines, log: entries }: ProtocolOutput): Promise<void> => {
    entries.forEach(log)
    for (const text of lines) await io.print(text)
  }

/** Prints the selected streams as Singer messages. The last message is a STATE, even after a failure. */
export const readAsSinger = async <Env>(io: CommandIo, run: TapRun<Env>): Promise<ReadOutcome> => {
  const { open, selection, state, log, tableVersions, copy } = run
  const { catalog, schemas } = selection
  const encoder = createSingerEncoder({ now: Date.now, schemas, givenState: state.value, tableVersions })
  const print = printTo(io, log)
  const order = rotateStreams(open.streams, state.currentlySyncing)
  const consumers: ReadonlyArray<MessageConsumer> = [(message) => print(encoder.encode(message))]
  const outcome = await consumeMessages(
    io,
    open,
    {
      catalog,
      state: bookmarksToContinue(run),
      previous: state.bookmarks,
      order,
      ...defined({ holdsRows: copy?.holdsRows }),
    },
    copy === undefined ? consumers : [...consumers, copy.write],
  )
  await print(encoder.end())
  return outcome
}

const keepFirstRow = (message: Message): Message =>
  message._tag === 'Records' ? { ...message, rows: message.rows.slice(0, 1) } : message

/**
 * Prints the first record of each selected stream, from the beginning and without a STATE. Returns true if all streams
 * could be read.
 */
export const readFirstRecords = async <Env>(
  io: CommandIo,
  { open, selection: { catalog, schemas }, state, log }: TapRun<Env>,
): Promise<boolean> => {
  let complete = true
  for (const selectedStream of catalog) {
    const enough = new AbortController()
    const stop = AbortSignal.any([io.stop, enough.signal])
    const encoder = createSingerEncoder({ now: Date.now, schemas, givenState: state.value })
    const print: MessageConsumer = async (message) => {
      if (message._tag === 'Checkpoint' || enough.signal.aborted) return
      await printTo(io, log)(encoder.encode(keepFirstRow(message)))
      if (message._tag === 'Records') enough.abort()
    }
    const outcome = await consumeMessages(
      { ...io, stop },
      open,
      { catalog: [{ ...selectedStream, replaces: false }], state: {} },
      [print],
    )
    complete = complete && outcome !== 'failed'
  }
  return complete
}

/** Prints the SCHEMA of each selected stream, without a request. */
export const printSchemas = async <Env>(
  io: CommandIo,
  { open, selection: { catalog, schemas } }: TapRun<Env>,
): Promise<void> => {
  const encoder = createSingerEncoder({ now: Date.now, schemas })
  for (const { name, syncMode } of catalog) {
    const stream = open.streams.find((known) => known.name === name)
    if (stream === undefined) continue
    const { schema, primaryKey, cursor } = stream
    const [line = ''] = encoder.encode({
      _tag: 'Started',
      stream: { name, schema, primaryKey, cursor, syncMode },
    }).lines
    await io.print(line)
  }
}
