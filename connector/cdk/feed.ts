import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'

/** A sequence of items, pulled one at a time; the first `Left` is its last item. */
export type Feed<Err, A> = AsyncIterable<E.Either<Err, A>>

/** The result of a step of `unfoldFeed`: an item, and the state of the next step, if there is one. */
export type FeedStep<S, A> = readonly [item: A, next: O.Option<S>]

/** Runs `step` from `seed` until a step returns no next state. Each step runs when its item is pulled. */
export const unfoldFeed = <Err, S, A>(step: (state: S) => TaskEither<Err, FeedStep<S, A>>) =>
  async function* (seed: S): Feed<Err, A> {
    for (let next = O.some(seed); O.isSome(next); ) {
      const answer = await step(next.value)()
      if (E.isLeft(answer)) {
        yield answer
        return
      }
      yield E.right(answer.right[0])
      next = answer.right[1]
    }
  }

export async function* feedOf<Err, A>(...all: ReadonlyArray<E.Either<Err, A>>): Feed<Err, A> {
  yield* all
}

/** The feed made from an effect's result. If the effect fails, that failure is the only item. */
export async function* chainEffect<Err, A, B>(
  effect: TaskEither<Err, A>,
  feed: (answer: A) => Feed<Err, B>,
): Feed<Err, B> {
  const answer = await effect()
  if (E.isLeft(answer)) yield answer
  else yield* feed(answer.right)
}

/** A feed, followed by the feed of `next` unless it failed. */
export const concatFeed = <Err, A>(next: () => Feed<Err, A>) =>
  async function* (feed: Feed<Err, A>): Feed<Err, A> {
    for await (const item of feed) {
      yield item
      if (E.isLeft(item)) return
    }
    yield* next()
  }

/** The same items, with `f` applied to the failure. */
export const mapFeedFailure = <Err, Other>(f: (failure: Err) => Other) =>
  async function* <A>(feed: Feed<Err, A>): Feed<Other, A> {
    for await (const item of feed) yield E.mapLeft(f)(item)
  }

/** Replaces each item by any number of items, in order. */
export const flatMapFeed = <A, B>(f: (item: A) => Iterable<B>) =>
  async function* <Err>(feed: Feed<Err, A>): Feed<Err, B> {
    for await (const item of feed) {
      if (E.isLeft(item)) yield item
      else for (const b of f(item.right)) yield E.right(b)
    }
  }

/** Replaces each item by any number of items; a Left of `f` ends the feed. */
export const flatMapFeedEither = <Err, A, B>(f: (item: A) => E.Either<Err, Iterable<B>>) =>
  async function* (feed: Feed<Err, A>): Feed<Err, B> {
    for await (const item of feed) {
      const mapped = E.isLeft(item) ? item : f(item.right)
      if (E.isLeft(mapped)) {
        yield mapped
        return
      }
      for (const b of mapped.right) yield E.right(b)
    }
  }

/**
 * Joins the rows of all items into batches of at least `size`; the last batch may be smaller. A failure drops the rows
 * not yet passed on.
 */
export const batchFeed = (size: number) =>
  async function* <Err, A>(feed: Feed<Err, ReadonlyArray<A>>): Feed<Err, ReadonlyArray<A>> {
    let rows: Array<A> = []
    for await (const item of feed) {
      if (E.isLeft(item)) {
        yield item
        return
      }
      for (const row of item.right) rows.push(row)
      if (rows.length < size) continue
      yield E.right(rows)
      rows = []
    }
    if (rows.length > 0) yield E.right(rows)
  }

/** Passes each item to `sink`. Ends at the first failure of the feed or of `sink`. */
export const drainFeed =
  <Err, A>(sink: (item: A) => TaskEither<Err, void>) =>
  (feed: Feed<Err, A>): TaskEither<Err, void> =>
  async () => {
    for await (const item of feed) {
      const done = E.isLeft(item) ? item : await sink(item.right)()
      if (E.isLeft(done)) return done
    }
    return E.right(undefined)
  }
