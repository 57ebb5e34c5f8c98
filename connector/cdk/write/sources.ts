import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { configFailure, type Failure, transientFailure } from '../failure'
import type { Columns, Inlet, OpenSink, Prepared } from '../sink'
import type { Arrival } from './arrival'
import { judgeWhole, type RejectPolicy, type Tally } from './reject-policy'

/** A stream that comes in, with its way into its sink. */
export type Source = {
  readonly inlet: Inlet
  readonly prepare: (record: Columns) => E.Either<string, Prepared<unknown>>
}

type Ending = 'whole' | 'complete' | 'broken'

/** The streams that come in, and how each ended. */
export type Sources = {
  readonly open: (inlet: Inlet) => E.Either<Failure, Source>
  readonly find: (id: string) => Source | undefined
  readonly end: (arrival: Extract<Arrival, { _tag: 'Completed' | 'Broken' }>) => void
  /** Whether all that goes into an object came, and was everything there is. */
  readonly isWhole: (object: string) => boolean
  /** Why streams did not end well, if so. */
  readonly failures: (policy: RejectPolicy, tally: (id: string) => Tally) => ReadonlyArray<Failure>
  readonly ids: () => ReadonlyArray<string>
}

export const sourcesInto = (sinks: ReadonlyMap<string, OpenSink<unknown>>): Sources => {
  const sources = new Map<string, Source>()
  const endings = new Map<string, Ending>()
  return {
    open: (inlet) => {
      const source = openSource(sinks, inlet)
      if (E.isRight(source)) sources.set(inlet.id, source.right)
      return source
    },
    find: (id) => sources.get(id),
    end: (arrival) => {
      endings.set(arrival.inlet, arrival._tag === 'Broken' ? 'broken' : arrival.whole ? 'whole' : 'complete')
    },
    isWhole: (object) => {
      const into = [...sources.values()].filter(({ inlet }) => inlet.object === object)
      return into.length > 0 && into.every(({ inlet }) => endings.get(inlet.id) === 'whole')
    },
    failures: (policy, tally) =>
      [...sources.values()].flatMap(({ inlet: { id, name } }) => {
        const verdict = judgeWhole(policy, name, tally(id))
        const judged = O.isSome(verdict) ? [verdict.value] : []
        return (endings.get(id) ?? 'broken') === 'broken' ? [...judged, incomplete(name)] : judged
      }),
    ids: () => [...sources.keys()],
  }
}

const openSource = (sinks: ReadonlyMap<string, OpenSink<unknown>>, inlet: Inlet): E.Either<Failure, Source> => {
  const sink = sinks.get(inlet.object)
  return sink === undefined
    ? E.left(
        configFailure(
          `The stream ${inlet.name} goes to the object ${inlet.object}, which does not exist. Name it ${[...sinks.keys()].join(' or ')}.`,
        ),
      )
    : E.map((prepare: Source['prepare']): Source => ({ inlet, prepare }))(sink.prepare(inlet))
}

const incomplete = (stream: string): Failure =>
  transientFailure(
    `${stream}: the input ended before the stream was complete. What its states cover is written; run again to go on from there.`,
  )
