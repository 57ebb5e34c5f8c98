import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { configFailure, type Failure, transientFailure } from '../failure'
import { continueAfterInput } from '../input'
import type { InputRecord } from '../message'
import type { InputExtent, InputStream, OpenSink, PreparedItem } from '../sink'
import { withoutMarkedNames } from './byte-order-mark'
import { type RecordCounts, type RejectPolicy, streamRejectionFailure } from './reject-policy'

/** A stream of the input and how its records are prepared for its sink. */
export type SinkRoute = {
  readonly stream: InputStream
  readonly prepare: (record: InputRecord) => E.Either<string, PreparedItem<unknown>>
}

/** How a stream of the input ended; whole: it sent everything there is. */
type StreamEnding = 'whole' | 'complete' | 'broken'

/** Where the streams of an input go, and how the finished ones ended. */
export type SinkRoutes = {
  /** By object name. Items may refer to items of earlier sinks. */
  readonly sinks: ReadonlyMap<string, OpenSink<unknown>>
  readonly byStream: Map<string, SinkRoute>
  readonly endings: Map<string, StreamEnding>
}

type CountsOf = (streamId: string) => RecordCounts

export const openRoute = ({ sinks, byStream }: SinkRoutes, stream: InputStream): E.Either<Failure, SinkRoute> => {
  const sink = sinks.get(stream.objectName)
  if (sink === undefined)
    return E.left(
      configFailure(
        `The stream ${stream.name} goes to the object ${stream.objectName}, which does not exist. ` +
          `Name it ${[...sinks.keys()].join(' or ')}, or name its object under streams in the config.`,
      ),
    )
  const prepare = sink.prepare(withoutMarkedNames(stream))
  if (E.isLeft(prepare)) return prepare
  const route = { stream, prepare: prepare.right }
  byStream.set(stream.id, route)
  return E.right(route)
}

export const recordEnding = ({ endings }: SinkRoutes, streamId: string, ending: StreamEnding): void => {
  if (endings.get(streamId) !== 'broken') endings.set(streamId, ending)
}

/** True if records of a stream may refer to records of the others, because its object comes after theirs. */
export const mayReferTo = (
  { sinks, byStream }: SinkRoutes,
  streamId: string,
  others: ReadonlyArray<string>,
): boolean => {
  const objectNames = [...sinks.keys()]
  const rank = (id: string): number => objectNames.indexOf(byStream.get(id)?.stream.objectName ?? '')
  return others.some((other) => rank(other) < rank(streamId))
}

/** How much of an object the input's streams sent. */
export const extentOf = ({ byStream, endings }: SinkRoutes, objectName: string, countsOf: CountsOf): InputExtent => {
  const ids = [...byStream.values()].flatMap(({ stream }) => (stream.objectName === objectName ? [stream.id] : []))
  if (ids.some((id) => countsOf(id).received === 0)) return 'empty'
  if (ids.some((id) => !endings.has(id))) return 'unsaid'
  return ids.length > 0 && ids.every((id) => endings.get(id) === 'whole') ? 'whole' : 'changes'
}

/** The failures of streams at their end, because of their rejections. */
export const describeRejections = (
  { byStream }: SinkRoutes,
  policy: RejectPolicy,
  countsOf: CountsOf,
): ReadonlyArray<Failure> =>
  [...byStream.values()].flatMap(({ stream: { id, name } }) => {
    const rejection = streamRejectionFailure(policy, name, countsOf(id))
    return O.isSome(rejection) ? [rejection.value] : []
  })

/** The failures of streams that ended badly. `needsEnding`: a stream without an ending counts as one. */
export const describeBrokenEndings = (
  { byStream, endings }: SinkRoutes,
  needsEnding: boolean,
): ReadonlyArray<Failure> =>
  [...new Set([...byStream.keys(), ...endings.keys()])].flatMap((id) => {
    const ending = endings.get(id)
    const name = byStream.get(id)?.stream.name ?? id
    if (ending === 'broken') return [brokenStreamFailure(name, 'the source says that it did not complete the stream')]
    return ending === undefined && needsEnding
      ? [brokenStreamFailure(name, 'the input ended before the stream was complete')]
      : []
  })

const brokenStreamFailure = (stream: string, problem: string): Failure =>
  transientFailure(`${stream}: ${problem}. ${continueAfterInput}`)
