import { defined } from '../cdk'
import { cellToNumberOrNull, cellToTextOrNull, type Database, type RowValues } from '../snapshot/store'
import { findProbability, findThreshold, type Sample } from './chance'
import type { ChanceTest, Comparison, Figures } from './figures'
import type { FocusMonth, MonthPair } from './months'
import { readSamples, type SampledMetric, type Samples } from './samples'
import { type GroupSection, type MetricName, metrics } from './sections'

/** What the figures of a row are about: a region, an owner, a category. Null if the reviews name none. */
export type FigureGroup = { readonly key: string | null; readonly name: string | null; readonly figures: Figures }

/** Changes are rounded, because the difference of two decimals may have more digits than they do. */
const subtract = (value: number | null, previous: number | null): number | null =>
  value === null || previous === null ? null : Math.round((value - previous) * 100) / 100

export const compareFigures = (value: number | null, previous: number | null): Comparison => ({
  value,
  previous,
  change: subtract(value, previous),
})

/** Two rows of a model side by side. If a row is missing, counts are 0 and everything else is unknown. */
export const compareRows = (
  names: ReadonlyArray<MetricName>,
  row: RowValues | undefined,
  previous: RowValues | undefined,
): Figures => {
  const read = (from: RowValues | undefined, name: MetricName) =>
    from === undefined && metrics[name].unit === 'count' ? 0 : cellToNumberOrNull(from?.[name])
  return Object.fromEntries(names.map((name) => [name, compareFigures(read(row, name), read(previous, name))]))
}

/** Rounds to two digits, halves up after a cut to nine digits, as the models do. */
const roundValue = (value: number): number => Number(`${Math.round(Number(`${value.toFixed(9)}e2`))}e-2`)

/** Probabilities keep four digits. Later digits depend on the order in which a database adds numbers. */
const roundProbability = (p: number): number => Number(p.toPrecision(4))

const noSample: Sample = { kind: 'share', n: 0, low: 0, high: 0 }

/** The figure of a sample; null if it has no values or is known only within bounds. */
export const valueOf = (sample: Sample): number | null => {
  if (sample.n === 0) return null
  if (sample.kind === 'average') return roundValue(sample.mean)
  return sample.low === sample.high ? roundValue(sample.low / sample.n) : null
}

const rangeOf = (sample: Sample): readonly [number, number] | undefined =>
  sample.kind === 'share' && sample.low < sample.high
    ? [roundValue(sample.low / sample.n), roundValue(sample.high / sample.n)]
    : undefined

/** The direction in which a figure changed: better or worse. */
const findDirection = (name: SampledMetric, value: Sample, previous: Sample): ChanceTest['mark'] => {
  const middle = (sample: Sample) => (sample.kind === 'average' ? sample.mean : sample.low / sample.n)
  const isHigher = middle(value) > middle(previous)
  return isHigher === (metrics[name].better === 'higher') ? 'better' : 'worse'
}

/**
 * Two samples side by side, with the probability of their difference. The mark shows the direction of the change;
 * `markFigures` decides if it is outside chance and stays. `isJudged`: changes are judged at all.
 */
const compareSamples = (
  name: SampledMetric,
  value: Sample = noSample,
  previous: Sample = noSample,
  isJudged = true,
): Comparison => {
  const comparison = compareFigures(valueOf(value), valueOf(previous))
  const p = isJudged ? findProbability(value, previous) : null
  const [range, previous_range] = [rangeOf(value), rangeOf(previous)]
  return {
    ...comparison,
    test: {
      n: value.n,
      previous_n: previous.n,
      p: p === null ? null : roundProbability(p),
      mark: p === null || comparison.change === 0 ? null : findDirection(name, value, previous),
      ...(range === undefined ? {} : { range }),
      ...(previous_range === undefined ? {} : { previous_range }),
    },
  }
}

