import fc from 'fast-check'
import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { describe, expect, it } from 'vitest'
import { type Failure, transientFailure } from '../../../connector/cdk/failure'
import type { BatchAnswer, OpenSink } from '../../../connector/cdk/sink'
import { deliverBatch } from '../../../connector/cdk/write/delivery'

const seed = 20261121
const accept: BatchAnswer['_tag'] = 'Verdicts'
const all = (items: ReadonlyArray<number>): BatchAnswer => ({
  _tag: accept,
  verdicts: items.map(() => ({ _tag: 'Accepted' })),
})

/** A service that refuses a whole batch for one bad item, or for its size. */
const service = (isBad: (item: number) => boolean, most = Number.POSITIVE_INFINITY) => {
  const batches: Array<ReadonlyArray<number>> = []
  const write = (items: ReadonlyArray<number>): TE.TaskEither<Failure, BatchAnswer> => {
    batches.push(items)
    if (items.length > most) return TE.right({ _tag: 'Refused', reason: 'too many', tooLarge: true })
    return TE.right(items.some(isBad) ? { _tag: 'Refused', reason: 'bad', tooLarge: false } : all(items))
  }
  return { batches, write }
}
const range = (n: number) => Array.from({ length: n }, (_, index) => index)
const there = async () => true
const run = async (write: OpenSink<number>['write'], items: ReadonlyArray<number>) => {
  const result = await deliverBatch({ write, isReachable: there })(items)()
  if (E.isLeft(result)) throw new Error(result.left.message)
  return result.right
}

describe('settle', () => {
  it('halves a refused batch until exactly the bad items stand alone', () =>
    fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 60 }), fc.uniqueArray(fc.nat(59)), async (length, bad) => {
        const items = range(length)
        const { verdicts } = await run(service((item) => bad.includes(item)).write, items)
        expect(verdicts.map(({ _tag }) => _tag)).toEqual(
          items.map((item) => (bad.includes(item) ? 'Rejected' : 'Accepted')),
        )
      }),
      { seed, numRuns: 100 },
    ))

  it('remembers the size where the size alone was refused', async () => {
    const { maxItems, verdicts } = await run(service(() => false, 30).write, range(100))
    expect(maxItems).toEqual(O.some(25))
    expect(verdicts.every(({ _tag }) => _tag === 'Accepted')).toBe(true)
  })

  it('takes a 400 whose halves all pass for one of size, and one with a bad item for none', async () => {
    const many = (items: ReadonlyArray<number>): TE.TaskEither<Failure, BatchAnswer> =>
      TE.right(items.length > 10 ? { _tag: 'Refused', reason: '400', tooLarge: false } : all(items))
    expect((await run(many, range(20))).maxItems).toEqual(O.some(10))
    expect((await run(service((item) => item === 7).write, range(8))).maxItems).toEqual(O.none)
  })

  it('sends once more what the answer does not tell, then rejects it', async () => {
    const batches: Array<ReadonlyArray<number>> = []
    const write = (items: ReadonlyArray<number>): TE.TaskEither<Failure, BatchAnswer> => {
      batches.push(items)
      const silent = (item: number) => item === 1 || (item === 3 && batches.length === 1)
      return TE.right({
        _tag: 'Verdicts',
        verdicts: items.map((item) => (silent(item) ? { _tag: 'Unknown' } : { _tag: 'Accepted' })),
      })
    }
    const { verdicts } = await run(write, range(4))
    expect(batches).toEqual([
      [0, 1, 2, 3],
      [1, 3],
    ])
    expect(verdicts.map(({ _tag }) => _tag)).toEqual(['Accepted', 'Rejected', 'Accepted', 'Accepted'])
    expect(verdicts[1]).toMatchObject({ reason: expect.stringContaining('no outcome') })
  })

  it('ends with the first failure', async () => {
    const failure = transientFailure('gone')
    const write = (items: ReadonlyArray<number>): TE.TaskEither<Failure, BatchAnswer> =>
      items.length > 1 ? TE.right({ _tag: 'Refused', reason: 'x', tooLarge: false }) : TE.left(failure)
    expect(await deliverBatch({ write, isReachable: there })(range(4))()).toEqual(E.left(failure))
  })
})

