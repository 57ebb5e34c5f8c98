import { falseDiscoveryRate, leastSize } from './chance'
import { type Comparison, formatMetricValue, renderChange } from './figures'
import {
  formatCount,
  formatMonth,
  formatPlural,
  formatShare,
  type Html,
  html,
  renderSection,
  renderTable,
  renderTwoLines,
} from './html'
import type { Report } from './report'
import { listGroupSections, type MetricName, metrics } from './sections'

/** A change outside chance. `of`: the group whose figure changed. */
type MarkedChange = { readonly of: string; readonly metric: MetricName; readonly comparison: Comparison }

/** The marked changes of a report, with the most certain first. */
export const listMarkedChanges = (report: Report): ReadonlyArray<MarkedChange> => {
  const rows = [
    { of: 'All reviews', figures: report.figures },
    ...listGroupSections(report.has_regions).flatMap(([name, { one }]) =>
      report[name].map((group) => ({ of: `${one} ${group.name ?? 'unknown'}`, figures: group.figures })),
    ),
  ]
  const certainty = ({ comparison }: MarkedChange) => comparison.test?.p ?? 1
  return rows
    .flatMap(({ of, figures }) =>
      Object.entries(figures).flatMap(([metric, comparison]) =>
        comparison.test?.mark ? [{ of, metric: metric as MetricName, comparison }] : [],
      ),
    )
    .sort((a, b) => certainty(a) - certainty(b))
}

/** A sentence on how changes were judged. `marks`: how they are marked. */
export const explainJudgement = ({ judgement, is_over, month, figures }: Report, marks: string): string => {
  if (!is_over) return `${formatMonth(month)} is not over: no change is marked.`
  if (judgement.compared === 0)
    return figures.reviews === undefined ? '' : `No change is marked: fewer than ${leastSize} reviews in a month.`
  const compared = formatPlural(judgement.compared, 'change')
  return (
    `Of ${compared} that could be judged, those outside chance are marked ${marks}; ` +
    `all others may be chance. Fewer than ${formatShare(falseDiscoveryRate)} of the marks are expected ` +
    `to be false (method of Benjamini and Hochberg). A figure of fewer than ${leastSize} reviews in a ` +
    'month is never marked.'
  )
}

/** More changes are shown only in their own sections. */
const maxChanges = 12

export const renderChanges = (report: Report): Html => {
  const changes = listMarkedChanges(report)
  const [month, previous] = [report.month, report.previous_month].map(formatMonth)
  const note = html`<p class="quiet">${explainJudgement(report, 'better (✓) or worse (!)')}</p>`
  if (changes.length === 0) return renderSection('What changed', html`<p>Nothing that is outside chance.</p>`, note)
  return renderSection(
    'What changed',
    renderTable(
      changes.length > maxChanges
        ? `The ${maxChanges} most certain of ${formatCount(changes.length)} changes outside chance.`
        : 'All changes outside chance, the most certain first.',
      [
        {
          title: 'What',
          kind: 'name',
          isHeader: true,
          cell: ({ of, metric }) => renderTwoLines(of, metrics[metric].title),
        },
        {
          title: month ?? '',
          kind: 'n',
          cell: ({ metric, comparison: { value, test } }) => formatMetricValue(metrics[metric], value, test?.range),
        },
        {
          title: previous ?? '',
          kind: 'n',
          cell: ({ metric, comparison: { previous: before, test } }) =>
            formatMetricValue(metrics[metric], before, test?.previous_range),
        },
        { title: 'Change', kind: 'n', cell: ({ metric, comparison }) => renderChange(metrics[metric], comparison) },
      ],
      changes.slice(0, maxChanges),
    ),
    note,
  )
}
