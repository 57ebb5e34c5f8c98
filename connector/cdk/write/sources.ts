import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { configFailure, type Failure, transientFailure } from '../failure'
import type { InputRecord, InputStream, OpenSink, PreparedItem } from '../sink'
import type { InputMessage } from './arrival'
import { type RecordCounts, type RejectPolicy, streamRejectionFailure } from './reject-policy'

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
