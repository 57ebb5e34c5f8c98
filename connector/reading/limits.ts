/** What the answers of a read have shown about the service's own page limit. */
export type Limits = {
  /** The longest answer so far. */
  readonly longest: () => number
  /** The service returns no more rows at a time than this, whatever it says; Infinity if unknown. */
  readonly own: () => number
  readonly measure: (length: number) => void
  /** Records that a short page did not end the list; two of the same length in a row are the service's own limit. */
  readonly learnShort: (length: number) => void
  /** A short page has not ended the list. */
  readonly cutsPages: () => boolean
}

/** Below this length, answers may have the same length by chance. */
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
