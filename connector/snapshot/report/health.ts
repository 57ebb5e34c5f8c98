import { type Database, quoteIdentifier, quoteLiteral, type Snapshot } from '../store/database'
import { columnsFromSchema } from '../store/tables'
import { cellToNumber, cellToTextOrNull, cellToTimeOrNull } from '../store/values'
import { type CheckResult, readSnapshotStreams, type SnapshotStream } from '../verify/check'
import type { FindStateProblem } from '../verify/loads'
import { countChecks, verifySnapshot } from '../verify/verify'
import {
  formatCount,
  formatDuration,
  formatMinute,
  formatPlural,
  type Html,
  html,
  renderNotice,
  renderSection,
  renderTable,
} from './html'

export type DataHealth = {
  readonly streams: ReadonlyArray<StreamHealth>
  /** The last runs, newest first. */
  readonly runs: ReadonlyArray<RunStatistics>
  readonly checks: ReadonlyArray<CheckResult>
  readonly undeclared: ReadonlyArray<UndeclaredAttribute>
}
export type StreamHealth = {
  readonly stream: string
  readonly rows: number
  /** The greatest cursor received, as `_loads` keeps it. */
  readonly newest: string | null
  readonly completed: string | null
  readonly status: string | null
}
export type RunStatistics = {
  readonly run: number
  readonly started: string | null
  readonly seconds: number | null
  readonly records: number
  readonly streams: number
  /** The names of the streams that are not complete. */
  readonly incomplete: ReadonlyArray<string>
}
/** An attribute that no schema declares; `first` and `last`: when its rows were read. */
export type UndeclaredAttribute = {
  readonly stream: string
  readonly attribute: string
  readonly rows: number
  readonly first: string | null
  readonly last: string | null
}

const maxRuns = 12

export const readDataHealth = async (snapshot: Snapshot, findStateProblem?: FindStateProblem): Promise<DataHealth> => {
  const { db } = snapshot
  const streams = await readSnapshotStreams(db)
  const undeclared: Array<UndeclaredAttribute> = []
  for (const stream of streams) undeclared.push(...(await readUndeclaredAttributes(db, stream)))
  return {
    streams: await readStreamHealth(db, streams),
    runs: await readRuns(db),
    checks: await verifySnapshot(snapshot, findStateProblem),
    undeclared,
  }
}

const readStreamHealth = async (
  db: Database,
  snapshotStreams: ReadonlyArray<SnapshotStream>,
): Promise<ReadonlyArray<StreamHealth>> => {
  const loads = await db.query(`
    SELECT stream, max(cursor_to) AS newest, max(ended) FILTER (status = 'complete') AS completed, arg_max(status, load) AS status
    FROM _loads GROUP BY stream`)
  const streams: Array<StreamHealth> = []
  for (const { name, columns } of snapshotStreams) {
    const load = loads.find(({ stream }) => stream === name)
    streams.push({
      stream: name,
      rows: columns.length === 0 ? 0 : cellToNumber(await db.scalar(`SELECT count(*) FROM ${quoteIdentifier(name)}`)),
      newest: cellToTextOrNull(load?.newest),
      completed: cellToTimeOrNull(load?.completed),
      status: cellToTextOrNull(load?.status),
    })
  }
  return streams
}

const readRuns = async (db: Database): Promise<ReadonlyArray<RunStatistics>> =>
  (
    await db.query(`
      SELECT run, min(started) AS started, epoch(max(ended)) - epoch(min(started)) AS seconds, sum(records)::BIGINT AS records,
        count(DISTINCT stream) AS streams, coalesce(list(stream ORDER BY stream) FILTER (status <> 'complete'), []) AS incomplete
      FROM _loads GROUP BY run ORDER BY run DESC LIMIT ${maxRuns}`)
  ).map(({ run, started, seconds, records, streams, incomplete }) => ({
    run: cellToNumber(run),
    started: cellToTimeOrNull(started),
    seconds: typeof seconds === 'number' ? seconds : null,
    records: cellToNumber(records),
    streams: cellToNumber(streams),
    incomplete: Array.isArray(incomplete) ? incomplete.map(String) : [],
  }))

const readUndeclaredAttributes = async (
  db: Database,
  { name, schema, columns }: SnapshotStream,
): Promise<ReadonlyArray<UndeclaredAttribute>> => {
  const declared = new Set(columnsFromSchema(schema).map((column) => column.name))
  const times = 'min(_airbyte_extracted_at) AS first, max(_airbyte_extracted_at) AS last'
  const queries = columns
    .filter((column) => !declared.has(column.name))
    .map(
      (column) =>
        `SELECT ${quoteLiteral(column.name)} AS attribute, count(${quoteIdentifier(column.name)}) AS rows, ${times} FROM ${quoteIdentifier(name)} WHERE ${quoteIdentifier(column.name)} IS NOT NULL`,
    )
  if (columns.some((column) => column.name === 'unknown_attributes' && column.type === 'JSON'))
    queries.push(
      `SELECT attribute, count(*) AS rows, ${times} FROM (SELECT unnest(json_keys(unknown_attributes)) AS attribute, _airbyte_extracted_at FROM ${quoteIdentifier(name)}) GROUP BY attribute`,
    )
  if (queries.length === 0) return []
  return (await db.query(`${queries.join(' UNION ALL ')} ORDER BY attribute`)).map((row) => ({
    stream: name,
    attribute: String(row.attribute),
    rows: cellToNumber(row.rows),
    first: cellToTimeOrNull(row.first),
    last: cellToTimeOrNull(row.last),
  }))
}

