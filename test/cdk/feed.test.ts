import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { describe, expect, it } from 'vitest'
import {
  batchFeed,
  chainEffect,
  concatFeed,
  drainFeed,
  type Feed,
  feedOf,
  flatMapFeed,
  flatMapFeedEither,
  mapFeedFailure,
  unfoldFeed,
} from '../../connector/cdk/feed'

const collectItems = async <Err, A>(feed: Feed<Err, A>): Promise<ReadonlyArray<E.Either<Err, A>>> => {
  const items: Array<E.Either<Err, A>> = []
  for await (const item of feed) items.push(item)
  return items
}

/** An iterator over a feed, which pulls one item at a time. */
const iterate = <Err, A>(feed: Feed<Err, A>): AsyncIterator<E.Either<Err, A>> => feed[Symbol.asyncIterator]()

/** A feed that holds `items`, and the list of those pulled so far. */
const createObservedFeed = (...items: ReadonlyArray<E.Either<string, number>>) => {
  const pulled: Array<E.Either<string, number>> = []
  const feed = (async function* (): Feed<string, number> {
    for (const item of items) {
      pulled.push(item)
      yield item
    }
  })()
  return { feed, pulled }
}

describe('batchFeed', () => {
  it('joins the rows of items until there are enough, and gives what is left at the end', async () => {
    const items = [[1], [2, 3], [], [4, 5, 6], [7]].map((rows) => E.right(rows))
    expect(await collectItems(batchFeed(3)(feedOf<string, ReadonlyArray<number>>(...items)))).toEqual([
      E.right([1, 2, 3]),
      E.right([4, 5, 6]),
      E.right([7]),
    ])
    expect(await collectItems(batchFeed(3)(feedOf<string, ReadonlyArray<number>>(E.right([]))))).toEqual([])
  })

  it('ends with the failure of the feed, without the rows that wait', async () => {
    const items = [E.right([1, 2]), E.left('broken'), E.right([3])]
    expect(await collectItems(batchFeed(3)(feedOf<string, ReadonlyArray<number>>(...items)))).toEqual([
      E.left('broken'),
    ])
  })
})

describe('unfoldFeed', () => {
  /** Counts up to 3; fails at `failAt`. */
  const createCounter = (failAt?: number) => {
    const steps: number[] = []
    const step = (state: number) => async () => {
      steps.push(state)
      return state === failAt
        ? E.left(`failed at ${state}`)
        : E.right([`item ${state}`, state < 3 ? O.some(state + 1) : O.none] as const)
    }
    return { steps, feed: unfoldFeed<string, number, string>(step)(1) }
  }

  it('yields the item of each step in order, until a step names no next state', async () => {
    const { steps, feed } = createCounter()
    expect(await collectItems(feed)).toEqual([E.right('item 1'), E.right('item 2'), E.right('item 3')])
    expect(steps).toEqual([1, 2, 3])
  })

  it('runs a step only when its item is pulled', async () => {
    const { steps, feed } = createCounter()
    const iterator = iterate(feed)
    await Promise.resolve()
    expect(steps).toEqual([])
    await iterator.next()
    expect(steps).toEqual([1])
    await iterator.next()
    expect(steps).toEqual([1, 2])
  })

  it('yields the first failure as its last item, and runs no step after it', async () => {
    const { steps, feed } = createCounter(2)
    expect(await collectItems(feed)).toEqual([E.right('item 1'), E.left('failed at 2')])
    expect(steps).toEqual([1, 2])
  })

  it('runs no further step where its reader stops', async () => {
    const { steps, feed } = createCounter()
    for await (const _ of feed) break
    expect(steps).toEqual([1])
  })
})

describe('feedOf', () => {
  it('yields its items in order', async () => {
    expect(await collectItems(feedOf(E.right(1), E.right(2), E.left('end')))).toEqual([
      E.right(1),
      E.right(2),
      E.left('end'),
    ])
  })

  it('is empty without items', async () => {
    expect(await collectItems(feedOf())).toEqual([])
  })
})

