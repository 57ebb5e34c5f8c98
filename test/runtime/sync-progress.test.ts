import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import { transientFailure } from '../../connector/cdk/failure'
import type { Message } from '../../connector/cdk/message'
import { createProgressReporter } from '../../connector/runtime/sync-progress'
import { streams } from '../../connector/streams/streams'

const day = 86_400_000
const start = Date.parse('2024-01-01T00:00:00Z')

/** The lines that a run shows; each step moves the clock by some milliseconds. */
const report = async (
  names: ReadonlyArray<string>,
  steps: ReadonlyArray<readonly [millis: number, message: Message]>,
  /** The days after the start that earlier runs have read of the scan of reviews. */
  earlier?: readonly [from: number, to: number],
) => {
  let now = start + 100 * day
  const [lines, warnings]: [string[], string[]] = [[], []]
  const selected = names.flatMap((name) => streams.filter((stream) => stream.name === name))
  const { report, finish } = createProgressReporter(
    { printProgress: (line) => lines.push(line), printWarning: (line) => warnings.push(line) },
    { startDate: start },
    selected,
    () => now,
    earlier === undefined ? {} : { reviews: { from: start + earlier[0] * day, to: start + earlier[1] * day } },
  )
  for (const { name, schema, primaryKey, cursor } of selected)
    await report({ _tag: 'Started', stream: { name, schema, primaryKey, cursor, syncMode: 'incremental' } })
  for (const [millis, message] of steps) {
    now += millis
    await report(message)
  }
  finish()
  return { lines: lines.slice(0, -1), warnings }
}

const records = (stream: string, daysAfterStart: number, count = 50): Message => ({
  _tag: 'Records',
  stream,
  at: 0,
  rows: Array.from({ length: count }, () => ({
    json: Buffer.from(JSON.stringify({ id: 1, modifiedTime: new Date(start + daysAfterStart * day).toISOString() })),
  })),
})

describe('progress', () => {
  it(
    'is one line for the streams of a scan, with all their rows, ' +
      'the rate, the share of the time range, and the time left',
    async () => {
      const { lines } = await report(
        ['reviews', 'locations', 'providers'],
        [
          [0, records('reviews', 0)],
          [1_000, records('locations', 0, 5)],
          [4_000, records('reviews', 25)],
          [5_000, records('reviews', 50)],
          [0, records('locations', 0, 2)],
        ],
      )
      expect(lines).toEqual([
        'reviews and 2 more: 0 rows',
        'reviews and 2 more: 50 rows',
        'reviews and 2 more: 55 rows',
        'reviews and 2 more: 105 rows, 21/s, 25% of time range, 15 s left',
        'reviews and 2 more: 155 rows, 16/s, 50% of time range, 10 s left',
        'reviews and 2 more: 157 rows, 16/s, 50% of time range, 10 s left',
      ])
    },
  )

  it('measures a service that sends the newest rows first from the other end', async () => {
    const { lines } = await report(
      ['reviews'],
      [
        [0, records('reviews', 100)],
        [10_000, records('reviews', 75)],
      ],
    )
    expect(lines.at(-1)).toBe('reviews: 100 rows, 10/s, 25% of time range, 30 s left')
  })

  it.each([
    ['oldest', [0, 60] as const, [60, 65, 70]],
    ['newest', [40, 100] as const, [40, 35, 30]],
  ])('continues where the previous run stopped: %s first', async (_, earlier, days) => {
    const steps = days.map((at) => [5_000, records('reviews', at)] as const)
    const { lines } = await report(['reviews'], steps, earlier)
    expect(lines).toEqual([
      'reviews: 0 rows',
      'reviews: 50 rows, 10/s',
      'reviews: 100 rows, 10/s, 65% of time range, 1 min left',
      'reviews: 150 rows, 10/s, 70% of time range, 45 s left',
    ])
  })

  it('withdraws its estimate where the rows are in order of time only in parts', async () => {
    const bySource = [0, 1, 2].flatMap(() => Array.from({ length: 50 }, (_, i) => 2 * i))
    const { lines } = await report(
      ['reviews'],
      bySource.map((at) => [5_000, records('reviews', at)] as const),
    )
    expect(lines[40]).toContain('% of time range')
    expect(lines.slice(51).filter((line) => line.includes('%'))).toEqual([])
  })

  it('claims no share where the rows keep no order of time', async () => {
    const days = [10, 90, 20, 70, 5, 60]
    const { lines } = await report(
      ['reviews'],
      days.map((at) => [5_000, records('reviews', at)] as const),
    )
    expect(lines.at(-1)).toBe('reviews: 300 rows, 10/s')
  })

  it('restarts with the next scan', async () => {
    const { lines } = await report(['reviews', 'deleted_reviews'], [[0, records('deleted_reviews', 3, 7)]])
    expect(lines.slice(-2)).toEqual(['deleted_reviews: 0 rows', 'deleted_reviews: 7 rows'])
  })

  it('says until when the service makes the run wait', async () => {
    const until = Date.parse('2026-01-01T00:00:00Z')
    const { lines } = await report(['reviews'], [[0, { _tag: 'Waiting', stream: 'reviews', until }]])
    expect(lines.slice(1)).toEqual(['reviews: 0 rows; the service makes us wait until 2026-01-01T00:00:00.000Z'])
  })

  it('does not warn of a skipped stream while it runs, nor of what is only information', async () => {
    const { warnings } = await report(
      ['reviews'],
      [
        [0, { _tag: 'Log', level: 'warn', message: 'comments: nothing', skipped: 'comments' }],
        [0, { _tag: 'Log', level: 'info', message: 'fine' }],
        [0, { _tag: 'Log', level: 'warn', message: 'careful' }],
      ],
    )
    expect(warnings).toEqual(['careful'])
  })

  it('says once why streams failed together', async () => {
    const failed = (stream: string, message: string): Message => ({
      _tag: 'Failed',
      stream,
      failure: transientFailure(message),
    })
    const { warnings } = await report(
      ['reviews', 'locations'],
      [
        [0, failed('reviews', 'The service is down.')],
        [0, { _tag: 'Checkpoint', stream: 'locations', state: {}, count: 0 }],
        [0, failed('locations', 'The service is down.')],
        [0, failed('providers', 'Its state is wrong.')],
      ],
    )
    expect(warnings).toEqual([
      'reviews, locations failed. The service is down.',
      'providers failed. Its state is wrong.',
    ])
  })

  it('distinguishes streams by their reader', () =>
    expect(new Set(streams.map(({ reader, cursor }) => `${reader.name} ${O.isSome(cursor)}`)).size).toBeLessThan(
      streams.length,
    ))
})
