import * as TE from 'fp-ts/TaskEither'
import { expect, it } from 'vitest'
import type { ReviewsRequest } from '../../../connector/api/model/entity'
import type { Api } from '../../../connector/api/routes'
import { transparencyReviewsStream } from '../../../connector/streams/entities/operations'
import { createSourceEnv, readAll, selectEntities } from '../../support/in-process'

it('rows that never end are left after 100,000 requests, and the other entities are read', async () => {
  const start = Date.parse('2026-03-01T12:00:00.250Z')
  let requests = 0
  // However short the window, person 1 has more rows in it than a page, and others each time.
  const retrieveReviews = ({ personId = '', fromDate }: ReviewsRequest) => {
    requests += 1
    const reviews = personId === '1' ? [{ documentId: requests, mentionTime: fromDate }] : []
    const filter = { perPage: 1 }
    return TE.right({ status: { code: 200 }, servedAt: start, data: { entities: [{ id: personId, reviews }], filter } })
  }
  const source = createSourceEnv({ retrieveReviews } as Pick<Api, 'retrieveReviews'>, {
    now: () => start,
    startDate: start - 400 * 86_400_000,
    entities: selectEntities({ persons: ['1', '2'] }),
  })
  const { logs, failures } = await readAll(source, [transparencyReviewsStream])
  expect([logs, failures]).toEqual([
    [expect.stringContaining('person 1 cannot be read completely: its pages do not end')],
    {},
  ])
  expect(requests).toBeGreaterThan(90_000)
  expect(requests).toBeLessThan(100_010)
})
