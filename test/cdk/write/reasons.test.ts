import { describe, expect, it } from 'vitest'
import type { DeadLetter } from '../../../connector/cdk/write/dead-letters'
import { countReasons } from '../../../connector/cdk/write/reasons'

const letterOf = (stream: string, reason: string): DeadLetter => ({
  stream,
  object: 'things',
  primaryKey: [],
  deletes: false,
  key: null,
  reason,
  batch: null,
  when: 0,
  record: Buffer.from('{}'),
})

const summariesOf = (...letters: ReadonlyArray<readonly [stream: string, reason: string]>) => {
  const kept: Array<DeadLetter> = []
  const { deadLetters, summaries } = countReasons({ add: (letter) => kept.push(letter), flush: async () => undefined })
  for (const [stream, reason] of letters) deadLetters.add(letterOf(stream, reason))
  expect(kept.map(({ stream, reason }) => [stream, reason])).toEqual(letters)
  return summaries()
}

describe('the reasons of a run', () => {
  it('are none without a rejection', () => expect(summariesOf()).toEqual([]))

  it('are counted by stream, the most frequent first', () =>
    expect(
      summariesOf(
        ['visits', 'the service reports Error'],
        ['visits', 'email is missing'],
        ['places', 'code is missing'],
        ['visits', 'email is missing'],
      ),
    ).toEqual([
      'visits: 3 rejected: email is missing (2); the service reports Error (1).',
      'places: 1 rejected: code is missing (1).',
    ]))

  it('are ten at most, and a count of the other records', () => {
    const letters = Array.from({ length: 12 }, (_, n) =>
      Array.from({ length: 12 - n }, () => ['visits', `reason ${n}`] as const),
    ).flat()
    const [summary = ''] = summariesOf(...letters)
    expect(summary.match(/reason \d+ \(\d+\)/g)).toHaveLength(10)
    expect(summary).toMatch(/^visits: 78 rejected: reason 0 \(12\); .*reason 9 \(3\); and 3 others\.$/)
  })

  it('stay few where each record has its own', () => {
    const letters = Array.from({ length: 5000 }, (_, n) => ['visits', `the service answered ${n}`] as const)
    expect(summariesOf(...letters, ['visits', 'the service answered 7'])[0]).toMatch(
      /^visits: 5001 rejected: the service answered 7 \(2\); .*; and 4990 others\.$/,
    )
  })
})
