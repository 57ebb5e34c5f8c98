/** So many requests in any window of so many seconds. */
export type RequestRate = { readonly requests: number; readonly seconds: number }

/** Counts requests; answers how many milliseconds to wait if one is too many. */
export const createRequestLimiter = ({ requests, seconds }: RequestRate): ((now: number) => number | undefined) => {
  let taken: ReadonlyArray<number> = []
  return (now) => {
    taken = taken.filter((time) => time > now - seconds * 1000)
    const [first] = taken
    if (first !== undefined && taken.length >= requests) return first + seconds * 1000 - now
    taken = [...taken, now]
    return undefined
  }
}
