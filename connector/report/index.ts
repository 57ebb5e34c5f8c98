/** The page for people: what a snapshot says of ratings, of work that is left, and of how sound the data is. */
export { type FigureGroup, type GroupSection, metrics } from './comparisons'
export {
  type Figures,
  formatChange,
  formatMetricValue,
  formatMinute,
  formatMonth,
  type Metric,
  shortenText,
} from './html'
export { explainAlert, nameOwner, namePlace, type WorkItem } from './open-work'
export { explainMonth, listGroupSections, renderReport } from './page'
export { type Report, readReport } from './report'
