import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import * as airbyte from '../airbyte/state'
import { bookmarksOf, findSingerState } from '../airbyte/state'
import type { SourceState } from '../catalog'
import type { Failure } from '../failure'

/** A Singer state as it was given. Each state replaces the one before, so the next STATE repeats all of it. */
export type SingerState = {
  readonly value: Readonly<Record<string, unknown>>
  readonly bookmarks: SourceState
  /** The stream that an interrupted run was reading. */
  readonly currentlySyncing: O.Option<string>
}

const toSingerState = (whole: Readonly<Record<string, unknown>>): SingerState => ({
  value: whole,
  bookmarks: bookmarksOf(whole),
  currentlySyncing: typeof whole.currently_syncing === 'string' ? O.some(whole.currently_syncing) : O.none,
})

/** A state file: Singer's value, printed lines of it (the last wins), or a state of the Airbyte source. */
export const decodeSingerState = (given: unknown): E.Either<Failure, SingerState> =>
  pipe(
    findSingerState(Array.isArray(given) ? (given.at(-1) ?? {}) : (given ?? {})),
    O.match(
      () =>
        pipe(
          airbyte.decodeAirbyteState(given),
          E.map((bookmarks) => toSingerState({ bookmarks })),
        ),
      (whole) => E.right(toSingerState(whole)),
    ),
  )

/** `whole` with these bookmarks, which replace those of the same streams. */
export const replaceBookmarks = (
  whole: SingerState['value'],
  bookmarks: SourceState,
  syncing: string | undefined,
): SingerState['value'] => ({
  ...whole,
  bookmarks: { ...(t.UnknownRecord.is(whole.bookmarks) ? whole.bookmarks : {}), ...bookmarks },
  currently_syncing: syncing ?? null,
})
