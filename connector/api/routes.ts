import { DeletedExportRequest, ExportRequest } from './model/export'
import { DeletedReview, Review } from './model/review'
import { bytes, route } from './route'

/** Operation 6: reviews that arrived or changed after a time. The answer is left as bytes. */
export const exportReviews = route({
  name: 'export reviews',
  method: 'POST',
  path: '/api/reputation/v1/reviews',
  token: 'accessToken',
  send: 'json',
  request: ExportRequest,
  response: bytes(Review),
  idempotent: true,
})

/** Operation 7: reviews that were deleted after a time. The answer is left as bytes. */
export const exportDeletedReviews = route({
  name: 'export deleted reviews',
  method: 'POST',
  path: '/api/reputation/v1/deleted-reviews',
  token: 'accessToken',
  send: 'json',
  request: DeletedExportRequest,
  response: bytes(DeletedReview),
  idempotent: true,
})
