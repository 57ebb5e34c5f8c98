import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as t from 'io-ts'
import { toMillis } from '../api/model/scalar'
import type { SourceState } from '../cdk/catalog'
import { configFailure, type Failure } from '../cdk/failure'

/** Most rows a state remembers as sent, as in the scan's own states. */
const maxMergedRows = 1000

/**
 * The one state from which an ordinary connection goes on after a backfill that was shared: per stream the earliest cursor, and
 * what any of the processes has sent since. A stream that one of them has not finished is refused. Streams that are not
 * shared were read whole by each process: there the first state stands for all.
 */
export const mergeStates = (states: ReadonlyArray<SourceState>): E.Either<Failure, SourceState> => {
  const names = [...new Set(states.flatMap((state) => Object.keys(state)))]
  return pipe(
    names,
    E.traverseArray((name) =>
      pipe(
        states.some((state) => isExportState(state[name]))
          ? pipe(
              states,
              E.traverseArrayWithIndex((i, state: SourceState) => requireComplete(name, i, state[name])),
              E.map(mergeExportStates),
            )
          : E.right(states.map((state) => state[name]).find(t.UnknownRecord.is) ?? {}),
        E.map((one) => [name, one] as const),
      ),
    ),
    E.map((entries) => Object.fromEntries(entries)),
  )
}

const isExportState = (state: unknown): boolean =>
  t.UnknownRecord.is(state) && (state.scan !== undefined || state.modifiedTimeFrom !== undefined)

type CompleteState = Readonly<Record<string, unknown>> & { readonly modifiedTimeFrom: string }

const requireComplete = (name: string, i: number, state: unknown): E.Either<Failure, CompleteState> => {
  const wrong = (problem: string) => E.left(configFailure(`State ${i + 1}: ${name} ${problem}.`))
  if (!t.UnknownRecord.is(state)) return wrong('is missing: its process has not read it. Run it to its end first')
  if (state.scan !== undefined) return wrong('is still being read. Run its process to its end first')
  return typeof state.modifiedTimeFrom === 'string'
    ? E.right({ ...state, modifiedTimeFrom: state.modifiedTimeFrom })
    : wrong('has no modifiedTimeFrom: it is no state of this stream')
}

const mergeExportStates = (states: ReadonlyArray<CompleteState>): unknown => {
  const [first = { modifiedTimeFrom: '' }] = states
  const earliest = states.reduce((a, b) => (toMillis(b.modifiedTimeFrom) < toMillis(a.modifiedTimeFrom) ? b : a), first)
  const slack = Math.max(...states.map((state) => Number(state.slack ?? 0)))
  const recent = states.flatMap((state) => (Array.isArray(state.recent) ? state.recent : []))
  const distinct = [...new Map(recent.map((row) => [JSON.stringify(row), row])).values()]
  return {
    ...earliest,
    ...(slack === 0 ? {} : { slack }),
    recent: distinct.length > maxMergedRows ? [] : distinct,
  }
}
