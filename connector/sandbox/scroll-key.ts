import type { ReviewRow } from './review-rows'

/** Where a list broke off: the time and id of its last row, in a form that no client reads anything into. */
export const encodeScrollKey = (row: ReviewRow): string => Buffer.from(`${row.mention}/${row.id}`).toString('base64url')

/** The rows behind a key, as a condition; undefined for a key that we never gave. */
export const decodeScrollKey = (key: string): string | undefined => {
  const [, millis, id] = /^(-?\d{1,15})\/(\d{1,19})$/.exec(Buffer.from(key, 'base64url').toString('latin1')) ?? []
  return millis === undefined || BigInt(id ?? 0) > 2n ** 63n - 1n
    ? undefined
    : `(mention < epoch_ms(${millis}) OR mention = epoch_ms(${millis}) AND r.id < ${id})`
}
