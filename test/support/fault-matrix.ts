import type { Failure } from '../../connector/cdk/failure'
import { type Fault, type FaultKind, faultKinds } from '../../connector/sandbox/faults/plan'
import { random } from './random'

/** What becomes of a run: all is there; it fails, or passes over a part, and the next run has it all. */
export type ExpectedFate = 'completes' | 'fails' | 'passes over' | 'either'
/** What is foreseen where a fault strikes once, three times, always. */
export type Expected = {
  readonly fates: readonly [once: ExpectedFate, thrice: ExpectedFate, always: ExpectedFate]
  readonly failure?: Failure['_tag']
  readonly says?: RegExp
}

export const retried = (says: RegExp): Expected => ({
  fates: ['completes', 'completes', 'fails'],
  failure: 'Transient',
  says,
})
export const failsFinally = (failure: Failure['_tag'], says: RegExp): Expected => ({
  fates: ['fails', 'fails', 'fails'],
  failure,
  says,
})
export const harmlessFault: Expected = { fates: ['completes', 'completes', 'completes'] }
/** Whatever comes of it, the data must be right. */
export const mayFail = (failure: Failure['_tag'], says: RegExp): Expected => ({
  fates: ['either', 'either', 'either'],
  failure,
  says,
})

export const kinds = Object.keys(faultKinds) as ReadonlyArray<FaultKind>

export const faultOf = (kind: FaultKind): Fault => ({
  kind,
  retryAfter: kind === '429' ? 2 : undefined,
  retryAfterDate: false,
  delayMs: 1000,
  limit: 7,
})

/** Where a fault strikes, and how often: the first, a middle or the last request of an operation. */
export type Cell = { readonly at: 'first' | 'middle' | 'last'; readonly strikes: 0 | 1 | 2 }

export const faultCounts = [1, 3, 1e9] as const

const all: ReadonlyArray<Cell> = (['first', 'middle', 'last'] as const).flatMap((at) =>
  ([0, 1, 2] as const).map((strikes) => ({ at, strikes })),
)

const isWhole = process.env.MATRIX === 'whole'
export const seed = Number(process.env.SEED ?? 20261121)

const drawn = (family: number, kind: FaultKind): ReadonlyArray<Cell> => {
  const chance = random(seed + 1000 * family + kinds.indexOf(kind))
  const place = Math.floor(chance() * all.length)
  return chance() < 1 / 3 ? all.slice(place, place + 1) : []
}

/** The kinds and cells to be tried of the nth family: every one where MATRIX is whole; else a few, others for another SEED. */
export const cellsOf = (
  family: number,
  of: ReadonlyArray<FaultKind> = kinds,
): ReadonlyArray<readonly [kind: FaultKind, cells: ReadonlyArray<Cell>]> =>
  of.map((kind) => [kind, isWhole ? all : drawn(family, kind)] as const).filter(([, cells]) => cells.length > 0)

/** The number of the request, of so many, that a cell strikes first. */
export const placeOf = (at: Cell['at'], requests: number): number =>
  ({ first: 1, middle: Math.ceil(requests / 2), last: requests })[at]
