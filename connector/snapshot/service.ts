import type { Failure } from '../cdk/failure'
import type { Feed } from '../cdk/feed'

/** A review as the service has it: no more than is needed to tell whether ours is the same. */
export type ServiceReview = {
  /** The digits of the id. */
  readonly id: string
  /** Milliseconds since 1970. */
  readonly modifiedTime: number
}

/** The service as `verify` asks it. Times in milliseconds since 1970. */
export type ServiceReviews = {
  /** What is older is not read. */
  readonly startDate: number
  /** How far each run reads back behind its cursor, in milliseconds: what is as new as that may still come by itself. */
  readonly lookback: number
  /** Every review as of a signpost, which the last item names, by a scan that loses none. */
  readonly reviews: Feed<Failure, { readonly rows: ReadonlyArray<ServiceReview>; readonly signpost?: number }>
  /** What has changed or was deleted after a time, read quickly: to tell what moves from what is wrong. */
  readonly changesSince: (time: {
    readonly changed: number
    readonly deleted: number
  }) => Feed<Failure, ReadonlyArray<ServiceReview>>
}