/** Whether the report's numbers can be trusted: how recent and complete the data is, and what the checks found. */
export const renderHealth = ({ health, timeZone }: { readonly health: DataHealth; readonly timeZone: string }): Html =>
  renderSection(
    'Health of the data',
    renderStreams(health, timeZone),
    renderRuns(health, timeZone),
    renderChecks(health),
    renderUndeclaredAttributes(health, timeZone),
  )

const renderStreams = ({ streams }: DataHealth, timeZone: string): Html =>
  html`<h3>Freshness</h3>${
    streams.length === 0
      ? renderNotice('Nothing was loaded into this file yet.')
      : renderTable(
          'Each stream with its newest record and its last complete load',
          [
            { title: 'Stream', cell: ({ stream }) => stream },
            { title: 'Rows', kind: 'n', cell: ({ rows }) => formatCount(rows) },
            {
              title: 'Newest record',
              kind: 't spare',
              cell: ({ newest }) => formatMinute(newest, timeZone),
            },
            { title: 'Loaded', kind: 't spare', cell: ({ completed }) => formatMinute(completed, timeZone) },
            { title: 'Last load', cell: ({ status }) => renderVerdict(status === 'complete', status ?? 'none') },
          ],
          streams,
        )
  }`

const renderRuns = ({ runs }: DataHealth, timeZone: string): Html | undefined =>
  runs.length === 0
    ? undefined
    : html`<h3>Loads</h3>${renderTable(
        runs.length === 1 ? 'One run' : `The last ${formatCount(runs.length)} runs, newest first`,
        [
          { title: 'Run', kind: 'n', cell: ({ run }) => String(run) },
          { title: 'Started', kind: 't', cell: ({ started }) => formatMinute(started, timeZone) },
          { title: 'Duration', kind: 'n spare', cell: ({ seconds }) => formatDuration(seconds) },
          { title: 'Streams', kind: 'n spare', cell: (run) => formatCount(run.streams) },
          { title: 'Records', kind: 'n', cell: ({ records }) => formatCount(records) },
          {
            title: 'Outcome',
            cell: ({ incomplete }) =>
              incomplete.length === 0
                ? renderVerdict(true, 'complete')
                : renderVerdict(false, `incomplete: ${incomplete.join(', ')}`),
          },
        ],
        runs,
      )}`

const renderChecks = ({ checks }: DataHealth): Html => {
  const { hold, checked, nothing } = countChecks(checks)
  return html`<h3>Checks</h3>${renderTable(
    `${formatCount(hold)} of ${formatPlural(checked, 'check')} of feedback verify hold${nothing === 0 ? '' : `; ${formatCount(nothing)} had nothing to check and ${nothing === 1 ? 'is' : 'are'} left out`}`,
    [
      { title: 'Check and what must hold', cell: renderCheckName },
      { title: 'Found', kind: 'n', cell: ({ failures }) => (failures === 0 ? '' : formatCount(failures)) },
      { title: 'Result', cell: renderOutcome },
    ],
    checks.filter(({ outcome }) => outcome !== 'nothing to check'),
  )}`
}

const renderCheckName = ({ name, explain, examples, failures, problem }: CheckResult): Html =>
  html`${name}<br><span class="quiet">${explain}${problem === undefined ? '' : ` ${problem}`}</span>${
    examples.length === 0
      ? undefined
      : html`<ul class="plain">${examples.map((example) => html`<li>${example}</li>`)}${
          failures > examples.length ? html`<li>and ${formatCount(failures - examples.length)} more</li>` : undefined
        }</ul>`
  }`

const renderOutcome = ({ outcome }: CheckResult): Html =>
  outcome === 'holds' || outcome === 'failed'
    ? renderVerdict(outcome === 'holds', outcome)
    : html`<span class="quiet">${outcome === 'unanswered' ? 'could not be made' : outcome}</span>`

const renderUndeclaredAttributes = ({ undeclared }: DataHealth, timeZone: string): Html | undefined =>
  undeclared.length === 0
    ? undefined
    : html`<h3>Undeclared attributes</h3>${renderTable(
        'Attributes that no schema declares; their values are kept',
        [
          { title: 'Stream', cell: ({ stream }) => stream },
          { title: 'Attribute', cell: ({ attribute }) => attribute },
          { title: 'Rows', kind: 'n', cell: ({ rows }) => formatCount(rows) },
          { title: 'First read', kind: 't spare', cell: ({ first }) => formatMinute(first, timeZone) },
          { title: 'Last read', kind: 't', cell: ({ last }) => formatMinute(last, timeZone) },
        ],
        undeclared,
      )}`

const renderVerdict = (good: boolean, text: string): Html => html`<span class="${good ? 'good' : 'bad'}">${text}</span>`