/** The judged figures, each from its samples. */
export const compareAllSamples = (
  names: ReadonlyArray<SampledMetric>,
  samples: Samples,
  previous: Samples,
  isJudged: boolean,
): Figures =>
  Object.fromEntries(names.map((name) => [name, compareSamples(name, samples[name], previous[name], isJudged)]))

/** Reads the rows of a section's model in one month, by the identity of their group. */
const readRows = async (
  db: Database,
  section: GroupSection,
  month: string,
  focusMonth: FocusMonth,
): Promise<ReadonlyMap<string | null, RowValues>> => {
  const sql = `
    SELECT (${section.identity ?? section.key})::VARCHAR AS group_id, (${section.key})::VARCHAR AS group_key,
      (${section.name})::VARCHAR AS group_name, ${section.metrics.join(', ')}
    FROM ${section.model}`
  const rows = section.isOfAllMonths
    ? await focusMonth(month, () => db.query(sql))
    : await db.query(`${sql} WHERE month = $month::DATE`, { month: `${month}-01` })
  return new Map(rows.map((row) => [cellToTextOrNull(row.group_id), row]))
}

/** Highest value first, then by name. */
const compareGroups =
  (order: MetricName) =>
  (a: FigureGroup, b: FigureGroup): number => {
    const weigh = ({ figures }: FigureGroup, at: 'value' | 'previous') => figures[order]?.[at] ?? -1
    return (
      weigh(b, 'value') - weigh(a, 'value') ||
      weigh(b, 'previous') - weigh(a, 'previous') ||
      (a.name ?? '').localeCompare(b.name ?? '', 'en') ||
      (a.key ?? '').localeCompare(b.key ?? '', 'en')
    )
  }

/** Reads the groups of a section in both months, highest value first. */
export const readGroups = async (
  db: Database,
  section: GroupSection,
  { month, previous }: MonthPair,
  { focusMonth, isJudged }: { readonly focusMonth: FocusMonth; readonly isJudged: boolean },
): Promise<ReadonlyArray<FigureGroup>> => {
  const rows = await readRows(db, section, month, focusMonth)
  const before = await readRows(db, section, previous, focusMonth)
  const { identity = section.key, sampled, sampledFrom: from, sampledWhere: where } = section
  const source = { identity, metrics: sampled, ...defined({ from, where }) }
  const samplesOf = sampled.length === 0 ? () => ({}) : await readSamples(db, source, [month, previous])
  return [...new Set([...rows.keys(), ...before.keys()])]
    .map((id) => {
      const [row, rowBefore] = [rows.get(id), before.get(id)]
      return {
        key: cellToTextOrNull((row ?? rowBefore)?.group_key),
        name: cellToTextOrNull((row ?? rowBefore)?.group_name),
        figures: {
          ...compareRows(section.metrics, row, rowBefore),
          ...compareAllSamples(sampled, samplesOf(month, id), samplesOf(previous, id), isJudged),
        },
      }
    })
    .sort(compareGroups(section.order))
}

/** The probabilities of all judged changes. */
const listProbabilities = (figures: ReadonlyArray<Figures>): ReadonlyArray<number> =>
  figures.flatMap((own) => Object.values(own)).flatMap(({ test }) => (test?.p == null ? [] : [test.p]))

/** How the changes of a report were judged. */
export type Judgement = {
  /** How many changes were compared. */
  readonly compared: number
  /** The highest probability at which a change is marked; null if none is. */
  readonly threshold: number | null
}

export const judgeChanges = (figures: ReadonlyArray<Figures>): Judgement => {
  const probabilities = listProbabilities(figures)
  return { compared: probabilities.length, threshold: findThreshold(probabilities) }
}

/** The figures, with marks only on changes outside chance. */
export const markFigures = (figures: Figures, { threshold }: Judgement): Figures =>
  Object.fromEntries(
    Object.entries(figures).map(([name, comparison]) => {
      const { test } = comparison
      const isOutside = threshold !== null && test?.p != null && test.p <= threshold
      return [name, test === undefined || isOutside ? comparison : { ...comparison, test: { ...test, mark: null } }]
    }),
  )
