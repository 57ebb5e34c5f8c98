import { expect, it } from 'vitest'
import { formatLoadSummaries, formatSyncOutcome } from '../../connector/cli/table'
import type { StreamOutcome } from '../../connector/runtime/sync'

const outcome = (stream: string, more: Partial<StreamOutcome>): StreamOutcome => ({
  stream,
  status: 'complete',
  records: 0,
  seconds: 4,
  scan: 'export reviews',
  sync_mode: 'incremental',
  cursor_field: 'modifiedTime',
  cursor: '2026-01-01T00:00:00.000Z',
  failure: null,
  ...more,
})

it('rates scans, not the streams that share one, and sums up', () => {
  const text = formatSyncOutcome([
    outcome('deleted_reviews', { scan: 'export deleted reviews', records: 12, seconds: 1 }),
    outcome('reviews', { records: 40_000 }),
    outcome('sources', { records: 4, seconds: 4.1 }),
    outcome('comments', { scan: 'retrieve comments', status: 'skipped', seconds: 0.1 }),
    outcome('entity_ratings', { scan: 'retrieve summaries', records: 3, seconds: 1, cursor_field: null, cursor: null }),
  ])
  expect(text.split('\n')).toEqual([
    'stream                  status    records  seconds  records/s  cursor',
    'deleted_reviews         complete       12      1.0             2026-01-01T00:00:00.000Z',
    'reviews                 complete   40,000                      2026-01-01T00:00:00.000Z',
    'sources                 complete        4                      2026-01-01T00:00:00.000Z',
    '  these 2, in one scan             40,004      4.1      9,757',
    'comments                skipped',
    'entity_ratings          complete        3      1.0             none: read in full',
    'total                   complete   40,019      6.2      6,455',
    '',
  ])
})

it('gives a single stream one row, without a total', () => {
  expect(formatSyncOutcome([outcome('sources', { records: 4, seconds: 2 })])).toBe(
    'stream   status    records  seconds  records/s  cursor\nsources  ' +
      'complete        4      2.0             2026-01-01T00:00:00.000Z\n',
  )
})

it('says of an incomplete stream that the whole is incomplete', () => {
  const text = formatSyncOutcome([outcome('reviews', {}), outcome('sources', { status: 'incomplete' })])
  expect(text).toMatch(/^total +incomplete/m)
})

it('rates a load of messages as a whole', () => {
  const text = formatLoadSummaries([
    { stream: 'a', status: 'complete', records: 2_000, seconds: 2 },
    { stream: 'b', status: 'incomplete', records: 2_000, seconds: 1 },
    { stream: 'a', status: 'complete', records: 1_000, seconds: 1 },
  ])
  expect(text.match(/^\S+ .*$/gm)).toEqual([
    expect.stringMatching(/^stream/),
    expect.stringMatching(/^a +complete +2,000$/),
    expect.stringMatching(/^b +incomplete +2,000$/),
    expect.stringMatching(/^a +complete +1,000 +1\.0 +1,000$/),
    expect.stringMatching(/^total +incomplete +5,000 +3\.0 +1,667$/),
  ])
})
