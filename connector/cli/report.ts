import { type CommandIo, defineCommand, progressDelay, usageError } from '../cdk'
import {
  type Comparison,
  explainAlert,
  explainJudgement,
  explainMonth,
  type FigureGroup,
  formatChange,
  formatMetricValue,
  formatMinute,
  formatMonth,
  type GroupSection,
  listGroupSections,
  type Metric,
  metrics,
  nameOwner,
  namePlace,
  type Report,
  readReport,
  renderReport,
  shortenText,
  type WorkItem,
} from '../report'
import { countChecks, explainUnknownRegions, readRegions } from '../snapshot'
import { chooseReportFormat, type ReportFormat, reportFormats } from './formats'
import { readPlaceOptions, regionsOption, requirePlace } from './options'
import { refuseDatabaseAsOutput, writeOutputFile } from './output-file'
import { escapeMarkdown, formatCsvRow, formatMarkdownTable } from './rows'
import { toSnapshotOptions, useSnapshot } from './snapshot-file'
import { escapeControls, formatJson } from './table'

export const reportCommand = defineCommand({
  name: 'report',
  summary: 'Writes a report that compares a month with the month before.',
  options: {
    ...readPlaceOptions,
    out: { type: 'string', value: 'FILE', help: 'Write the report into this file; an existing one is replaced' },
    month: { type: 'string', value: 'YYYY-MM', help: 'The month; the last full one that was read if left out' },
    regions: regionsOption,
    'with-text': { type: 'boolean', help: 'Add what the reviewers wrote to the alerts and the open tasks' },
    format: {
      type: 'string',
      value: reportFormats.join('|'),
      help: 'A page, Markdown, JSON or CSV; if left out, by the ending of --out, else a page',
    },
    json: { type: 'boolean', help: 'The same as --format json' },
  },
  examples: [
    'feedback report --db reviews.duckdb --out report.html',
    'feedback report --db reviews.duckdb --month 2026-10 --regions regions.csv --format md',
    `feedback report --db reviews.duckdb --json | jq '.owners[] | [.name, .figures.open_tasks.value]'`,
  ],
  notes:
    'The page needs no network. Without --out, Markdown, JSON and CSV go to stdout. Texts of ' +
    'reviews appear only with --with-text. Exit status: 0, even if the month has no reviews or a ' +
    'check of the snapshot fails, which the report says.',
  run: async (io, { options }) => {
    const { out, month } = options
    const db = requirePlace('feedback report', options)
    const format = chooseReportFormat(options)
    if (month !== undefined && !/^[0-9]{4}-(0[1-9]|1[0-2])$/.test(month))
      throw usageError(`--month must be a month such as 2026-10, not ${month}.`)
    if (out !== undefined) await refuseDatabaseAsOutput(out, db)
    const regions = options.regions === undefined ? undefined : await readRegions(options.regions)
    const report = await useSnapshot(
      db,
      'read',
      (snapshot) =>
        readReport(snapshot, {
          now: Date.now(),
          month,
          regions,
          withText: options['with-text'],
          onSection: (name) => io.printProgress(`Reading ${name}`, progressDelay),
        }),
      toSnapshotOptions(io, options),
    )
    io.printProgress('')
    const text = writers[format](report)
    if (out === undefined) await io.print(escapeControls(text))
    else {
      await writeOutputFile(out, text)
      await io.print(`${out} is written.\n`)
    }
    printWarnings(io, report)
    return 0
  },
})

const printWarnings = (io: CommandIo, report: Report): void => {
  const notice = explainMonth(report)
  if (notice !== undefined) io.printWarning(notice)
  for (const warning of explainUnknownRegions(report.unknown_regions)) io.printWarning(warning)
  for (const { name, explain } of report.health.checks.filter(({ ok }) => !ok))
    io.printWarning(`The check "${name}" fails: ${explain} See feedback verify.`)
}

const maxRows = 10

/**
 * A figure, the figure of the month before, and the change with its mark. If the figure is not compared, only the
 * first.
 */
const listFigure = (
  metric: Metric,
  { value, previous, change, test }: Comparison,
): readonly [string, string, string] => {
  const own = formatMetricValue(metric, value, test?.range)
  if (metric.isOfNow) return [own, '', '']
  const mark = test?.mark ? ` **${test.mark}**` : ''
  return [own, formatMetricValue(metric, previous, test?.previous_range), `${formatChange(metric, change)}${mark}`]
}

