import fc from 'fast-check'
import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { describe, expect, it } from 'vitest'
import { type Failure, transientFailure } from '../../../connector/cdk/failure'
import type { Answer } from '../../../connector/cdk/sink'
import { settle } from '../../../connector/cdk/write/settle'

const seed = 20261121
const accept: Answer['_tag'] = 'Verdicts'
const all = (items: ReadonlyArray<number>): Answer => ({
  _tag: accept,
  verdicts: items.map(() => ({ _tag: 'Accepted' })),
})

/** A service that refuses a whole batch for one bad item, or for its size. */
const service = (isBad: (item: number) => boolean, most = Number.POSITIVE_INFINITY) => {
  const batches: Array<ReadonlyArray<number>> = []
  const write = (items: ReadonlyArray<number>): TE.TaskEither<Failure, Answer> => {
    batches.push(items)
    if (items.length > most) return TE.right({ _tag: 'Refused', reason: 'too many', tooLarge: true })
    return TE.right(items.some(isBad) ? { _tag: 'Refused', reason: 'bad', tooLarge: false } : all(items))
  }
  return { batches, write }
}
const range = (n: number) => Array.from({ length: n }, (_, index) => index)
const run = async (write: Parameters<typeof settle<number>>[0], items: ReadonlyArray<number>) => {
  const result = await settle(write)(items)()
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
    const { most, verdicts } = await run(service(() => false, 30).write, range(100))
    expect(most).toEqual(O.some(25))
    expect(verdicts.every(({ _tag }) => _tag === 'Accepted')).toBe(true)
  })

  it('takes a 400 whose halves all pass for one of size, and one with a bad item for none', async () => {
    const many = (items: ReadonlyArray<number>): TE.TaskEither<Failure, Answer> =>
      TE.right(items.length > 10 ? { _tag: 'Refused', reason: '400', tooLarge: false } : all(items))
    expect((await run(many, range(20))).most).toEqual(O.some(10))
    expect((await run(service((item) => item === 7).write, range(8))).most).toEqual(O.none)
  })

  it('sends once more what the answer does not tell, then rejects it', async () => {
    const batches: Array<ReadonlyArray<number>> = []
    const write = (items: ReadonlyArray<number>): TE.TaskEither<Failure, Answer> => {
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
    const write = (items: ReadonlyArray<number>): TE.TaskEither<Failure, Answer> =>
      items.length > 1 ? TE.right({ _tag: 'Refused', reason: 'x', tooLarge: false }) : TE.left(failure)
    expect(await settle(write)(range(4))()).toEqual(E.left(failure))
  })
})
