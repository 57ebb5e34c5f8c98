import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import type { SourceState } from './catalog'

/** The value of a Singer state: bare, printed as a STATE line, or wrapped the way `meltano state get` prints it. */
export const findSingerState = (given: unknown): O.Option<Readonly<Record<string, unknown>>> => {
  if (!t.UnknownRecord.is(given)) return O.none
  if (given.type === 'STATE' && 'value' in given) return findSingerState(given.value ?? {})
  if ('singer_state' in given) return findSingerState(given.singer_state ?? {})
  const keys = Object.keys(given)
  return 'bookmarks' in given || 'currently_syncing' in given || keys.length === 0 ? O.some(given) : O.none
}

/** Each stream's bookmark that holds anything. */
export const bookmarksOf = (value: Readonly<Record<string, unknown>>): SourceState =>
  t.UnknownRecord.is(value.bookmarks)
    ? Object.fromEntries(
        Object.entries(value.bookmarks).filter(
          ([, bookmark]) => t.UnknownRecord.is(bookmark) && Object.keys(bookmark).length > 0,
        ),
      )
    : {}
