import * as TE from 'fp-ts/TaskEither'
import type { Api } from '../../connector/api/api'
import type { ExportRequest } from '../../connector/api/model/review'
import type { RawResponse } from '../../connector/api/route'

type Row = { readonly id: number; readonly modifiedTime: string }

/** The two exports over lists of rows that a test may change, served in the order of the lists. Keeps all requests. */
export const exportApi = (now: () => number) => {
  const held = { reviews: [] as Row[], deleted: [] as Row[], requests: [] as ExportRequest[] }
  const page =
    (rows: () => ReadonlyArray<Row>) =>
    (request: ExportRequest): TE.TaskEither<never, RawResponse> => {
      held.requests.push(request)
      if (held.requests.length > 10_000) throw new Error('the scan does not end')
      const { modifiedTimeFrom, offset = 0, limit = 1000 } = request
      const reviews = rows().filter(({ modifiedTime }) => modifiedTime > modifiedTimeFrom)
      const body = { reviews: reviews.slice(offset, offset + limit), filter: { modifiedTimeFrom, offset, limit } }
      return TE.right({ body: Buffer.from(JSON.stringify(body)), servedAt: now() })
    }
  const api: Pick<Api, 'exportReviews' | 'exportDeletedReviews'> = {
    exportReviews: page(() => held.reviews),
    exportDeletedReviews: page(() => held.deleted),
  }
  return { held, api }
}
