import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { configFailure, type Failure, transientFailure } from '../failure'
import type { Feed } from '../feed'
import { readObjectMembers } from '../json/scanner'
import { splitLines } from '../lines'
import type { InputRecord, InputStream, OpenSink, PreparedItem } from '../sink'
import { type RecordCounts, type RejectPolicy, streamRejectionFailure } from './reject-policy'

/** How many records a state covers beyond the one before it. */
export type DestinationStats = { readonly accepted: number; readonly rejected: number }

/** What a destination is told, whatever the protocol. */
export type InputMessage =
  /** Before its first record; again where its schema changes. */
  | { readonly _tag: 'Opened'; readonly inlet: InputStream }
  /** `json`: the record as it came, UTF-8; `bytes`: how much of memory it holds. */
  | {
      readonly _tag: 'Record'
      readonly inlet: string
      readonly columns: InputRecord
      readonly bytes: number
      readonly json: () => Uint8Array
    }
  /** Covers every record before it. `answer`: the line that says so; `inlet`: none if it speaks of all streams. */
  | { readonly _tag: 'State'; readonly inlet?: string; readonly answer: (stats: DestinationStats) => string }
  /** `whole`: its records were everything there is. */
  | { readonly _tag: 'Completed'; readonly inlet: string; readonly whole: boolean }
  /** It ended before it was complete. */
  | { readonly _tag: 'Broken'; readonly inlet: string }
  /** A line that was passed over, and why. */
  | { readonly _tag: 'Skipped'; readonly message: string }

/** What a destination is told, those of one piece of the input together. */
export type InputFeed = Feed<Failure, ReadonlyArray<InputMessage>>

/** A line of the input, its bytes as they came, counted from 1. */
export type InputLine = { readonly bytes: Buffer; readonly number: number }

/** A JSON text as a value; throws on anything else. */
export type ParseJson = (text: string) => unknown

/** A message of either protocol. */
export type ProtocolMessage = { readonly type: string } & Readonly<Record<string, unknown>>

const isProtocolMessage = (value: unknown): value is ProtocolMessage =>
  t.UnknownRecord.is(value) && typeof value.type === 'string'

const parseMessage = (parse: ParseJson, bytes: Buffer): ProtocolMessage | undefined => {
  try {
    const value = parse(bytes.toString('utf8'))
    return isProtocolMessage(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** What the lines of an input mean: each is told by `meaning`, undefined where it means nothing; `message`: undefined where it is none. */
export async function* decodeLines(
  input: AsyncIterable<Uint8Array>,
  parse: ParseJson,
  meaning: (message: ProtocolMessage | undefined, line: InputLine) => E.Either<Failure, InputMessage> | undefined,
): InputFeed {
  let number = 0
  for await (const lines of splitLines(input)) {
    const told: Array<InputMessage> = []
    for (const bytes of lines) {
      number += 1
      const said = bytes.length === 0 ? undefined : meaning(parseMessage(parse, bytes), { bytes, number })
      if (said === undefined) continue
      if (E.isLeft(said)) {
        yield E.right(told)
        yield said
        return
      }
      told.push(said.right)
    }
    yield E.right(told)
  }
}

/** The bytes of a member of a line, or of a member of the member `inside`, as `inside.name`. */
export const extractMember = ({ bytes }: InputLine, inside: string, path: string): Buffer => {
  const span = readObjectMembers(bytes, inside)?.get(path)
  return span === undefined ? Buffer.alloc(0) : bytes.subarray(span.start, span.end)
}

/** A stream that comes in, with its way into its sink. */
export type SinkRoute = {
  readonly stream: InputStream
  readonly prepare: (record: InputRecord) => E.Either<string, PreparedItem<unknown>>
}

type StreamEnding = 'whole' | 'complete' | 'broken'

/** The streams that come in, and how each ended. */
export type SinkRoutes = {
  readonly open: (inlet: InputStream) => E.Either<Failure, SinkRoute>
  readonly find: (id: string) => SinkRoute | undefined
  readonly recordEnding: (arrival: Extract<InputMessage, { _tag: 'Completed' | 'Broken' }>) => void
  /** Whether all that goes into an object came, and was everything there is. */
  readonly isWhole: (object: string) => boolean
  /** Why streams did not end well, if so. */
  readonly failures: (policy: RejectPolicy, tally: (id: string) => RecordCounts) => ReadonlyArray<Failure>
  readonly streamIds: () => ReadonlyArray<string>
}

export const createSinkRoutes = (sinks: ReadonlyMap<string, OpenSink<unknown>>): SinkRoutes => {
  const sources = new Map<string, SinkRoute>()
  const endings = new Map<string, StreamEnding>()
  return {
    open: (inlet) => {
      const source = openRoute(sinks, inlet)
      if (E.isRight(source)) sources.set(inlet.id, source.right)
      return source
    },
    find: (id) => sources.get(id),
    recordEnding: (arrival) => {
      endings.set(arrival.inlet, arrival._tag === 'Broken' ? 'broken' : arrival.whole ? 'whole' : 'complete')
    },
    isWhole: (object) => {
      const into = [...sources.values()].filter(({ stream }) => stream.objectName === object)
      return into.length > 0 && into.every(({ stream }) => endings.get(stream.id) === 'whole')
    },
    failures: (policy, tally) =>
      [...sources.values()].flatMap(({ stream: { id, name } }) => {
        const verdict = streamRejectionFailure(policy, name, tally(id))
        const judged = O.isSome(verdict) ? [verdict.value] : []
        return (endings.get(id) ?? 'broken') === 'broken' ? [...judged, incompleteStreamFailure(name)] : judged
      }),
    streamIds: () => [...sources.keys()],
  }
}

const openRoute = (sinks: ReadonlyMap<string, OpenSink<unknown>>, inlet: InputStream): E.Either<Failure, SinkRoute> => {
  const sink = sinks.get(inlet.objectName)
  return sink === undefined
    ? E.left(
        configFailure(
          `The stream ${inlet.name} goes to the object ${inlet.objectName}, which does not exist. Name it ${[...sinks.keys()].join(' or ')}.`,
        ),
      )
    : E.map((prepare: SinkRoute['prepare']): SinkRoute => ({ stream: inlet, prepare }))(sink.prepare(inlet))
}

const incompleteStreamFailure = (stream: string): Failure =>
  transientFailure(
    `${stream}: the input ended before the stream was complete. What its states cover is written; run again to go on from there.`,
  )
