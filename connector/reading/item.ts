import type * as O from 'fp-ts/Option'
import type { RunNote } from './clock'
import { tailOf } from './known-rows'
import type { ListRow } from './list'
import { type ResumeToken, toResumeToken } from './resume-token'
import type { SentBefore, SentRange } from './sent-rows'
import type { Session } from './session'

/** What one page contributed. */
export type ReadItem<R extends ListRow> = {
  /**
   * Rows up to the cutoff, including those the last run already sent. Their bytes are valid until the next item is
   * requested.
   */
  readonly rows: ReadonlyArray<R>
  /** Where to continue once these rows are stored. Returns the same token every time. */
  readonly resumeToken: () => ResumeToken
  readonly notes: ReadonlyArray<RunNote>
  /** Only on the last item, which has no rows. */
  readonly completion?: Completion
}

/** The list is complete up to the cutoff; times in milliseconds. */
export type Completion = {
  /** The newest modifiedTime read up to the cutoff, for `nextCursor`; none if nothing was read. */
  readonly newestRowTime: O.Option<number>
  /** The time up to which nothing can be missing, whichever clock stamps the rows. */
  readonly certainTime: O.Option<number>
  readonly cutoff: number
  /** What is known about the rows that the next run's filter `from` (milliseconds) returns again. */
  readonly sentRowsSince: (from: number) => SentBefore
  /**
   * True if the read met exactly the rows of a range that an earlier run sent. `origin.rangeFrom` must not be later.
   */
  readonly hasSameRows: (range: SentRange) => boolean
}

/** `tailLength`: how many of the last rows a resumed read must find again. */
export const toItem = <R extends ListRow>(session: Session<R>, rows: ReadonlyArray<R>, tailLength = 0): ReadItem<R> => {
  // Copied now: by the time the token is requested, the next page may be known although none of its rows were sent.
  const tail = tailLength === 0 ? [] : tailOf(session.known, tailLength)
  const progress = { ...session.progress }
  const now = session.env.now()
  return {
    rows,
    notes: session.notes.splice(0),
    resumeToken: once(() => toResumeToken(session, progress, tail, now)),
  }
}

/** Computes the token once, since several streams may ask for it. */
const once = <A>(make: () => A): (() => A) => {
  let made: A | undefined
  return () => {
    made ??= make()
    return made
  }
}
