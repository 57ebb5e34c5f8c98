import * as TE from 'fp-ts/TaskEither'
import type { ExportRequest } from '../../connector/api/model/review'
import type { RawResponse } from '../../connector/api/route'
import type { Api } from '../../connector/api/routes'

type Row = { readonly id: number; readonly modifiedTime: string }

/** The two exports over rows that a test changes as it likes, served in their order in `data`; records the requests. */
export const createExportApi = (now: () => number) => {
  const data = { reviews: [] as Row[], deleted: [] as Row[], requests: [] as ExportRequest[] }
  const servePages =
    (readRows: () => ReadonlyArray<Row>) =>
    (request: ExportRequest): TE.TaskEither<never, RawResponse> => {
      data.requests.push(request)
      if (data.requests.length > 10_000) throw new Error('the scan does not end')
      const { modifiedTimeFrom, offset = 0, limit = 1000 } = request
      const reviews = readRows().filter(({ modifiedTime }) => modifiedTime > modifiedTimeFrom)
      const body = { reviews: reviews.slice(offset, offset + limit), filter: { modifiedTimeFrom, offset, limit } }
      return TE.right({ body: Buffer.from(JSON.stringify(body)), servedAt: now() })
    }
  const api: Pick<Api, 'exportReviews' | 'exportDeletedReviews'> = {
    exportReviews: servePages(() => data.reviews),
    exportDeletedReviews: servePages(() => data.deleted),
  }
  return { data, api }
}