describe('a service that fails on a batch time and again', () => {
  type Settling = Pick<OpenSink<number>, 'write' | 'isReachable'>
  const accepted = { _tag: 'Accepted' }
  const rejected = { _tag: 'Rejected', reason: 'fails on it' }
  const failure = transientFailure('it answered 500')
  /** Fails on the items that are `bad`; `sent`: each batch, and whether less patience was asked for. */
  const failing = (isBad: (item: number) => boolean) => {
    const sent: Array<readonly [ReadonlyArray<number>, boolean]> = []
    const write: OpenSink<number>['write'] = (items, suspected) => {
      sent.push([items, suspected])
      return TE.right(items.some(isBad) ? { _tag: 'Unanswered', reason: 'fails on it', failure } : all(items))
    }
    return { sent, write }
  }
  const settled = async (isBad: (item: number) => boolean, items: ReadonlyArray<number>, answers: boolean) => {
    const { sent, write } = failing(isBad)
    const result = await deliverBatch({ write, isReachable: async () => answers })(items)()
    return { sent, result: E.isLeft(result) ? result.left : rejectedOf(result.right.verdicts) }
  }
  const rejectedOf = (verdicts: ReadonlyArray<{ readonly _tag: string }>) =>
    verdicts.flatMap(({ _tag }, index) => (_tag === 'Rejected' ? [index] : []))

  it.each<[string, ReadonlyArray<number>, number, boolean, unknown]>([
    ['one bad item is rejected, the others pass', [37], 100, true, [37]],
    ['the first', [0], 100, true, [0]],
    ['the last of a few', [4], 5, true, [4]],
    ['several', [3, 50, 51, 99], 100, true, [3, 50, 51, 99]],
    ['nothing is halved where the service answers nothing else either', [37], 100, false, failure],
    ['none is rejected where none passes, whatever is answered to an empty batch', range(100), 100, true, failure],
    ['nor where the only item there is fails', [0], 1, true, failure],
  ])('%s', async (_, bad, count, answers, said) => {
    const { result, sent } = await settled((item) => bad.includes(item), range(count), answers)
    expect(result).toEqual(said)
    expect(sent.length).toBeLessThanOrEqual(answers ? 64 : 1)
    expect(sent.map(([, suspected]) => suspected)).toEqual(sent.map((_, index) => index > 0))
  })

  it('rejects an item alone in its batch where another batch passes meanwhile', async () => {
    const { write } = failing((item) => item === 7)
    const sink: Settling = { write, isReachable: async () => E.isRight(await settleOne([1])()) }
    const settleOne = deliverBatch(sink)
    expect(await settleOne([7])()).toEqual(E.right({ verdicts: [rejected], maxItems: O.none }))
  })

  it('takes nothing that passed before a batch had failed for a sign that the service is there', async () => {
    const { write } = failing((item) => item >= 7)
    const settleOne = deliverBatch<number>({
      write: (items, suspected) => async () => {
        if (items.includes(7) && !suspected) await settleOne([1])()
        return write(items, suspected)()
      },
      isReachable: async () => true,
    })
    expect(await settleOne([7, 8])()).toEqual(E.left(failure))
  })

  it('takes an item that failed only while the service was away', async () => {
    let away = true
    const write: Settling['write'] = (items, suspected) => {
      if (suspected && items.includes(2)) away = false
      return TE.right(away || items.includes(3) ? { _tag: 'Unanswered', reason: 'fails on it', failure } : all(items))
    }
    const result = await deliverBatch({ write, isReachable: async () => true })(range(4))()
    expect(E.isRight(result) && result.right.verdicts).toEqual([accepted, accepted, accepted, rejected])
  })
})
