/** The parts of a saved state that say what was read. */
export type SavedState = {
  readonly modifiedTimeFrom: string
  readonly slack?: number
  readonly recent?: ReadonlyArray<SentRow>
  readonly scan?: {
    readonly begun: string
    readonly cutoff?: string
    readonly windows: ReadonlyArray<{ readonly unmentioned?: boolean }>
    readonly from: string
    readonly offset: number
    readonly tail: ReadonlyArray<SentRow>
    readonly recent: ReadonlyArray<SentRow>
  }
}

/** Id, version, and more. */
type SentRow = readonly [string, number, ...unknown[]]

/** The time up to which an unfinished scan sends rows; milliseconds. -Infinity before it has read anything. */
export const readCutoff = (scan: SavedState['scan']): number =>
  scan?.cutoff === undefined ? Number.NEGATIVE_INFINITY : Date.parse(scan.cutoff)

/** The versions of reviews or deletions that a state says have left, and how it says so. */
export const listSentRows = ({
  recent = [],
  scan,
}: SavedState): ReadonlyArray<readonly [id: string, modified: number, why: string]> => {
  const cutoff = readCutoff(scan)
  // Of the rows that it reads for those without a mention time, only these leave.
  const sendsAll = scan?.windows[0]?.unmentioned !== true
  const read = [...(scan?.recent ?? []), ...(sendsAll ? (scan?.tail ?? []) : [])]
  return [
    ...recent.map(([id, modified]) => [id, modified, 'which its state lists'] as const),
    ...read
      .filter(([, modified]) => modified <= cutoff)
      .map(([id, modified]) => [id, modified, 'which its scan has read'] as const),
  ]
}
