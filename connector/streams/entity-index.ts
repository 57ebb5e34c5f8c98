/** A completed scan of the reviews: the time at which it began (milliseconds), and the state after it. */
export type CompleteScan = { readonly from: number; readonly state: unknown }

/** The entities that a run has found in the reviews so far, as `kind:id`. Reading the review export adds to it. */
export type EntityIndex = { readonly keys: Set<string>; readonly completeScans: CompleteScan[] }

export const createEntityIndex = (): EntityIndex => ({ keys: new Set(), completeScans: [] })
