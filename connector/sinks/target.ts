import type { Option } from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import type { Api, ApiError } from '../api'
import type { LocationLedger } from './ledger'

/** The column of each attribute; null: the attribute is not sent. One that is left out may have the column of its own name. */
export type ColumnMapping = Readonly<Record<string, string | null | undefined>>

/** What the sinks need: the API and their part of the config. */
export type SinkTarget = {
  readonly api: Pick<Api, 'createVisitRecords' | 'syncLocations'>
  /** Retries an unanswered request. `isSuspect`: the service may fail on one of its items, so fewer attempts are made. */
  readonly resend: (isSuspect: boolean) => <A>(request: TaskEither<ApiError, A>) => TaskEither<ApiError, A>
  /** By the names of the sinks. */
  readonly mapping: Readonly<Record<'visit_records' | 'locations', ColumnMapping>>
  /** Whether columns with the names of attributes are sent beside a mapping, which does not name them. */
  readonly mapByName: boolean
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Older visits are rejected; in milliseconds. */
  readonly maxVisitAge: number
  /** The locations accepted before; without it, only locations whose record says so are deactivated. */
  readonly ledger: Option<LocationLedger>
  readonly maxDeactivationsPercent: number
  /** Nothing is sent, so the notes list every change. */
  readonly dryRun: boolean
  readonly warn: (message: string) => void
  readonly inform: (message: string) => void
}

/** Sends nothing and accepts everything, for a dry run. */
export const dryRunApi: SinkTarget['api'] = {
  createVisitRecords: (visits) =>
    TE.right({ records: Object.fromEntries(visits.map(({ visitRecordId }) => [visitRecordId ?? '', 'Success'])) }),
  syncLocations: (items) => TE.right({ status: 'SUCCESS', failedRequests: 0, totalRequests: items.length }),
}
