import * as E from 'fp-ts/Either'
import type { Location } from '../api/model/location'
import { configFailure, type Failure } from '../cdk/failure'

/** A location by what it is matched by. */
export type LocationKey = { readonly code: string; readonly codeType: string | null }

export const toLocationKey = ({ code, codeType }: Pick<Location, 'code' | 'codeType'>): LocationKey => ({
  code: code ?? '',
  codeType: codeType ?? null,
})

/** The same for the same location, and for no other. */
export const formatLocationKey = ({ code, codeType }: LocationKey): string =>
  codeType === null ? code : JSON.stringify([code, codeType])

/** The same for people to read. */
export const formatLocation = ({ code, codeType }: LocationKey): string =>
  codeType === null ? code : `${code} (${codeType})`

/** A complete list against what was accepted before. */
export type ReconcilePlan = {
  readonly creates: ReadonlyArray<LocationKey>
  readonly updates: ReadonlyArray<LocationKey>
  /** Accepted before and still active, but no longer on the list. */
  readonly deactivations: ReadonlyArray<LocationKey>
}

/** `active`: accepted before and active since; `listed`: what the list says of each place, whether it is to be active. Both by `keyOf`. */
export const planReconcile = (
  active: ReadonlyMap<string, LocationKey>,
  listed: ReadonlyMap<string, LocationKey & { readonly active: boolean }>,
): ReconcilePlan => {
  const wanted = [...listed].filter(([, place]) => place.active)
  const known = (key: string): boolean => active.has(key)
  return {
    creates: wanted.filter(([key]) => !known(key)).map(([, place]) => toLocationKey(place)),
    updates: wanted.filter(([key]) => known(key)).map(([, place]) => toLocationKey(place)),
    deactivations: [...active].filter(([key]) => !listed.has(key)).map(([, place]) => place),
  }
}

/** Refuses a plan that deactivates more than `maxPercent` of the `active` locations, as a list that was cut off would. */
export const checkDeactivations = (
  { deactivations }: ReconcilePlan,
  active: number,
  maxPercent: number,
): E.Either<Failure, void> =>
  deactivations.length * 100 <= maxPercent * active
    ? E.right(undefined)
    : E.left(
        configFailure(
          `locations: ${deactivations.length} of ${active} locations are no longer on the list, more than max_deactivations_percent (${maxPercent}); none is deactivated. See that the list is complete, or raise it for this run.`,
        ),
      )
