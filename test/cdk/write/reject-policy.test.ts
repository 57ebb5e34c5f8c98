import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import { type RejectPolicy, rejectionFailure, streamRejectionFailure } from '../../../connector/cdk/write/reject-policy'

const go: RejectPolicy = { onReject: 'continue', maxPercent: 10 }
const tally = (received: number, rejected: number, accepted = received - rejected) => ({ received, accepted, rejected })
const one = { nth: 7, reason: 'email is missing' }

describe('reject policy', () => {
  it.each<[string, RejectPolicy, ReturnType<typeof tally>, boolean]>([
    ['bears a few', go, tally(1000, 100), true],
    ['does not bear more than the share', go, tally(1000, 101), false],
    ['says nothing before the 100th record', go, tally(99, 50), true],
    ['says so at the 100th', go, tally(100, 11), false],
    ['bears none where the first is to fail', { ...go, onReject: 'fail' }, tally(1, 1), false],
    ['bears every one at 100 percent', { ...go, maxPercent: 100 }, tally(500, 400), true],
    ['bears none at 0 percent from the 100th on', { ...go, maxPercent: 0 }, tally(100, 1), false],
  ])('%s', (_, policy, counts, goes) => {
    expect(O.isNone(rejectionFailure(policy, 'visit_records', one, counts))).toBe(goes)
  })

  it('names the record, the reason and the remedy', () => {
    const verdict = rejectionFailure({ ...go, onReject: 'fail' }, 'visit_records', one, tally(9, 1))
    expect(verdict).toMatchObject({
      value: {
        _tag: 'Config',
        message: expect.stringMatching(/visit_records: record 7 .*email is missing.*on_reject/),
      },
    })
  })

  it.each([
    ['a stream rejected whole, however small', { ...go, maxPercent: 100 }, tally(3, 3), false],
    ['an empty stream', go, tally(0, 0), true],
    ['a small stream with one good record', go, tally(3, 2), true],
    ['a large one beyond the share', go, tally(200, 21), false],
  ])('judges at its end %s', (_, policy, counts, ends) => {
    expect(O.isNone(streamRejectionFailure(policy, 's', counts))).toBe(ends)
  })
})
