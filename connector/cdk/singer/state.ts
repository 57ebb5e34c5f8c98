import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import * as airbyte from '../airbyte-given'
import { bookmarksOf, singerValue } from '../bookmarks'
import type { State } from '../catalog'
import type { Failure } from '../failure'

/** A Singer state as it was given: targets keep only the last one, so all of it is carried forward. */
export type SingerState = {
  readonly whole: Readonly<Record<string, unknown>>
  readonly bookmarks: State
  /** The stream that an interrupted run was at. */
  readonly syncing: O.Option<string>
}

const stateOf = (whole: Readonly<Record<string, unknown>>): SingerState => ({
  whole,
  bookmarks: bookmarksOf(whole),
  syncing: typeof whole.currently_syncing === 'string' ? O.some(whole.currently_syncing) : O.none,
})

/** A state file: Singer's value, printed lines of it (the last wins), or a state of the Airbyte source. */
export const readState = (given: unknown): E.Either<Failure, SingerState> =>
  pipe(
    singerValue(Array.isArray(given) ? (given.at(-1) ?? {}) : (given ?? {})),
    O.match(
      () =>
        pipe(
          airbyte.readState(given),
          E.map((bookmarks) => stateOf({ bookmarks })),
        ),
      (whole) => E.right(stateOf(whole)),
    ),
  )

/** `whole` with these bookmarks in place of those of the same streams. */
export const withBookmarks = (
  whole: SingerState['whole'],
  bookmarks: State,
  syncing: string | undefined,
): SingerState['whole'] => ({
  ...whole,
  bookmarks: { ...(t.UnknownRecord.is(whole.bookmarks) ? whole.bookmarks : {}), ...bookmarks },
  currently_syncing: syncing ?? null,
})
