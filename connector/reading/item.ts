import type * as O from 'fp-ts/Option'
import type { RunNote } from './clock'
import { tailOf } from './known-rows'
import type { ListRow } from './list'
import { type ResumeToken, toResumeToken } from './resume-token'
import type { SentBefore, SentRange } from './sent-rows'
import type { Session } from './session'

/** What a page brought. */
export type ReadItem<R extends ListRow> = {
  /**
   * Rows up to the cutoff, those that the last run has already sent included. Their bytes last until the next item is
   * asked for.
   */
  readonly rows: ReadonlyArray<R>
  /** Where to go on once these rows are stored. Gives the same token whenever it is called. */
  readonly resumeToken: () => ResumeToken
  readonly notes: ReadonlyArray<RunNote>
  /** Only on the last item, which has no rows. */
  readonly completion?: Completion
}

/** The list is complete up to the cutoff; times in milliseconds. */
export type Completion = {
  /** The newest modifiedTime read up to the cutoff, for `nextCursor`; none if nothing was read. */
  readonly newestRowTime: O.Option<number>
  /** The time up to which nothing can have been missed, whichever clock stamps the rows. */
  readonly certainTime: O.Option<number>
  readonly cutoff: number
  /** What is known of the rows that the next run's filter `from` (milliseconds) serves again. */
  readonly sentRowsSince: (from: number) => SentBefore
  /**
   * Whether the read has met exactly the rows of a range that an earlier one has sent; `origin.rangeFrom` is not later.
   */
  readonly hasSameRows: (range: SentRange) => boolean
}

/** `tailLength`: how many of the last rows a resumed read must find again. */
export const toItem = <R extends ListRow>(session: Session<R>, rows: ReadonlyArray<R>, tailLength = 0): ReadItem<R> => {
  // Copied now: when the token is asked for, the next page may be known although none of its rows has left.
  const tail = tailLength === 0 ? [] : tailOf(session.known, tailLength)
  const progress = { ...session.progress }
  const now = session.env.now()
  return {
    rows,
    notes: session.notes.splice(0),
    resumeToken: once(() => toResumeToken(session, progress, tail, now)),
  }
}

/** Several streams may ask for the same token. */
const once = <A>(make: () => A): (() => A) => {
  let made: A | undefined
  return () => {
    made ??= make()
    return made
  }
}
