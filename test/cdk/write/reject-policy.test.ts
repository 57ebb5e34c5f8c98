import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import { configFailure } from '../../../connector/cdk/failure'
import { type RejectPolicy, rejectionFailure, streamRejectionFailure } from '../../../connector/cdk/write/reject-policy'

const tenPercent: RejectPolicy = { onReject: 'continue', maxPercent: 10 }
const countsOf = (received: number, rejected: number) => ({ received, accepted: received - rejected, rejected })
const rejection = { ordinal: 7, reason: 'email is missing' }

describe('the reject policy', () => {
  it.each<[string, RejectPolicy, ReturnType<typeof countsOf>, boolean]>([
    ['continues at the maximal percentage', tenPercent, countsOf(1000, 100), true],
    ['ends above the maximal percentage', tenPercent, countsOf(1000, 101), false],
    ['continues before the 100th record, whatever the percentage', tenPercent, countsOf(99, 50), true],
    ['ends above the percentage from the 100th record on', tenPercent, countsOf(100, 11), false],
    ['ends at the first rejection under on_reject fail', { ...tenPercent, onReject: 'fail' }, countsOf(1, 1), false],
    ['continues always at 100 percent', { ...tenPercent, maxPercent: 100 }, countsOf(500, 400), true],
    ['ends at 0 percent from the 100th record on', { ...tenPercent, maxPercent: 0 }, countsOf(100, 1), false],
  ])('%s', (_, policy, counts, continues) => {
    expect(O.isNone(rejectionFailure(policy, 'visit_records', rejection, counts))).toBe(continues)
  })

  it('fails with the record, the reason and the remedy', () => {
    const failure = rejectionFailure({ ...tenPercent, onReject: 'fail' }, 'visit_records', rejection, countsOf(9, 1))
    expect(failure).toMatchObject({
      value: {
        _tag: 'Config',
        message: expect.stringMatching(/visit_records: record 7 .*email is missing.*on_reject/),
      },
    })
  })
})

describe('at its end a stream', () => {
  it.each([
    ['fails if all its records were rejected, however few', { ...tenPercent, maxPercent: 100 }, countsOf(3, 3), false],
    ['passes so where the run allows it', { ...tenPercent, maxPercent: 100, mayRejectAll: true }, countsOf(3, 3), true],
    ['passes if it is empty', tenPercent, countsOf(0, 0), true],
    ['passes if it is small and has an accepted record', tenPercent, countsOf(3, 2), true],
    ['fails if it is large and above the percentage', tenPercent, countsOf(200, 21), false],
  ])('%s', (_, policy, counts, passes) => {
    expect(O.isNone(streamRejectionFailure(policy, 's', counts))).toBe(passes)
  })
})

describe('a failure says what is wrong and what to do', () => {
  const remedy = 'See the dead-letter file or the log for the reasons, correct the mapping or the data, and run again.'
  it.each([
    [
      rejectionFailure({ ...tenPercent, onReject: 'fail' }, 's', rejection, countsOf(9, 1)),
      's: record 7 was rejected: email is missing. Correct it, ' +
        'or set on_reject to continue and give a dead_letter_path.',
    ],
    [
      rejectionFailure(tenPercent, 's', rejection, countsOf(200, 21)),
      `s: 21 of 200 records were rejected, more than max_rejects_percent (10). ${remedy}`,
    ],
    [streamRejectionFailure(tenPercent, 's', countsOf(3, 3)), `s: all 3 records were rejected. ${remedy}`],
  ])('%j', (failure, message) => {
    expect(failure).toEqual(O.some(configFailure(message)))
  })
})
