import { describe, expect, it } from 'vitest'
import { consumeFeed } from '../../connector/cdk'
import { createVersionService } from '../../connector/runtime/service-versions'
import { createExportApi } from '../support/export-api'
import { createSourceEnv } from '../support/in-process'

const second = Date.UTC(2026, 0, 1)
const row = (id: number, millis: number) => ({ id, modifiedTime: new Date(second + millis).toISOString() })

describe('createVersionService', () => {
  it(
    'names a change that another change moves to a page already ' +
      'read, though both are of the second that the service tells',
    async () => {
      const { data, api } = createExportApi(() => second)
      data.reviews = [row(1, 100), row(2, 200), row(3, 300)]
      const exportReviews: typeof api.exportReviews = (...given) => {
        const answer = api.exportReviews(...given)
        if (data.requests.length === 1) data.reviews = [row(2, 200), row(3, 300), row(1, 400)]
        return answer
      }
      const source = createSourceEnv({ ...api, exportReviews }, { pageSize: 2, now: () => second })
      const ids = new Set<string>()
      await consumeFeed(createVersionService(source, 'reviews').changedSince(second), async (rows) => {
        for (const { id } of rows) ids.add(id)
      })
      expect([...ids].sort()).toEqual(['1', '2', '3'])
    },
  )
})
