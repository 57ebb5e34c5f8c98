import { type ExportRequest, toMillis } from '../api'
import type { CutRecord } from './cut/record'

/** The filters of an export other than its `modifiedTimeFrom`. */
export type ExportFilters = Omit<ExportRequest, 'modifiedTimeFrom' | 'offset' | 'limit'>

const mentionTimeKey = Buffer.from('"mentionTime"')

/**
 * The mention time of a review in milliseconds; `undefined` if it has none. Parses the record only if it contains the
 * name.
 */
export const readMentionTime = ({ raw }: CutRecord): number | undefined => {
  const text = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  if (!text.includes(mentionTimeKey)) return undefined
  const review: unknown = JSON.parse(text.toString('utf8'))
  const value =
    typeof review === 'object' && review !== null && 'mentionTime' in review ? review.mentionTime : undefined
  const time = typeof value === 'string' ? toMillis(value) : Number.NaN
  return Number.isNaN(time) ? undefined : time
}