describe('chainEffect', () => {
  it('yields the items of the feed that is made from the answer', async () => {
    const feed = chainEffect(TE.right(5), (answer) => feedOf<string, number>(E.right(answer), E.right(answer + 1)))
    expect(await collectItems(feed)).toEqual([E.right(5), E.right(6)])
  })

  it("yields the effect's failure as its only item, and makes no feed", async () => {
    const made: number[] = []
    const feed = chainEffect(TE.left<string, number>('refused'), (answer) => {
      made.push(answer)
      return feedOf<string, number>(E.right(answer))
    })
    expect(await collectItems(feed)).toEqual([E.left('refused')])
    expect(made).toEqual([])
  })

  it('runs its effect only when it is pulled', async () => {
    let runs = 0
    const effect = async () => {
      runs += 1
      return E.right(runs)
    }
    const iterator = iterate(chainEffect<string, number, number>(effect, (answer) => feedOf(E.right(answer))))
    await Promise.resolve()
    expect(runs).toBe(0)
    expect(await iterator.next()).toEqual({ done: false, value: E.right(1) })
    expect(runs).toBe(1)
  })
})

describe('concatFeed', () => {
  it('yields the items of the second feed after those of the first', async () => {
    const concat = concatFeed(() => feedOf<string, number>(E.right(3), E.left('end')))
    expect(await collectItems(concat(feedOf<string, number>(E.right(1), E.right(2))))).toEqual([
      E.right(1),
      E.right(2),
      E.right(3),
      E.left('end'),
    ])
  })

  it('makes the second feed only when the first has ended', async () => {
    let made = 0
    const iterator = iterate(
      concatFeed(() => {
        made += 1
        return feedOf<string, number>(E.right(2))
      })(feedOf<string, number>(E.right(1))),
    )
    await iterator.next()
    expect(made).toBe(0)
    expect(await iterator.next()).toEqual({ done: false, value: E.right(2) })
    expect(made).toBe(1)
  })

  it('ends with the failure of the first feed, pulls nothing after it and makes no second feed', async () => {
    const { feed, pulled } = createObservedFeed(E.right(1), E.left('broken'), E.right(2))
    let made = 0
    const items = await collectItems(
      concatFeed(() => {
        made += 1
        return feedOf<string, number>(E.right(3))
      })(feed),
    )
    expect(items).toEqual([E.right(1), E.left('broken')])
    expect(pulled).toEqual([E.right(1), E.left('broken')])
    expect(made).toBe(0)
  })
})

describe('mapFeedFailure', () => {
  it('changes the failure and leaves every other item as it is', async () => {
    const items = await collectItems(
      mapFeedFailure((text: string) => text.length)(feedOf<string, number>(E.right(1), E.right(2), E.left('broken'))),
    )
    expect(items).toEqual([E.right(1), E.right(2), E.left(6)])
  })

  it('pulls one item for each that is pulled from it', async () => {
    const { feed, pulled } = createObservedFeed(E.right(1), E.left('broken'))
    const iterator = iterate(mapFeedFailure((text: string) => text)(feed))
    await Promise.resolve()
    expect(pulled).toEqual([])
    await iterator.next()
    expect(pulled).toEqual([E.right(1)])
  })
})

describe('flatMapFeed', () => {
  const repeat = (count: number): ReadonlyArray<string> => Array.from({ length: count }, (_, i) => `${count}.${i}`)

  it('yields none, one or several items for each, in order', async () => {
    const items = await collectItems(flatMapFeed(repeat)(feedOf<string, number>(E.right(2), E.right(0), E.right(1))))
    expect(items).toEqual([E.right('2.0'), E.right('2.1'), E.right('1.0')])
  })

  it('passes a failure on as its last item', async () => {
    const items = await collectItems(flatMapFeed(repeat)(feedOf<string, number>(E.right(1), E.left('broken'))))
    expect(items).toEqual([E.right('1.0'), E.left('broken')])
  })

  it('pulls the next item only when all that was made of the one before is pulled', async () => {
    const { feed, pulled } = createObservedFeed(E.right(2), E.right(1))
    const iterator = iterate(flatMapFeed(repeat)(feed))
    await Promise.resolve()
    expect(pulled).toEqual([])
    await iterator.next()
    await iterator.next()
    expect(pulled).toEqual([E.right(2)])
    await iterator.next()
    expect(pulled).toEqual([E.right(2), E.right(1)])
  })
})

