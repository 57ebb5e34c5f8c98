import type { FindStateProblem } from '../snapshot'
import {
  type CheckResult,
  countChecks,
  type OnStep,
  readSnapshotStreams,
  type SnapshotStream,
  verifySnapshot,
} from '../snapshot'
import {
  cellToNumber,
  cellToTextOrNull,
  cellToTimeOrNull,
  columnsFromSchema,
  type Database,
  quoteIdentifier,
  quoteLiteral,
  type Snapshot,
} from '../snapshot/store'
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
  /** The highest cursor received, as stored in `_loads`. */
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
  /** The names of the incomplete streams. */
  readonly incomplete: ReadonlyArray<string>
}

/** An attribute that no schema declares. `first` and `last`: when its rows were read. */
type UndeclaredAttribute = {
  readonly stream: string
  readonly attribute: string
  readonly rows: number
  readonly first: string | null
  readonly last: string | null
}

const maxRuns = 6

export const readDataHealth = async (
  snapshot: Snapshot,
  findStateProblem?: FindStateProblem,
  onStep?: OnStep,
): Promise<DataHealth> => {
  const { db } = snapshot
  const streams = await readSnapshotStreams(db)
  const undeclared: Array<UndeclaredAttribute> = []
  for (const stream of streams) undeclared.push(...(await readUndeclaredAttributes(db, stream)))
  return {
    streams: await readStreamHealth(db, streams),
    runs: await readRuns(db),
    checks: await verifySnapshot(snapshot, findStateProblem, onStep),
    undeclared,
  }
}

const readStreamHealth = async (
  db: Database,
  snapshotStreams: ReadonlyArray<SnapshotStream>,
): Promise<ReadonlyArray<StreamHealth>> => {
  const loads = await db.query(`
    SELECT stream, max(cursor_to) AS newest, max(ended) FILTER (status = 'complete') AS completed,
      arg_max(status, load) AS status
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
      SELECT run, min(started) AS started, epoch(max(ended)) - epoch(min(started)) AS seconds,
        sum(records)::BIGINT AS records, count(DISTINCT stream) AS streams,
        coalesce(list(stream ORDER BY stream) FILTER (status <> 'complete'), []) AS incomplete
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
      (column) => `
        SELECT ${quoteLiteral(column.name)} AS attribute, count(*) AS rows, ${times}
        FROM ${quoteIdentifier(name)}
        WHERE ${quoteIdentifier(column.name)} IS NOT NULL`,
    )
  if (columns.some((column) => column.name === 'unknown_attributes' && column.type === 'JSON'))
    queries.push(`
        SELECT attribute, count(*) AS rows, ${times}
        FROM (
          SELECT unnest(json_keys(unknown_attributes)) AS attribute, _airbyte_extracted_at
          FROM ${quoteIdentifier(name)})
        GROUP BY attribute`)
  if (queries.length === 0) return []
  return (await db.query(`${queries.join(' UNION ALL ')} ORDER BY attribute`)).map((row) => ({
    stream: name,
    attribute: String(row.attribute),
    rows: cellToNumber(row.rows),
    first: cellToTimeOrNull(row.first),
    last: cellToTimeOrNull(row.last),
  }))
}

/** Shows if the report's numbers can be trusted: how recent and complete the data is, and what the checks found. */
export const renderHealth = ({ health, timeZone }: { readonly health: DataHealth; readonly timeZone: string }): Html =>
  renderSection(
    'Health of the data',
    renderChecks(health),
    html`<div class="pair screen"><div>${renderStreams(health, timeZone)}</div><div>${renderRuns(
      health,
      timeZone,
    )}</div></div>`,
    html`<div class="screen">${renderUndeclaredAttributes(health, timeZone)}</div>`,
  )

const renderStreams = ({ streams }: DataHealth, timeZone: string): Html =>
  html`<h3>Freshness</h3>${
    streams.length === 0
      ? renderNotice('Nothing was loaded into this file yet.')
      : renderTable(
          'Each stream with its newest record and the end of its last complete load',
          [
            { title: 'Stream', isHeader: true, cell: ({ stream }) => stream },
            { title: 'Rows', kind: 'n', cell: ({ rows }) => formatCount(rows) },
            { title: 'Newest record', kind: 't', cell: ({ newest }) => formatMinute(newest, timeZone) },
            {
              title: 'Loaded',
              kind: 't',
              cell: ({ completed, status }) => {
                const time = formatMinute(completed, timeZone)
                if (status === 'complete') return time
                const before = completed === null ? undefined : `${time}, then `
                return html`${before}<span class="bad">${status ?? 'never'}</span>`
              },
            },
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
          { title: 'Run', kind: 'n', isHeader: true, cell: ({ run }) => String(run) },
          { title: 'Started', kind: 't', cell: ({ started }) => formatMinute(started, timeZone) },
          { title: 'Duration', kind: 'n', cell: ({ seconds }) => formatDuration(seconds) },
          { title: 'Records', kind: 'n', cell: ({ records }) => formatCount(records) },
          {
            title: 'Outcome',
            cell: ({ incomplete }) =>
              incomplete.length === 0
                ? 'complete'
                : html`<span class="bad">incomplete: ${incomplete.join(', ')}</span>`,
          },
        ],
        runs,
      )}`

/** A table of the failed checks; the names of the others in an expandable list. */
const renderChecks = ({ checks }: DataHealth): Html => {
  const { hold, checked, nothing } = countChecks(checks)
  const told = checks.filter(({ outcome }) => outcome !== 'nothing to check' && outcome !== 'holds')
  const held = checks.filter(({ outcome }) => outcome === 'holds')
  return html`<p>${formatCount(hold)} of ${formatPlural(checked, 'check')} hold${
    nothing === 0 ? '' : `; ${formatCount(nothing)} had nothing to check`
  }.</p>${
    told.length === 0
      ? undefined
      : renderTable(
          'Checks that do not hold, and notes',
          [
            { title: 'Check and what must hold', isHeader: true, cell: renderCheckName },
            { title: 'Found', kind: 'n', cell: ({ failures }) => (failures === 0 ? '' : formatCount(failures)) },
            { title: 'Result', cell: renderOutcome },
          ],
          told,
        )
  }${
    held.length === 0
      ? undefined
      : html`<details><summary>The checks that hold</summary><ul class="plain">${held.map(
          ({ name, explain }) => html`<li>${name} <span class="quiet">${explain}</span></li>`,
        )}</ul></details>`
  }`
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
  outcome === 'failed'
    ? html`<span class="bad">failed</span>`
    : html`<span class="quiet">${outcome === 'unanswered' ? 'could not be made' : outcome}</span>`

const renderUndeclaredAttributes = ({ undeclared }: DataHealth, timeZone: string): Html | undefined =>
  undeclared.length === 0
    ? undefined
    : html`<h3>Undeclared attributes</h3>${renderTable(
        'Attributes that no schema declares; their values are kept',
        [
          { title: 'Stream', cell: ({ stream }) => stream },
          { title: 'Attribute', isHeader: true, cell: ({ attribute }) => attribute },
          { title: 'Rows', kind: 'n', cell: ({ rows }) => formatCount(rows) },
          { title: 'First read', kind: 't', cell: ({ first }) => formatMinute(first, timeZone) },
          { title: 'Last read', kind: 't', cell: ({ last }) => formatMinute(last, timeZone) },
        ],
        undeclared,
      )}`
