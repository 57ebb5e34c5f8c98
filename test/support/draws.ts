/**
 * How many cases the tests of properties draw, and which. `npm test` draws as many as fit into its minutes; DRAWS=10
 * draws ten times as many, and SEED=N others. test/support/global-setup.ts prints both.
 */
export const drawFactor = Number(process.env.DRAWS ?? 1)
export const drawSeed = Number(process.env.SEED ?? 20_261_123)

/** So many cases, as DRAWS multiplies them; one at least. */
export const drawCount = (count: number): number => Math.max(1, Math.round(count * drawFactor))

/**
 * The parameters of a fast-check property that `npm test` tries this many times. `known`: the seed for a property that
 * fails with others.
 */
export const draws = (count: number, known = drawSeed): { readonly seed: number; readonly numRuns: number } => ({
  seed: process.env.SEED === undefined ? known : drawSeed,
  numRuns: drawCount(count),
})
