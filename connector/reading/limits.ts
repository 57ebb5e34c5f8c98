/** What the answers of a read have shown of the most rows that the service gives at a time. */
export type Limits = {
  /** The most rows that an answer has had. */
  readonly longest: () => number
  /** The service gives no more rows at a time than this, though it says otherwise; Infinity: nothing shows it. */
  readonly own: () => number
  readonly measure: (length: number) => void
  /** A short page was shown not to end the list; two of one length in a row are the service's own limit. */
  readonly learnShort: (length: number) => void
  /** A short page has not ended the list. */
  readonly cutsPages: () => boolean
}

/** Answers of fewer rows than this have one length by chance. */
const leastLimit = 5

export const createLimits = (): Limits => {
  let longest = 0
  let own = Number.POSITIVE_INFINITY
  let shortLength: number | undefined
  return {
    longest: () => longest,
    own: () => own,
    measure: (length) => {
      longest = Math.max(longest, length)
      if (length > own) [own, shortLength] = [Number.POSITIVE_INFINITY, undefined]
    },
    learnShort: (length) => {
      if (length === shortLength && length >= leastLimit) own = Math.min(own, length)
      shortLength = length
    },
    cutsPages: () => shortLength !== undefined,
  }
}
