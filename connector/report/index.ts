/** The page for people: what a snapshot shows about ratings, open work, and the health of the data. */
export { explainJudgement } from './changes'
export type { FigureGroup } from './comparisons'
export { type Comparison, formatChange, formatMetricValue, type Metric } from './figures'
export { formatMinute, formatMonth, shortenText } from './html'
export { explainAlert, nameOwner, namePlace, type WorkItem } from './open-work'
export { explainMonth, renderReport } from './page'
export { type Report, readReport } from './report'
export { type GroupSection, listGroupSections, metrics } from './sections'
