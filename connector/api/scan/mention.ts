import { toMillis } from '../model/scalar'
import type { Cut } from '../page'

const key = Buffer.from('"mentionTime"')

/** The mention time of a review in milliseconds; `undefined` if it has none. Looks inside only if the name occurs. */
export const mentionTime = ({ raw }: Cut): number | undefined => {
  const text = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  if (!text.includes(key)) return undefined
  const review: unknown = JSON.parse(text.toString('utf8'))
  const value =
    typeof review === 'object' && review !== null && 'mentionTime' in review ? review.mentionTime : undefined
  const time = typeof value === 'string' ? toMillis(value) : Number.NaN
  return Number.isNaN(time) ? undefined : time
}