describe('flatMapFeedEither', () => {
  const toParts = (count: number): E.Either<string, ReadonlyArray<number>> =>
    count < 0 ? E.left(`refused ${count}`) : E.right(Array.from({ length: count }, (_, i) => i))

  it('yields none, one or several items for each, in order', async () => {
    const items = await collectItems(
      flatMapFeedEither(toParts)(feedOf<string, number>(E.right(1), E.right(0), E.right(2))),
    )
    expect(items).toEqual([E.right(0), E.right(0), E.right(1)])
  })

  it.each([
    ['of the feed', E.left('broken'), E.left('broken')],
    ['that an item is turned into', E.right(-1), E.left('refused -1')],
  ])('yields the first failure %s as its last item, and pulls nothing after it', async (_, failing, failure) => {
    const { feed, pulled } = createObservedFeed(E.right(1), failing, E.right(2))
    expect(await collectItems(flatMapFeedEither(toParts)(feed))).toEqual([E.right(0), failure])
    expect(pulled).toEqual([E.right(1), failing])
  })

  it('turns an item into others only when it is pulled', async () => {
    const { feed, pulled } = createObservedFeed(E.right(1), E.right(1))
    const iterator = iterate(flatMapFeedEither(toParts)(feed))
    await Promise.resolve()
    expect(pulled).toEqual([])
    await iterator.next()
    expect(pulled).toEqual([E.right(1)])
  })
})

describe('drainFeed', () => {
  /** A sink that keeps what it gets and refuses `bad`. */
  const createSink = (bad?: number) => {
    const received: number[] = []
    const sink = (item: number) => async () => {
      await Promise.resolve()
      received.push(item)
      return item === bad ? E.left(`cannot take ${item}`) : E.right(undefined)
    }
    return { received, sink }
  }

  it('hands each item to the sink in order, and succeeds at the end', async () => {
    const { received, sink } = createSink()
    expect(await drainFeed<string, number>(sink)(feedOf<string, number>(E.right(1), E.right(2)))()).toEqual(
      E.right(undefined),
    )
    expect(received).toEqual([1, 2])
  })

  it('pulls nothing before it is run', async () => {
    const { received, sink } = createSink()
    const { feed, pulled } = createObservedFeed(E.right(1))
    const effect = drainFeed<string, number>(sink)(feed)
    await Promise.resolve()
    expect([pulled, received]).toEqual([[], []])
    await effect()
    expect([pulled, received]).toEqual([[E.right(1)], [1]])
  })

  it('pulls an item only when the sink has taken the one before', async () => {
    const order: string[] = []
    const feed = (async function* (): Feed<string, number> {
      for (const item of [1, 2]) {
        order.push(`pulled ${item}`)
        yield E.right(item)
      }
    })()
    const sink = (item: number) => async () => {
      await new Promise((resolve) => setTimeout(resolve, 1))
      order.push(`taken ${item}`)
      return E.right(undefined)
    }
    await drainFeed<string, number>(sink)(feed)()
    expect(order).toEqual(['pulled 1', 'taken 1', 'pulled 2', 'taken 2'])
  })

  it('stops at the failure of the feed', async () => {
    const { received, sink } = createSink()
    const { feed, pulled } = createObservedFeed(E.right(1), E.left('broken'), E.right(2))
    expect(await drainFeed<string, number>(sink)(feed)()).toEqual(E.left('broken'))
    expect(received).toEqual([1])
    expect(pulled).toEqual([E.right(1), E.left('broken')])
  })

  it('stops at the failure of the sink', async () => {
    const { received, sink } = createSink(2)
    const { feed, pulled } = createObservedFeed(E.right(1), E.right(2), E.right(3))
    expect(await drainFeed<string, number>(sink)(feed)()).toEqual(E.left('cannot take 2'))
    expect(received).toEqual([1, 2])
    expect(pulled).toEqual([E.right(1), E.right(2)])
  })
})
