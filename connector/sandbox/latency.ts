/** Between two numbers of milliseconds. */
export type Latency = { readonly minMs: number; readonly maxMs: number }

/** The wait before the nth answer, in milliseconds; it only depends on its arguments. */
export const createLatency =
  ({ minMs, maxMs }: Latency, seed: number) =>
  (n: number): number =>
    minMs + ((Math.imul(n + seed, 0x9e3779b1) >>> 0) % (maxMs - minMs + 1))
