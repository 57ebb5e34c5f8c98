/** How many ratings at the mean of all reviews each location is taken to have before its own count. */
export const priorRatings = 10

export type RatingEstimate = { readonly mean: number; readonly low: number; readonly high: number }

/**
 * The Bayesian mean of `count` ratings with the mean `mean`, and its 95 % interval within 0 to 5: normal ratings of a known
 * `deviation`, and `priorRatings` of them at `overall` beforehand. So few ratings stay near all the others', with a wide interval.
 */
export const estimateRating = (
  { count, mean }: { readonly count: number; readonly mean: number },
  all: { readonly overall: number; readonly deviation: number },
): RatingEstimate => {
  const weight = priorRatings + count
  const middle = (priorRatings * all.overall + count * mean) / weight
  const reach = (1.96 * all.deviation) / Math.sqrt(weight)
  return { mean: middle, low: Math.max(0, middle - reach), high: Math.min(5, middle + reach) }
}
