import type { Option } from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import type { Api, ApiError } from '../api'
import type { LocationLedger } from './ledger'

/** The column that an attribute is taken from; the attribute's own name where it is left out. */
export type ColumnMapping = Readonly<Record<string, string | undefined>>

/** What the sinks write to and how: the client and the parts of the config that concern them. */
export type SinkTarget = {
  readonly api: Pick<Api, 'createVisitRecords' | 'syncLocations'>
  /** Sends once more, after a while, what no answer came to; less often where that is suspected to be for one of its items. */
  readonly resend: (suspected: boolean) => <A>(effect: TaskEither<ApiError, A>) => TaskEither<ApiError, A>
  /** By the names of the sinks. */
  readonly mapping: Readonly<Record<'visit_records' | 'locations', ColumnMapping>>
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Older visits are rejected; milliseconds. */
  readonly maxVisitAge: number
  /** Which locations were accepted before; none: nothing is deactivated but what says so. */
  readonly ledger: Option<LocationLedger>
  readonly maxDeactivationsPercent: number
  /** Nothing is sent, so that the whole plan is to be told. */
  readonly dryRun: boolean
  readonly warn: (message: string) => void
}

/** A service that is asked nothing and accepts everything, for a dry run. */
export const dryRunApi: SinkTarget['api'] = {
  createVisitRecords: (visits) =>
    TE.right({ records: Object.fromEntries(visits.map(({ visitRecordId }) => [visitRecordId ?? '', 'Success'])) }),
  syncLocations: (items) => TE.right({ status: 'SUCCESS', failedRequests: 0, totalRequests: items.length }),
}
