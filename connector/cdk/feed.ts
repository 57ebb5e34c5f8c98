import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'

/** A sequence of effects, pulled one at a time; its first `Left` is its last item. */
export type Feed<Err, A> = AsyncIterable<E.Either<Err, A>>

/** What a step of `unfold` answers: an item, and the state to go on from, if any. */
export type FeedStep<S, A> = readonly [item: A, next: O.Option<S>]

/** Runs `step` from `seed` until it names no next state; nothing runs before it is pulled. */
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

/** These items and no more. */
export async function* feedOf<Err, A>(...all: ReadonlyArray<E.Either<Err, A>>): Feed<Err, A> {
  yield* all
}

/** What an effect's answer leads to; its failure is the only item. */
export async function* chainEffect<Err, A, B>(
  effect: TaskEither<Err, A>,
  feed: (answer: A) => Feed<Err, B>,
): Feed<Err, B> {
  const answer = await effect()
  if (E.isLeft(answer)) yield answer
  else yield* feed(answer.right)
}

/** One feed, and where it ended well, what `next` then answers. */
export const concatFeed = <Err, A>(next: () => Feed<Err, A>) =>
  async function* (feed: Feed<Err, A>): Feed<Err, A> {
    for await (const item of feed) {
      yield item
      if (E.isLeft(item)) return
    }
    yield* next()
  }

/** The same items; the failure it may end with, told otherwise. */
export const mapFeedFailure = <Err, Other>(f: (failure: Err) => Other) =>
  async function* <A>(feed: Feed<Err, A>): Feed<Other, A> {
    for await (const item of feed) yield E.mapLeft(f)(item)
  }

/** Each item becomes any number of items, in order. */
export const flatMapFeed = <A, B>(f: (item: A) => Iterable<B>) =>
  async function* <Err>(feed: Feed<Err, A>): Feed<Err, B> {
    for await (const item of feed) {
      if (E.isLeft(item)) yield item
      else for (const b of f(item.right)) yield E.right(b)
    }
  }

/** The same where an item may break the feed. */
export const flatMapFeedEither = <Err, A, B>(f: (item: A) => E.Either<Err, Iterable<B>>) =>
  async function* (feed: Feed<Err, A>): Feed<Err, B> {
    for await (const item of feed) {
      const made = E.isLeft(item) ? item : f(item.right)
      if (E.isLeft(made)) {
        yield made
        return
      }
      for (const b of made.right) yield E.right(b)
    }
  }

/** Back to one effect: hands each item to `sink`, stopping at the first failure of either. */
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
