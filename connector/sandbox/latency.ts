/** Between two numbers of milliseconds. */
export type Latency = { readonly least: number; readonly most: number }

/** The wait before the nth answer, in milliseconds; it only depends on its arguments. */
export const latencyOf =
  ({ least, most }: Latency, seed: number) =>
  (n: number): number =>
    least + ((Math.imul(n + seed, 0x9e3779b1) >>> 0) % (most - least + 1))
