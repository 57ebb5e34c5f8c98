import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'

/** Passes pages on, showing each to `look` as it comes. */
export const watchPages =
  <Args extends ReadonlyArray<unknown>, Err, Page>(
    fetch: (...args: Args) => TaskEither<Err, Page>,
    look: (page: Page) => void,
  ) =>
  (...args: Args): TaskEither<Err, Page> =>
    TE.tapIO((page: Page) => () => look(page))(fetch(...args))
