import fc from 'fast-check'
import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { describe, expect, it } from 'vitest'
import { type Failure, transientFailure } from '../../../connector/cdk/failure'
import type { BatchAnswer, OpenSink } from '../../../connector/cdk/sink'
import { deliverBatch } from '../../../connector/cdk/write/delivery'
import { draws } from '../../support/draws'

type TestSink = Pick<OpenSink<number>, 'write' | 'isReachable'>

const accepted = { _tag: 'Accepted' } as const
const acceptAll = (items: ReadonlyArray<number>): BatchAnswer => ({
  _tag: 'Verdicts',
  verdicts: items.map(() => accepted),
})

/** A service that refuses a whole batch for one bad item, or for having more than `maxItems`. */
const refuseBatches =
  (isBad: (item: number) => boolean, maxItems = Number.POSITIVE_INFINITY): TestSink['write'] =>
  (items) => {
    if (items.length > maxItems) return TE.right({ _tag: 'Refused', reason: 'too many', tooLarge: true })
    return TE.right(items.some(isBad) ? { _tag: 'Refused', reason: 'bad', tooLarge: false } : acceptAll(items))
  }
const range = (n: number) => Array.from({ length: n }, (_, index) => index)
const deliver = async (write: TestSink['write'], items: ReadonlyArray<number>) => {
  const result = await deliverBatch({ write, isReachable: async () => true })(items)()
  if (E.isLeft(result)) throw new Error(result.left.message)
  return result.right
}

describe('delivering a batch', () => {
  it('halves a refused batch until exactly the bad items are rejected', () =>
    fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 60 }), fc.uniqueArray(fc.nat(59)), async (length, bad) => {
        const items = range(length)
        const { verdicts } = await deliver(
          refuseBatches((item) => bad.includes(item)),
          items,
        )
        expect(verdicts.map(({ _tag }) => _tag)).toEqual(
          items.map((item) => (bad.includes(item) ? 'Rejected' : 'Accepted')),
        )
      }),
      draws(100),
    ))

  it('finds the size that passes if a batch is refused for its size', async () => {
    const { maxItems, verdicts } = await deliver(
      refuseBatches(() => false, 30),
      range(100),
    )
    expect(maxItems).toEqual(O.some(25))
    expect(verdicts).toHaveLength(100)
    expect(verdicts.every(({ _tag }) => _tag === 'Accepted')).toBe(true)
  })

  it('takes a 400 for one of size if both halves pass, and not if an item is bad', async () => {
    const refuseMoreThanTen = (items: ReadonlyArray<number>): TE.TaskEither<Failure, BatchAnswer> =>
      TE.right(items.length > 10 ? { _tag: 'Refused', reason: '400', tooLarge: false } : acceptAll(items))
    expect((await deliver(refuseMoreThanTen, range(20))).maxItems).toEqual(O.some(10))
    const refuseSeven = refuseBatches((item) => item === 7)
    expect((await deliver(refuseSeven, range(8))).maxItems).toEqual(O.none)
  })

  it('sends items once more that the answer does not name, then rejects them', async () => {
    const batches: Array<ReadonlyArray<number>> = []
    const write = (items: ReadonlyArray<number>): TE.TaskEither<Failure, BatchAnswer> => {
      batches.push(items)
      const isUnnamed = (item: number) => item === 1 || (item === 3 && batches.length === 1)
      return TE.right({
        _tag: 'Verdicts',
        verdicts: items.map((item) => (isUnnamed(item) ? { _tag: 'Unknown' } : accepted)),
      })
    }
    const { verdicts } = await deliver(write, range(4))
    expect(batches).toEqual([
      [0, 1, 2, 3],
      [1, 3],
    ])
    expect(verdicts.map(({ _tag }) => _tag)).toEqual(['Accepted', 'Rejected', 'Accepted', 'Accepted'])
    expect(verdicts[1]).toMatchObject({ reason: expect.stringContaining('no outcome') })
  })

  it('takes the smallest size that was found', async () => {
    const write: TestSink['write'] = (items) =>
      TE.right(
        items.length > (items.includes(0) ? 3 : 10)
          ? { _tag: 'Refused', reason: 'x', tooLarge: true }
          : acceptAll(items),
      )
    expect((await deliver(write, range(16))).maxItems).toEqual(O.some(2))
    expect((await deliver(write, range(16).reverse())).maxItems).toEqual(O.some(2))
    expect((await deliver(write, range(3))).maxItems).toEqual(O.none)
    expect(await deliver(write, [])).toEqual({ verdicts: [], maxItems: O.none })
  })

  it('rejects a single item with the reason of the refusal', async () => {
    const refuse: TestSink['write'] = () => TE.right({ _tag: 'Refused', reason: 'bad', tooLarge: true })
    expect(await deliver(refuse, [1])).toEqual({ verdicts: [{ _tag: 'Rejected', reason: 'bad' }], maxItems: O.none })
  })

  it('repeats items of a half that the answer does not name, and reports the size that was found', async () => {
    const write: TestSink['write'] = (items) =>
      TE.right(
        items.length > 3
          ? { _tag: 'Verdicts', verdicts: items.map((item) => (item === 0 ? accepted : { _tag: 'Unknown' })) }
          : items.length > 1
            ? { _tag: 'Refused', reason: 'x', tooLarge: true }
            : acceptAll(items),
      )
    expect(await deliver(write, range(4))).toEqual({ verdicts: range(4).map(() => accepted), maxItems: O.some(1) })
  })

  it('rejects an item that an answer leaves out', async () => {
    const write: TestSink['write'] = (items) =>
      TE.right({ _tag: 'Verdicts', verdicts: items.map(() => ({ _tag: 'Unknown' })) })
    const { verdicts } = await deliver(write, [1])
    expect(verdicts).toEqual([{ _tag: 'Rejected', reason: 'no outcome: the answer does not name it' }])
  })

  it('ends with the failure of sending again, or of either half', async () => {
    const failure = transientFailure('gone')
    const unnamed: BatchAnswer = { _tag: 'Verdicts', verdicts: [{ _tag: 'Unknown' }, accepted] }
    const failSecond: TestSink['write'] = (items) => (items.length > 1 ? TE.right(unnamed) : TE.left(failure))
    expect(await deliverBatch({ write: failSecond, isReachable: async () => true })([1, 2])()).toEqual(E.left(failure))
    const failHalf: TestSink['write'] = (items) =>
      items.length > 1
        ? TE.right({ _tag: 'Refused', reason: 'x', tooLarge: false })
        : items.includes(2)
          ? TE.left(failure)
          : TE.right(acceptAll(items))
    expect(await deliverBatch({ write: failHalf, isReachable: async () => true })([1, 2])()).toEqual(E.left(failure))
  })

  it('ends with the first failure', async () => {
    const failure = transientFailure('gone')
    const write = (items: ReadonlyArray<number>): TE.TaskEither<Failure, BatchAnswer> =>
      items.length > 1 ? TE.right({ _tag: 'Refused', reason: 'x', tooLarge: false }) : TE.left(failure)
    expect(await deliverBatch({ write, isReachable: async () => true })(range(4))()).toEqual(E.left(failure))
  })
})