/** A figure, with the month before and the change in brackets. */
const formatFigure = (metric: Metric, comparison: Comparison | undefined): string => {
  if (comparison === undefined) return '–'
  const [own, before, change] = listFigure(metric, comparison)
  return before === '' ? own : `${own} (${before}, ${change})`
}

const formatSection = (title: string, ...parts: ReadonlyArray<string>): string => `\n## ${title}\n\n${parts.join('\n')}`

const explainMore = (shown: number, total: number): string =>
  total > shown ? `The first ${shown} of ${total.toLocaleString('en')}.\n` : ''

const formatGroups = (section: GroupSection, groups: ReadonlyArray<FigureGroup>): string =>
  groups.length === 0
    ? ''
    : formatSection(
        section.title,
        formatMarkdownTable(
          [section.one, ...section.shown.map((name) => metrics[name].title)],
          groups
            .slice(0, maxRows)
            .map(({ name, figures }) => [
              escapeMarkdown(name ?? `(no ${section.one.toLowerCase()})`),
              ...section.shown.map((metric) => formatFigure(metrics[metric], figures[metric])),
            ]),
        ),
        explainMore(maxRows, groups.length),
      )

const formatWork = (items: ReadonlyArray<WorkItem>, total: number): string => {
  const hasText = items.some(({ text }) => text !== undefined)
  const isAlert = items.some(({ reasons }) => reasons.length > 0)
  const pick = <A>(isShown: boolean, cell: A): ReadonlyArray<A> => (isShown ? [cell] : [])
  return [
    formatMarkdownTable(
      ['Review', ...pick(isAlert, 'Why'), 'Location', 'Region', 'Owner', 'Age', ...pick(hasText, 'Text')],
      items
        .slice(0, maxRows)
        .map((item) => [
          item.review_id,
          ...pick(isAlert, explainAlert(item)),
          escapeMarkdown(namePlace(item)),
          escapeMarkdown(item.region ?? '–'),
          escapeMarkdown(nameOwner(item)),
          item.age_days === null ? '–' : `${item.age_days} d`,
          ...pick(hasText, escapeMarkdown(shortenText(item.text ?? '–', 400))),
        ]),
      (title) => title === 'Age',
    ),
    explainMore(maxRows, total),
  ].join('\n')
}

const formatMarkdown = (report: Report): string => {
  const { month, previous_month, alerts, open_tasks, health, time_zone } = report
  const notice = explainMonth(report)
  const { hold, checked } = countChecks(health.checks)
  const failed = health.checks.filter(({ ok }) => !ok)
  const intro =
    `${escapeMarkdown(report.file)}, last read ${formatMinute(report.read_at, time_zone)} ` +
    `(${time_zone}). In brackets: ${formatMonth(previous_month)}, and the change.`
  const heads = ['', formatMonth(month), formatMonth(previous_month), 'Change']
  const judged = explainJudgement(report, '**better** or **worse**')
  const all = Object.entries<Metric>(metrics).flatMap(([name, metric]) => {
    const comparison = report.figures[name]
    return comparison === undefined ? [] : [[metric.title, ...listFigure(metric, comparison)]]
  })
  return [
    `# Feedback in ${formatMonth(month)}\n\n${intro}\n`,
    notice === undefined ? '' : `\n**${escapeMarkdown(notice)}**\n`,
    all.length === 0 ? '' : `\n${judged}\n\n${formatMarkdownTable(heads, all)}`,
    alerts.total === 0
      ? ''
      : formatSection(
          'Alerts',
          formatMarkdownTable(
            ['Reason', formatMonth(month), 'All months'],
            alerts.counts.map(({ name, total, figures }) => [name, String(figures.alerts.value), String(total)]),
          ),
          alerts.listed.length === 0 ? '' : formatWork(alerts.listed, alerts.total - alerts.backlog.total),
        ),
    alerts.backlog.total === 0
      ? ''
      : formatSection('Alerts of other months', formatWork(alerts.backlog.listed, alerts.backlog.total)),
    open_tasks.total === 0 ? '' : formatSection('Open tasks', formatWork(open_tasks.listed, open_tasks.total)),
    ...listGroupSections(report.has_regions).map(([name, section]) => formatGroups(section, report[name])),
    formatSection(
      'Health of the data',
      `${hold} of ${checked} checks hold.\n`,
      ...failed.map(({ name, explain }) => `- **${escapeMarkdown(name)}** fails: ${escapeMarkdown(explain)}\n`),
    ),
  ].join('')
}

