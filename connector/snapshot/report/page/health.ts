import type { Report } from '../../report'
import type { CheckResult } from '../../verify'
import type { DataHealth } from '../health'
import { formatAge, formatCount, formatDuration, formatMinute, formatPlural } from './format'
import { type Html, html } from './html'
import { renderNotice, renderSection, renderTable } from './parts'

/** Whether the numbers above may be trusted: how fresh, how complete, how checked. */
export const renderHealth = ({ health, madeAt }: Report): Html =>
  renderSection(
    'Health of the data',
    renderFreshness(health, madeAt),
    renderRuns(health),
    renderChecks(health),
    renderDrift(health),
  )

const renderFreshness = ({ streams: found }: DataHealth, madeAt: string): Html =>
  html`<h3>Freshness</h3>${
    found.length === 0
      ? renderNotice('Nothing was loaded into this file yet.')
      : renderTable(
          'Each stream, its newest record and its last complete load',
          [
            { title: 'Stream', cell: ({ stream }) => stream },
            { title: 'Rows', kind: 'n', cell: ({ rows }) => formatCount(rows) },
            {
              title: 'Newest record',
              kind: 't spare',
              cell: ({ newest }) => (newest === null ? '–' : newest.slice(0, 16).replace('T', ' ')),
            },
            { title: 'Loaded', kind: 't spare', cell: ({ completed }) => formatMinute(completed) },
            { title: 'Age', kind: 'n', cell: ({ completed }) => formatAge(completed, madeAt) },
            { title: 'Last load', cell: ({ status }) => renderVerdict(status === 'complete', status ?? 'none') },
          ],
          found,
        )
  }`

const renderRuns = ({ runs: found }: DataHealth): Html | undefined =>
  found.length === 0
    ? undefined
    : html`<h3>Loads</h3>${renderTable(
        found.length === 1 ? 'One run' : `The last ${formatCount(found.length)} runs, newest first`,
        [
          { title: 'Run', kind: 'n', cell: ({ run }) => String(run) },
          { title: 'Started', kind: 't', cell: ({ started }) => formatMinute(started) },
          { title: 'Took', kind: 'n spare', cell: ({ seconds }) => formatDuration(seconds) },
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
        found,
      )}`

const renderChecks = ({ checks: found }: DataHealth): Html => {
  const failed = found.filter(({ ok }) => !ok).length
  return html`<h3>Checks</h3>${renderTable(
    failed === 0
      ? `All ${formatCount(found.length)} checks of feedback verify hold`
      : `${formatCount(failed)} of ${formatPlural(found.length, 'check')} of feedback verify failed`,
    [
      { title: 'Check, and what must hold', cell: renderCheckName },
      { title: 'Found', kind: 'n', cell: ({ failures }) => (failures === 0 ? '' : formatCount(failures)) },
      { title: 'Result', cell: renderOutcome },
    ],
    found,
  )}`
}

const renderCheckName = ({ name, explain, examples, failures }: CheckResult): Html =>
  html`${name}<br><span class="quiet">${explain}</span>${
    examples.length === 0
      ? undefined
      : html`<ul class="plain">${examples.map((example) => html`<li>${example}</li>`)}${
          failures > examples.length ? html`<li>and ${formatCount(failures - examples.length)} more</li>` : undefined
        }</ul>`
  }`

const renderOutcome = ({ ok, failures, sql }: CheckResult): Html => {
  if (!ok) return renderVerdict(false, 'failed')
  return sql !== undefined && failures === 0
    ? renderVerdict(true, 'holds')
    : html`<span class="quiet">${sql === undefined ? 'nothing to check' : 'note'}</span>`
}

const renderDrift = ({ undeclared }: DataHealth): Html =>
  html`<h3>Drift</h3>${
    undeclared.length === 0
      ? renderNotice('No attribute came that no schema declares.')
      : renderTable(
          'Attributes that came without being declared; they are kept',
          [
            { title: 'Stream', cell: ({ stream }) => stream },
            { title: 'Attribute', cell: ({ attribute }) => attribute },
            { title: 'Rows', kind: 'n', cell: ({ rows }) => formatCount(rows) },
            { title: 'First read', kind: 't spare', cell: ({ first }) => formatMinute(first) },
            { title: 'Last read', kind: 't', cell: ({ last }) => formatMinute(last) },
          ],
          undeclared,
        )
  }`

const renderVerdict = (good: boolean, words: string): Html =>
  html`<span class="${good ? 'good' : 'bad'}">${words}</span>`