describe('a service that repeatedly fails on a batch', () => {
  const rejected = { _tag: 'Rejected', reason: 'fails on it' }
  const bad = { _tag: 'Rejected', reason: 'bad' } as const
  const failure = transientFailure('it answered 500')
  const unanswered: BatchAnswer = { _tag: 'Unanswered', reason: 'fails on it', failure }

  /** Fails on the items for which `isBad` is true; `sent`: each batch, and if it was sent as suspect. */
  const failOn = (isBad: (item: number) => boolean) => {
    const sent: Array<readonly [ReadonlyArray<number>, boolean]> = []
    const write: TestSink['write'] = (items, isSuspect) => {
      sent.push([items, isSuspect])
      return TE.right(items.some(isBad) ? unanswered : acceptAll(items))
    }
    return { sent, write }
  }

  it.each<[string, ReadonlyArray<number>, number, boolean, unknown]>([
    ['one bad item is rejected, the others are accepted', [37], 100, true, [37]],
    ['the first item is rejected alone', [0], 100, true, [0]],
    ['the last of a few items is rejected alone', [4], 5, true, [4]],
    ['several bad items are rejected', [3, 50, 51, 99], 100, true, [3, 50, 51, 99]],
    ['nothing is halved if the service is not reachable', [37], 100, false, failure],
    ['no item is rejected if none is accepted, though the service is reachable', range(100), 100, true, failure],
    ['a single item is not rejected if nothing else is accepted', [0], 1, true, failure],
  ])('%s', async (_, bad, count, isReachable, expected) => {
    const { sent, write } = failOn((item) => bad.includes(item))
    const result = await deliverBatch({ write, isReachable: async () => isReachable })(range(count))()
    const outcome = E.isLeft(result)
      ? result.left
      : result.right.verdicts.flatMap(({ _tag }, index) => (_tag === 'Rejected' ? [index] : []))
    expect(outcome).toEqual(expected)
    expect(sent.length).toBeLessThanOrEqual(isReachable ? 64 : 1)
    expect(sent.map(([, isSuspect]) => isSuspect)).toEqual(sent.map((_, index) => index > 0))
  })

  it('rejects the only item of a batch if another batch is accepted meanwhile', async () => {
    const { write } = failOn((item) => item === 7)
    const sink: TestSink = { write, isReachable: async () => E.isRight(await deliverItems([1])()) }
    const deliverItems = deliverBatch(sink)
    expect(await deliverItems([7])()).toEqual(E.right({ verdicts: [rejected], maxItems: O.none }))
  })

  it('fails if another batch was accepted before the failure alone: the service may have gone since', async () => {
    const { write } = failOn((item) => item >= 7)
    const deliverItems = deliverBatch<number>({
      write: (items, isSuspect) => async () => {
        if (items.includes(7) && !isSuspect) await deliverItems([1])()
        return write(items, isSuspect)()
      },
      isReachable: async () => true,
    })
    expect(await deliverItems([7, 8])()).toEqual(E.left(failure))
  })

  it.each<[string, ReadonlyArray<number>, E.Either<Failure, ReadonlyArray<object>>]>([
    ['rejects an item where another is accepted, though not all', [1, 3], E.right([rejected, bad, accepted, bad])],
    ['fails on an item where all others are rejected', [1, 2, 3], E.left(failure)],
  ])('%s', async (_, refused, expected) => {
    const write: TestSink['write'] = (items) =>
      TE.right(
        items.includes(0)
          ? unanswered
          : { _tag: 'Verdicts', verdicts: items.map((item) => (refused.includes(item) ? bad : accepted)) },
      )
    const result = await deliverBatch({ write, isReachable: async () => true })(range(4))()
    expect(E.map(({ verdicts }: { verdicts: ReadonlyArray<object> }) => verdicts)(result)).toEqual(expected)
    if (E.isRight(result)) expect(result.right.maxItems).toEqual(O.none)
  })

  it('accepts an item that failed only while the service was away', async () => {
    let away = true
    const write: TestSink['write'] = (items, isSuspect) => {
      if (isSuspect && items.includes(2)) away = false
      return TE.right(away || items.includes(3) ? unanswered : acceptAll(items))
    }
    const result = await deliverBatch({ write, isReachable: async () => true })(range(4))()
    expect(E.isRight(result) && result.right.verdicts).toEqual([accepted, accepted, accepted, rejected])
  })

  it.each([
    [7, 'accepts', true],
    [8, 'is at fault', false],
  ])('whose first %i items fail alone %s', async (count, _, isDelivered) => {
    const { sent, write } = failOn((item) => item < count)
    const result = await deliverBatch({ write, isReachable: async () => true })(range(16))()
    expect(E.isRight(result)).toBe(isDelivered)
    if (isDelivered) expect(sent.slice(-count).map(([items]) => items)).toEqual(range(count).map((item) => [item]))
  })

  it('is asked once whether it is there', async () => {
    let asked = 0
    const { write } = failOn((item) => item < 2)
    const isReachable = async () => {
      asked += 1
      return true
    }
    await deliverBatch({ write, isReachable })(range(8))()
    expect(asked).toBe(1)
  })

  it('sends a suspect once more, and not again if its answer does not name it', async () => {
    let isSecond = false
    const sent: Array<ReadonlyArray<number>> = []
    const write: TestSink['write'] = (items) => {
      sent.push(items)
      if (!items.includes(0)) return TE.right(acceptAll(items))
      if (items.length === 1 && isSecond) return TE.right({ _tag: 'Verdicts', verdicts: [{ _tag: 'Unknown' }] })
      isSecond = items.length === 1
      return TE.right(unanswered)
    }
    const result = await deliverBatch({ write, isReachable: async () => true })(range(2))()
    expect(sent).toEqual([[0, 1], [0], [1], [0]])
    expect(E.isRight(result) && result.right.verdicts).toEqual([
      { _tag: 'Rejected', reason: 'no outcome: the answer does not name it' },
      accepted,
    ])
  })

  it('ends with the failure of a suspect that is sent once more', async () => {
    let tries = 0
    const gone = transientFailure('gone')
    const write: TestSink['write'] = (items) => {
      if (!items.includes(0)) return TE.right(acceptAll(items))
      tries += 1
      return tries > 2 ? TE.left(gone) : TE.right(unanswered)
    }
    expect(await deliverBatch({ write, isReachable: async () => true })(range(2))()).toEqual(E.left(gone))
  })
})