/** A row of the CSV: a figure with the month before, a text, or one attribute of a listed review. */
type TidyRow = readonly [
  ...[section: string, key: string | null, name: string | null, metric: string],
  value: string | number | null,
  previous?: string | number | null,
  change?: number | null,
  p?: number | null | undefined,
  mark?: string | null | undefined,
]

const listFigures = (section: string, groups: ReadonlyArray<FigureGroup>): ReadonlyArray<TidyRow> =>
  groups.flatMap(({ key, name, figures }) =>
    Object.entries(figures).map(
      ([metric, { value, previous, change, test }]): TidyRow => [
        section,
        key,
        name,
        metric,
        value,
        previous,
        change,
        test?.p,
        test?.mark,
      ],
    ),
  )

const listAttributes = (
  section: string,
  rows: ReadonlyArray<{ readonly key: string | null; readonly name: string | null; readonly of: object }>,
): ReadonlyArray<TidyRow> =>
  rows.flatMap(({ key, name, of }) =>
    Object.entries(of).map(
      ([metric, value]): TidyRow => [
        section,
        key,
        name,
        metric,
        typeof value === 'number' ? value : (value?.toString() ?? null),
      ],
    ),
  )

const listWork = (section: string, items: ReadonlyArray<WorkItem>): ReadonlyArray<TidyRow> =>
  listAttributes(
    section,
    items.map(({ review_id, ...of }) => ({ key: review_id, name: of.location_name, of })),
  )

const csvHeader = ['section', 'key', 'name', 'metric', 'value', 'previous', 'change', 'p', 'mark']

const formatCsv = (report: Report): string => {
  const { alerts, open_tasks, health } = report
  const rows: ReadonlyArray<TidyRow> = [
    ['report', null, report.file, 'month', report.month, report.previous_month],
    ...(['made_at', 'read_at', 'time_zone'] as const).map(
      (name): TidyRow => ['report', null, report.file, name, report[name]],
    ),
    ...listFigures('all', [{ key: null, name: null, figures: report.figures }]),
    ...listFigures('alerts', alerts.counts),
    ...alerts.counts.map(({ key, name, total }): TidyRow => ['alerts', key, name, 'alerts_now', total]),
    ...listWork('alerts_listed', alerts.listed),
    ...listWork('alerts_backlog', alerts.backlog.listed),
    ['open_tasks', null, null, 'open_tasks_now', open_tasks.total],
    ...listWork('open_tasks_listed', open_tasks.listed),
    ...listGroupSections(report.has_regions).flatMap(([name]) => listFigures(name, report[name])),
    ...listFigures('ratings', report.ratings),
    ...listFigures('response_times', report.response_times),
    ...listAttributes(
      'trend',
      report.trend.map(({ month, ...of }) => ({ key: month, name: null, of })),
    ),
    ...listAttributes(
      'location_estimates',
      report.location_estimates.map(({ location_id, location_name, ...of }) => ({
        key: location_id,
        name: location_name,
        of,
      })),
    ),
    ...listAttributes(
      'open_liabilities',
      report.open_liabilities.map(({ category, ...of }) => ({ key: category, name: category, of })),
    ),
    ...listAttributes(
      'streams',
      health.streams.map(({ stream, ...of }) => ({ key: stream, name: null, of })),
    ),
    ...health.checks.map(({ name, outcome, failures }): TidyRow => ['checks', name, outcome, 'failures', failures]),
  ]
  // The byte order mark shows a spreadsheet that the file is UTF-8.
  return `\ufeff${[csvHeader, ...rows].map((row) => formatCsvRow(csvHeader.map((_, i) => row[i]))).join('')}`
}

const writers: Readonly<Record<ReportFormat, (report: Report) => string>> = {
  html: renderReport,
  md: formatMarkdown,
  json: formatJson,
  csv: formatCsv,
}
