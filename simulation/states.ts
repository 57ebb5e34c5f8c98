/** The parts of a saved state that say what was read. */
export type SavedState = {
  readonly modifiedTimeFrom: string
  readonly slack?: number
  readonly recent?: ReadonlyArray<SentRow>
  readonly scan?: {
    readonly begun: string
    readonly signpost?: string
    readonly windows: ReadonlyArray<{ readonly kind?: string }>
    readonly pass: { readonly from: string; readonly offset: number }
    readonly trail: ReadonlyArray<SentRow>
    readonly recent: ReadonlyArray<SentRow>
  }
}

/** Id, version, and more. */
type SentRow = readonly [string, number, ...unknown[]]

/** Up to when an unfinished scan sends rows; milliseconds. Before any where it has read nothing. */
export const readCutoff = (scan: SavedState['scan']): number =>
  scan?.signpost === undefined ? Number.NEGATIVE_INFINITY : Date.parse(scan.signpost)

/** The versions of reviews or deletions that a state says have left, and how it says so. */
export const listSentRows = ({
  recent = [],
  scan,
}: SavedState): ReadonlyArray<readonly [id: string, modified: number, why: string]> => {
  const cutoff = readCutoff(scan)
  // A sweep sends only the reviews without a mention time of the rows that it reads; a row of another window that changed since comes with the next run.
  const isSweep = ['sweep', 'exactSweep'].includes(scan?.windows[0]?.kind ?? '')
  const read = [...(scan?.recent ?? []), ...(isSweep ? [] : (scan?.trail ?? []))]
  return [
    ...recent.map(([id, modified]) => [id, modified, 'which its state lists'] as const),
    ...read
      .filter(([, modified]) => modified <= cutoff)
      .map(([id, modified]) => [id, modified, 'which its scan has read'] as const),
  ]
}
