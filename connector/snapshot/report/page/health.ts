import type { Report } from '../../report'
import type { CheckResult } from '../../verify'
import type { Health } from '../health'
import { age, duration, minute, plural, whole } from './format'
import { type Html, html } from './html'
import { missing, section, table } from './parts'

/** Whether the numbers above may be trusted: how fresh, how complete, how checked. */
export const showHealth = ({ health, madeAt }: Report): Html =>
  section('Health of the data', streams(health, madeAt), runs(health), checks(health), drift(health))

const streams = ({ streams: found }: Health, madeAt: string): Html =>
  html`<h3>Freshness</h3>${
    found.length === 0
      ? missing('Nothing was loaded into this file yet.')
      : table(
          'Each stream, its newest record and its last complete load',
          [
            { title: 'Stream', cell: ({ stream }) => stream },
            { title: 'Rows', kind: 'n', cell: ({ rows }) => whole(rows) },
            {
              title: 'Newest record',
              kind: 't spare',
              cell: ({ newest }) => (newest === null ? '–' : newest.slice(0, 16).replace('T', ' ')),
            },
            { title: 'Loaded', kind: 't spare', cell: ({ completed }) => minute(completed) },
            { title: 'Age', kind: 'n', cell: ({ completed }) => age(completed, madeAt) },
            { title: 'Last load', cell: ({ status }) => verdict(status === 'complete', status ?? 'none') },
          ],
          found,
        )
  }`

const runs = ({ runs: found }: Health): Html | undefined =>
  found.length === 0
    ? undefined
    : html`<h3>Loads</h3>${table(
        found.length === 1 ? 'One run' : `The last ${whole(found.length)} runs, newest first`,
        [
          { title: 'Run', kind: 'n', cell: ({ run }) => String(run) },
          { title: 'Started', kind: 't', cell: ({ started }) => minute(started) },
          { title: 'Took', kind: 'n spare', cell: ({ seconds }) => duration(seconds) },
          { title: 'Streams', kind: 'n spare', cell: (run) => whole(run.streams) },
          { title: 'Records', kind: 'n', cell: ({ records }) => whole(records) },
          {
            title: 'Outcome',
            cell: ({ incomplete }) =>
              incomplete.length === 0
                ? verdict(true, 'complete')
                : verdict(false, `incomplete: ${incomplete.join(', ')}`),
          },
        ],
        found,
      )}`

const checks = ({ checks: found }: Health): Html => {
  const failed = found.filter(({ ok }) => !ok).length
  return html`<h3>Checks</h3>${table(
    failed === 0
      ? `All ${whole(found.length)} checks of feedback verify hold`
      : `${whole(failed)} of ${plural(found.length, 'check')} of feedback verify failed`,
    [
      { title: 'Check, and what must hold', cell: told },
      { title: 'Found', kind: 'n', cell: ({ failures }) => (failures === 0 ? '' : whole(failures)) },
      { title: 'Result', cell: outcome },
    ],
    found,
  )}`
}

const told = ({ name, explain, examples, failures }: CheckResult): Html =>
  html`${name}<br><span class="quiet">${explain}</span>${
    examples.length === 0
      ? undefined
      : html`<ul class="plain">${examples.map((example) => html`<li>${example}</li>`)}${
          failures > examples.length ? html`<li>and ${whole(failures - examples.length)} more</li>` : undefined
        }</ul>`
  }`

const outcome = ({ ok, failures, sql }: CheckResult): Html => {
  if (!ok) return verdict(false, 'failed')
  return sql !== undefined && failures === 0
    ? verdict(true, 'holds')
    : html`<span class="quiet">${sql === undefined ? 'nothing to check' : 'note'}</span>`
}

const drift = ({ undeclared }: Health): Html =>
  html`<h3>Drift</h3>${
    undeclared.length === 0
      ? missing('No attribute came that no schema declares.')
      : table(
          'Attributes that came without being declared; they are kept',
          [
            { title: 'Stream', cell: ({ stream }) => stream },
            { title: 'Attribute', cell: ({ attribute }) => attribute },
            { title: 'Rows', kind: 'n', cell: ({ rows }) => whole(rows) },
            { title: 'First read', kind: 't spare', cell: ({ first }) => minute(first) },
            { title: 'Last read', kind: 't', cell: ({ last }) => minute(last) },
          ],
          undeclared,
        )
  }`

const verdict = (good: boolean, words: string): Html => html`<span class="${good ? 'good' : 'bad'}">${words}</span>`
