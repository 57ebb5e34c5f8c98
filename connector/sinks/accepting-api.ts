import * as TE from 'fp-ts/TaskEither'
import type { SinkTarget } from './target'

/** A service that is asked nothing and accepts everything, for a dry run. */
export const dryRunApi: SinkTarget['api'] = {
  createVisitRecords: (visits) =>
    TE.right({ records: Object.fromEntries(visits.map(({ visitRecordId }) => [visitRecordId ?? '', 'Success'])) }),
  syncLocations: (items) => TE.right({ status: 'SUCCESS', failedRequests: 0, totalRequests: items.length }),
}
