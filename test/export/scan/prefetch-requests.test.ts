import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import { scan } from '../../../connector/export/scan/scan'
import { simulateExport, stableTraits } from '../../support/export-simulation'

/** Requests and items of a scan of a quiet service, in order: `ask` with an offset, `read` with a number of rows. 50 rows a page. */
const logOf = async (rows: number, concurrency: number): Promise<ReadonlyArray<string>> => {
  const service = simulateExport({ ...stableTraits, rows }, 1)
  const log: string[] = []
  const feed = scan({
    operation: 'export reviews',
    fetch: (request, beforeCut) => {
      log.push(`ask ${request.offset}`)
      return service.reviews(request, beforeCut)
    },
    now: service.now,
    concurrency,
    limit: 50,
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
  it('are sent one after another if only one may be pending', async () => {
    expect(await logOf(120, 1)).toEqual([
      ...['ask 0', 'read 50', 'ask 40', 'read 40', 'ask 80', 'read 30'],
      ...['ask 110', 'read 0', 'ask 120', 'read 0', 'read 0'],
    ])
  })

  it('are sent before rows leave, one more with each full page, and the last page together with the one that confirms the end', async () => {
    expect(await logOf(190, 3)).toEqual([
      ...['ask 0', 'ask 40', 'ask 80', 'ask 120', 'read 50'],
      ...['ask 160', 'read 40', 'ask 200', 'read 40', 'ask 240', 'read 40'],
      ...['ask 180', 'ask 190', 'read 20', 'read 0', 'read 0', 'read 0'],
    ])
  })

  it.each([1, 2, 4, 8])('are as many as the rows and the end need, and fewer than %i more', async (concurrency) => {
    for (let rows = 400; rows < 441; rows += 1) {
      const asked = (await logOf(rows, concurrency)).filter((line) => line.startsWith('ask'))
      expect(new Set(asked).size).toBe(asked.length)
      // Behind a full last page, known rows must follow the empty page.
      const isLastPageFull = (rows - 10) % 40 === 0
      expect(asked.length).toBeLessThanOrEqual(Math.ceil(rows / 40) + 2 + (isLastPageFull ? 1 : 0) + concurrency - 1)
    }
  })
})
