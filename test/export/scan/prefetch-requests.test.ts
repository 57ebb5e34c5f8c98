import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import { scan } from '../../../connector/export/scan/scan'
import { simulateExport, stableTraits } from '../../support/export-simulation'

/** What is done with a quiet service of so many rows, 50 a page, in order: pages asked for, and what is read of each. */
const logOf = async (rows: number, concurrency: number): Promise<ReadonlyArray<string>> => {
  const service = simulateExport({ ...stableTraits, rows }, 1)
  const log: string[] = []
  const feed = scan({
    operation: 'export reviews',
    fetch: (request, turn) => {
      log.push(`ask ${request.offset}`)
      return service.reviews(request, turn)
    },
    now: service.now,
    concurrency,
    limit: 50,
    order: 'unspecified',
    hasMentionTime: true,
  })({
    origin: { startDate: Date.UTC(2025, 0, 1), cursor: O.none, lookback: 600_000 },
    filters: {},
    resumeToken: O.none,
  })
  for await (const item of feed) if (E.isRight(item)) log.push(`read ${item.right.rows.length}`)
  return log
}

describe('the requests of a scan', () => {
  it('leave one after another where only one may be under way', async () => {
    expect(await logOf(120, 1)).toEqual([
      ...['ask 0', 'read 50', 'ask 40', 'read 40', 'ask 80', 'read 30'],
      ...['ask 110', 'read 0', 'ask 120', 'read 0', 'read 0'],
    ])
  })

  it('leave before rows are handed on, each full page making room for one; the last comes with its confirmation', async () => {
    expect(await logOf(190, 3)).toEqual([
      ...['ask 0', 'ask 40', 'ask 80', 'ask 120', 'read 50'],
      ...['ask 160', 'read 40', 'ask 200', 'read 40', 'ask 240', 'read 40'],
      ...['ask 180', 'ask 190', 'read 20', 'read 0', 'read 0', 'read 0'],
    ])
  })

  it.each([1, 2, 4, 8])('are those of the rows and the end, and less than %i past it', async (concurrency) => {
    for (let rows = 400; rows < 441; rows += 1) {
      const asked = (await logOf(rows, concurrency)).filter((line) => line.startsWith('ask'))
      expect(new Set(asked).size).toBe(asked.length)
      expect(asked.length).toBeLessThanOrEqual(Math.ceil(rows / 40) + 2 + concurrency - 1)
    }
  })
})
