/**
 * Decides which changes are outside chance. Each figure that can be judged is compared by one test: shares by Fisher's
 * exact test, averages by Student's t-test. The method of Benjamini and Hochberg then limits the false ones among all
 * changes that the report marks.
 */

/** The values of a month: their number, their mean, and the sum of their squared deviations from it. */
type AverageSample = {
  readonly kind: 'average'
  readonly n: number
  readonly mean: number
  readonly squares: number
}

/** The reviews of a month, and how many of them are counted: at least `low`, at most `high`. */
type ShareSample = { readonly kind: 'share'; readonly n: number; readonly low: number; readonly high: number }

export type Sample = AverageSample | ShareSample

/** On average, at most this share of the marked changes is false. */
export const falseDiscoveryRate = 0.05

/** If one of the months has fewer reviews, the change is not judged. */
export const leastSize = 10

/**
 * The probability, from 0 to 1, of a difference at least this large if nothing has changed; null if one month has fewer
 * than `leastSize` values. If counts are known only within bounds, the smallest difference is used.
 */
export const findProbability = (value: Sample, previous: Sample): number | null => {
  if (Math.min(value.n, previous.n) < leastSize) return null
  if (value.kind === 'average' && previous.kind === 'average') return studentProbability(value, previous)
  if (value.kind === 'average' || previous.kind === 'average') return null
  const isAbove = value.low / value.n > previous.high / previous.n
  const isBelow = value.high / value.n < previous.low / previous.n
  if (isAbove) return fisherProbability(value.low, value.n, previous.high, previous.n)
  return isBelow ? fisherProbability(value.high, value.n, previous.low, previous.n) : 1
}

/** Student's t-test for two samples with a common variance, which they have if nothing has changed. */
const studentProbability = (a: AverageSample, b: AverageSample): number => {
  const freedom = a.n + b.n - 2
  const difference = Math.abs(a.mean - b.mean)
  // Averages of equal values may differ by less than this if they are computed in a different order.
  if (difference < 1e-9) return 1
  const variance = (a.squares + b.squares) / freedom
  return studentTails(difference / Math.sqrt(variance * (1 / a.n + 1 / b.n)), freedom)
}

/**
 * The share of Student's distribution beyond ±t (Abramowitz and Stegun 26.7.3 and 26.7.4), at least 1e-12, because the
 * sum is no more precise.
 */
const studentTails = (t: number, freedom: number): number => {
  const angle = Math.atan(t / Math.sqrt(freedom))
  const cosine = Math.cos(angle) ** 2
  const isOdd = freedom % 2 === 1
  let term = isOdd ? Math.cos(angle) : 1
  let sum = freedom === 1 ? 0 : term
  for (let i = isOdd ? 3 : 2; i <= freedom - 2; i += 2) {
    term *= (cosine * (i - 1)) / i
    sum += term
  }
  const within = isOdd ? (2 / Math.PI) * (angle + Math.sin(angle) * sum) : Math.sin(angle) * sum
  return Math.max(1e-12, 1 - within)
}

/**
 * Fisher's exact test, two-sided: the total probability of all tables with the same sums that are at most as probable
 * as this one. `a` of `n` are counted in one month, `b` of `m` in the other.
 */
const fisherProbability = (a: number, n: number, b: number, m: number): number => {
  const counted = a + b
  const first = Math.max(0, counted - m)
  // The logarithm of the probability of each table, up to a constant.
  const logs = [0]
  for (let k = first; k < Math.min(n, counted); k += 1)
    logs.push((logs.at(-1) ?? 0) + Math.log(((n - k) * (counted - k)) / ((k + 1) * (m - counted + k + 1))))
  const greatest = logs.reduce((most, log) => Math.max(most, log))
  const own = logs[a - first] ?? 0
  const sumOf = (terms: ReadonlyArray<number>) => terms.reduce((sum, log) => sum + Math.exp(log - greatest), 0)
  // Equal probabilities may differ by rounding.
  return sumOf(logs.filter((log) => log <= own + 1e-7)) / sumOf(logs)
}

/**
 * The highest probability at which a change is marked, by the method of Benjamini and Hochberg: the k-th smallest of m
 * probabilities must be at most k/m of the rate. Null if no change is marked.
 */
export const findThreshold = (probabilities: ReadonlyArray<number>): number | null =>
  [...probabilities]
    .sort((a, b) => a - b)
    .findLast((p, i) => p <= ((i + 1) / probabilities.length) * falseDiscoveryRate) ?? null
