/** A scan of the reviews that was read to its end: the time it began at (milliseconds), and the state after it. */
export type CompleteScan = { readonly from: number; readonly state: unknown }

/**
 * The entities that a run has found in the reviews so far, as `kind:id`; the review export adds to it as it is read.
 */
export type EntityIndex = { readonly keys: Set<string>; readonly completeScans: CompleteScan[] }

export const createEntityIndex = (): EntityIndex => ({ keys: new Set(), completeScans: [] })
