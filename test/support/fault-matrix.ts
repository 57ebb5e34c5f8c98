import type { Failure } from '../../connector/cdk/failure'
import { type Fault, type FaultKind, faultKinds } from '../../connector/sandbox/faults/plan'
import { drawCount, drawSeed } from './draws'
import { random } from './random'

/** How a run ends: with all rows; or with a failure, or without some rows, and the next run reads the rest. */
export type ExpectedFate = 'completes' | 'fails' | 'passes over' | 'either'
/** How a run ends if one request, three or all have a fault, and its failure. */
export type Expected = {
  readonly fates: readonly [one: ExpectedFate, three: ExpectedFate, all: ExpectedFate]
  readonly failure?: Failure['_tag']
  readonly says?: RegExp
}

const retried = (says: RegExp): Expected => ({
  fates: ['completes', 'completes', 'fails'],
  failure: 'Transient',
  says,
})
export const failsFinally = (failure: Failure['_tag'], says: RegExp): Expected => ({
  fates: ['fails', 'fails', 'fails'],
  failure,
  says,
})
const harmlessFault: Expected = { fates: ['completes', 'completes', 'completes'] }
/** The run may complete or fail; the data is right in either case. */
export const mayFail = (failure: Failure['_tag'], says: RegExp): Expected => ({
  fates: ['either', 'either', 'either'],
  failure,
  says,
})

/** The faults that every program meets in the same way: those of the connection, and those that change no row. */
export const commonFaults = {
  '429': retried(/answered 429|asks to wait/),
  '500': retried(/answered 500/),
  '502': retried(/answered 502/),
  '503': retried(/answered 503/),
  '504': retried(/answered 504/),
  reset: retried(/did not answer/),
  truncated: retried(/cut its answer short/),
  hang: retried(/did not answer completely in time \(ETIMEDOUT\)/),
  drip: retried(/did not answer completely in time \(ETIMEDOUT\)/),
  '401': failsFinally('Config', /token is missing, wrong or expired.*credentials \(401\)/),
  '403': failsFinally('Config', /lacks permission.*\(403\)/),
  revoke: failsFinally('Config', /credentials \(401\)/),
  contenttype: harmlessFault,
  clamp: harmlessFault,
  unknown: harmlessFault,
  nulls: harmlessFault,
} as const

export const kinds = Object.keys(faultKinds) as ReadonlyArray<FaultKind>

export const faultOf = (kind: FaultKind): Fault => ({
  kind,
  retryAfter: kind === '429' ? 2 : undefined,
  retryAfterDate: false,
  delayMs: 1000,
  limit: 7,
})

/** Which request of an operation gets a fault first, and how many requests get it: an index of `faultCounts`. */
export type FaultCase = { readonly at: 'first' | 'middle' | 'last'; readonly countIndex: 0 | 1 | 2 }

export const faultCounts = [1, 3, 1e9] as const

const allCases: ReadonlyArray<FaultCase> = (['first', 'middle', 'last'] as const).flatMap((at) =>
  ([0, 1, 2] as const).map((countIndex) => ({ at, countIndex })),
)

/**
 * Where every answer has the rows of another, the windows are split down to seconds: a hundred requests for each row.
 * It comes last.
 */
const isLong = (kind: FaultKind, { countIndex }: FaultCase): boolean =>
  (kind === 'stale' || kind === 'duplicate') && countIndex === 2

/** So many cases of a kind of fault, one in `npm test`: DRAWS=9 takes all, SEED=N others. */
const drawCases = (family: number, kind: FaultKind): ReadonlyArray<FaultCase> => {
  const nextRandom = random(drawSeed + 1000 * family + kinds.indexOf(kind))
  return allCases
    .map((each) => ({ each, place: nextRandom() + (isLong(kind, each) ? 1 : 0) }))
    .sort((a, b) => a.place - b.place)
    .slice(0, drawCount(1))
    .map(({ each }) => each)
}

/** The cases that are tested of a family, by kind of fault. */
export const faultCasesOf = (
  family: number,
  of: ReadonlyArray<FaultKind> = kinds,
): ReadonlyArray<readonly [kind: FaultKind, cases: ReadonlyArray<FaultCase>]> =>
  of.map((kind) => [kind, drawCases(family, kind)])

/** The number of the first request with a fault, if there are `requests` in all. */
export const firstFaultyRequest = (at: FaultCase['at'], requests: number): number =>
  ({ first: 1, middle: Math.ceil(requests / 2), last: requests })[at]
