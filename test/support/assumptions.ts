import type { ExportTraits } from './export-simulation'

/**
 * What a reader assumes of a service. Which traits break which assumption is decided here, before any service is drawn:
 * no service is left out of a comparison because a reader lost rows of it.
 *
 * - A1 An answer is one snapshot of the rows that match its filter, at most the lookback old, or for a moment empty.
 * - A2 An answer shorter than the limit that was sent or echoed ends the list.
 * - A3 Rows that nobody touches keep their order during a pass.
 * - A4 Filters by mention time are honoured.
 * - A5 A change shows within the lookback.
 * - A6 `modifiedTimeFrom` is read as UTC.
 * - A7 `Date` is not ahead of the clock that stamps rows by more than the lookback.
 */
export type Assumption = 'A1' | 'A2' | 'A3' | 'A4' | 'A5' | 'A6' | 'A7'

/** How a service is read; the lookback in milliseconds. */
type Reading = { readonly limit: number; readonly lookback: number }

/** The longest time for which a reader asks again, milliseconds: after 0.5, 1, 2, 4 and 8 s. */
const longestMoment = 15_500

/** Rows of one list that have the same modifiedTime: at first, or because one request changes several. */
const hasEqualTimes = (traits: ExportTraits): boolean =>
  traits.rowsPerTime > 1 ||
  traits.attackSize > 0 ||
  traits.burstEvery > 0 ||
  traits.deletions > 1 ||
  Math.ceil(traits.changes) + Math.ceil(traits.additions) + Math.ceil(traits.restorations) > 1

const hasOutages = ({ outageAt, outageEvery }: ExportTraits): boolean => outageAt > 0 || outageEvery > 0

const breaches: Readonly<Record<Assumption, (traits: ExportTraits, reading: Reading) => boolean>> = {
  A1: (traits, { lookback }) =>
    traits.lackingRows > 0 || (hasOutages(traits) && traits.outageTime > longestMoment) || traits.replicaLag > lookback,
  A2: ({ echo, shortPages, clamp, leastClamp, replicaClamp, lowerAfter }, { limit }) =>
    shortPages || (echo !== true && (clamp < limit || leastClamp > 0 || replicaClamp > 0 || lowerAfter > 0)),
  A3: (traits) =>
    traits.order === 'random' ||
    (hasEqualTimes(traits) && (traits.order === 'ties' || (traits.order !== 'id' && traits.ties !== 'stable'))),
  A4: ({ mentionFilter, unmentioned }) =>
    mentionFilter === 'ignored' || (mentionFilter === 'lenient' && unmentioned > 0),
  A5: ({ lag, replicaLag }, { lookback }) => lag + replicaLag > lookback,
  A6: ({ filterShift }) => filterShift !== 0,
  A7: ({ clockSkew }, { lookback }) => clockSkew !== undefined && clockSkew > lookback,
}

/** The assumptions that a service breaks, or may break, when it is read so. */
export const brokenAssumptions = (traits: ExportTraits, reading: Reading): ReadonlyArray<Assumption> =>
  (Object.keys(breaches) as Assumption[]).filter((name) => breaches[name](traits, reading))

/** How many rows change, come or go with each request, on average. */
export const rowsTouchedPerRequest = (traits: ExportTraits): number =>
  traits.changes +
  traits.deletions +
  traits.additions +
  traits.restorations +
  traits.attackSize +
  (traits.burstEvery > 0 ? traits.burstSize / traits.burstEvery : 0)

/** A probe of the end asks for 13 rows and expects 4: as few as 5 prove that more follow. */
const probeLimit = 13
const rowsBehindEnd = 5

/** How few rows of a probe a service may show although more follow. */
const shortestProbe = ({
  clamp,
  leastClamp,
  lowerAfter,
  lowerLimit,
  replicaClamp,
  shortestPage,
}: ExportTraits): number => {
  const limits = [clamp, leastClamp, lowerAfter > 0 ? lowerLimit : 0, replicaClamp].filter((limit) => limit > 0)
  return Math.ceil(Math.min(probeLimit, ...limits) * shortestPage)
}

/**
 * What a service does that no client could notice: without these, a reader must never end COMPLETE and lack a row.
 * Drawn services have none of them.
 */
export const findUndetectable = (
  traits: ExportTraits,
  { lookback }: Pick<Reading, 'lookback'>,
): ReadonlyArray<string> => {
  const isTouched = rowsTouchedPerRequest(traits) > 0
  return [
    ...(traits.lag + traits.replicaLag > lookback ? ['a change shows later than the lookback'] : []),
    ...(traits.defaultRange === 'untold' ? ['a default range that no echo tells'] : []),
    ...(traits.lackingRows > 0 && isTouched ? ['an answer lacks old rows, and as many were deleted'] : []),
    ...(traits.ties === 'merged' && isTouched ? ['untouched rows move as changed rows do'] : []),
    ...(traits.shortPages && shortestProbe(traits) < rowsBehindEnd
      ? ['a probe of the end is cut to just what it has at the end']
      : []),
  ]
}
