import { toMillis } from '../model/scalar'
import type { CutRecord } from '../page'

const mentionTimeKey = Buffer.from('"mentionTime"')

/** The mention time of a review in milliseconds; `undefined` if it has none. Looks inside only if the name occurs. */
export const readMentionTime = ({ raw }: CutRecord): number | undefined => {
  const text = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  if (!text.includes(mentionTimeKey)) return undefined
  const review: unknown = JSON.parse(text.toString('utf8'))
  const value =
    typeof review === 'object' && review !== null && 'mentionTime' in review ? review.mentionTime : undefined
  const time = typeof value === 'string' ? toMillis(value) : Number.NaN
  return Number.isNaN(time) ? undefined : time
}
