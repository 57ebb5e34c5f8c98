import type { FaultRule } from '../../connector/sandbox/faults/plan'
import { decodeFaultPlan } from '../../connector/sandbox/faults/plan'
import { newTempPath } from '../support/files'
import {
  complete,
  incomplete,
  locationRows,
  locations,
  prints,
  record,
  type Scenario,
  sends116Visits,
  sendsLocations,
  sendsVisits,
  sourceError,
  state,
  visitRows,
  visits,
  withCount,
} from './destination-world'
import type { ConfiguredStream, Json } from './model/connection'

const withRefreshes = ['refreshes'] as const

const faults = (...plan: ReadonlyArray<object>): { readonly faults: ReadonlyArray<FaultRule> } => {
  const decoded = decodeFaultPlan(plan)
  if (decoded._tag === 'Left') throw new Error(decoded.left)
  return { faults: decoded.right }
}
const named = (configured: ConfiguredStream, name: string, more: Partial<ConfiguredStream> = {}): ConfiguredStream => ({
  ...configured,
  stream: { ...configured.stream, name },
  ...more,
})
const recordsOf = (stream: string, rows: ReadonlyArray<Json>): ReadonlyArray<Json> =>
  rows.map((row) => record(stream, row))
const globalState = (at: number, ...names: ReadonlyArray<string>): Json => ({
  type: 'STATE',
  state: {
    type: 'GLOBAL',
    global: {
      shared_state: { lsn: at },
      stream_states: names.map((name) => ({ stream_descriptor: { name }, stream_state: { at } })),
    },
  },
})
const badMail = { mail: 'nobody@' }
const oneBadVisit = [...visitRows(0, 3), ...visitRows(3, 4, badMail), ...visitRows(4, 250)]
const list = (...ids: ReadonlyArray<number>) => recordsOf('locations', locationRows(...ids))
const bothStreams = { streams: [locations, visits] }

/** What the service holds must stay unchanged, whatever a job without a complete list brings. */
const untouched = { inactive: [] }

/** Each scenario under both definitions, unless it needs refreshes. */
export const destinationScenarios: ReadonlyArray<Scenario> = [
  {
    name: 'D1, D2 a first sync, then nothing new',
    isCore: true,
    steps: [
      { source: sendsVisits(250), expected: { visits: 250, kept: { visit_records: 250 } } },
      { source: sendsVisits(250), expected: { visits: 250, sends: false, kept: { visit_records: 250 } } },
    ],
  },
  {
    name: 'D3 the platform injects a state, since the source has sent none',
    isCore: true,
    connection: { streams: [locations] },
    steps: [
      {
        source: prints([...list(1, 2, 3), ...complete('locations')]),
        expected: { kept: { locations: {} } },
      },
    ],
  },
  {
    name: 'D4 a Clear job, of a stream with a state',
    isCore: true,
    steps: [
      { source: sendsVisits(100), expected: { visits: 100 } },
      {
        job: { kind: 'clear', streams: ['visit_records'] },
        expected: { sends: false, visits: 100, kept: {} },
      },
      { source: sendsVisits(100), expected: { visits: 100, kept: { visit_records: 100 } } },
    ],
  },
  {
    name: 'D4b a Clear job of one stream of a GLOBAL state',
    connection: bothStreams,
    steps: [
      {
        source: prints([
          ...recordsOf('visit_records', visitRows(0, 50)),
          globalState(50, 'visit_records', 'locations'),
          ...complete('visit_records'),
          ...complete('locations'),
        ]),
        expected: { visits: 50 },
      },
      { job: { kind: 'clear', streams: ['visit_records'] }, expected: { sends: false, visits: 50 } },
    ],
  },
  {
    name: 'D5 a Clear job, of a stream without a state',
    isCore: true,
    steps: [{ job: { kind: 'clear', streams: ['visit_records'] }, expected: { sends: false, kept: {} } }],
  },
  {
    name: 'D6 a refresh that replaces (truncate)',
    definitions: withRefreshes,
    steps: [
      { source: sendsVisits(250), expected: { visits: 250 } },
      {
        job: { kind: 'truncate', streams: ['visit_records'] },
        source: sendsVisits(250),
        expected: { visits: 250, sends: true, kept: { visit_records: 250 } },
      },
    ],
  },
  {
    name: 'D7 a refresh that keeps (merge)',
    definitions: withRefreshes,
    steps: [
      { source: sendsVisits(250), expected: { visits: 250 } },
      {
        job: { kind: 'merge', streams: ['visit_records'] },
        source: sendsVisits(250),
        expected: { visits: 250, sends: true, kept: { visit_records: 250 } },
      },
    ],
  },
  {
    name: 'D7b full refresh, overwrite_dedup',
    connection: { streams: [{ ...locations, destination_sync_mode: 'overwrite_dedup' }] },
    steps: [{ source: sendsLocations(1, 2, 3), expected: { kept: { locations: 3 } } }],
  },
  {
    name: 'D8 the source fails: error trace, INCOMPLETE, exit 1',
    isCore: true,
    steps: [
      {
        source: sends116Visits([sourceError, incomplete('visit_records')], 1),
        options: { maxAttempts: 1 },
        expected: {
          ...{ status: 'FAILED', blamed: 'source transient_error' },
          ...{ kept: { visit_records: 100 }, visits: 116 },
        },
      },
      { source: sendsVisits(200), expected: { visits: 200 } },
    ],
  },
  {
    name: 'D8b the source is killed without a word',
    isCore: true,
    steps: [
      {
        source: sends116Visits([], 'SIGKILL'),
        options: { maxAttempts: 1 },
        expected: {
          ...{ status: 'FAILED', blamed: 'source system_error', destinationStatus: 1 },
          ...{ kept: { visit_records: 100 }, visits: 116 },
          custom: { destinationStatus: 0 },
        },
      },
      { source: sendsVisits(200), expected: { visits: 200 } },
    ],
  },
  {
    name: 'D8c the source exits with 2 without a word',
    steps: [
      {
        source: sends116Visits([], 2),
        options: { maxAttempts: 1 },
        expected: { status: 'FAILED', blamed: 'source system_error', kept: { visit_records: 100 }, visits: 116 },
      },
    ],
  },
  {
    name: 'D8d the source of a complete list is killed in the middle of it',
    hasLedger: true,
    config: { max_deactivations_percent: 100 },
    connection: { streams: [locations] },
    steps: [
      { source: sendsLocations(1, 2, 3), expected: {} },
      {
        source: prints(list(1), 'SIGKILL'),
        options: { maxAttempts: 1 },
        expected: { status: 'FAILED', blamed: 'source system_error', ...untouched },
      },
    ],
  },
  {
    name: 'D9 the service answers 403 in the middle',
    service: faults({ kind: '403', operation: 'createVisitRecords', from: 3 }),
    config: { rate_limit: { max_concurrency: 1 } },
    steps: [
      {
        source: sendsVisits(1000),
        expected: { status: 'FAILED', attempts: 1, blamed: 'destination config_error', kept: { visit_records: 200 } },
      },
    ],
  },
  {
    name: 'D9b the service answers 503 in the middle, then recovers',
    isCore: true,
    service: faults({ kind: '503', operation: 'createVisitRecords', from: 3, times: 9 }),
    config: { rate_limit: { max_concurrency: 1 } },
    steps: [
      {
        source: sendsVisits(1000),
        expected: { attempts: 2, visits: 1000, kept: { visit_records: 1000 } },
      },
    ],
  },
  {
    name: 'D10 cancelled in the middle, then run again',
    service: { latency: { minMs: 20, maxMs: 20 } },
    steps: [
      {
        source: sendsVisits(2000),
        options: { interruption: 'cancelled' },
        expected: { status: 'CANCELLED' },
      },
      { source: sendsVisits(2000), expected: { visits: 2000, kept: { visit_records: 2000 } } },
    ],
  },
  {
    name: 'D11 the orchestrator dies in the middle; the destination ends, and the next job goes on',
    service: { latency: { minMs: 20, maxMs: 20 } },
    steps: [
      {
        source: sendsVisits(2000),
        options: { interruption: 'orchestrator gone', maxAttempts: 1 },
        expected: { status: 'FAILED', blamed: 'platform system_error' },
      },
      { source: sendsVisits(2000), expected: { visits: 2000, kept: { visit_records: 2000 } } },
    ],
  },
  {
    name: 'D12 SIGTERM to process 1 changes nothing',
    service: { latency: { minMs: 5, maxMs: 5 } },
    steps: [
      {
        source: sendsVisits(600),
        options: { interruption: 'SIGTERM' },
        expected: { visits: 600, kept: { visit_records: 600 } },
      },
    ],
  },
  {
    name: 'D13 a row filter drops every second visit',
    isCore: true,
    connection: {
      mappers: [{ kind: 'filter', stream: 'visit_records', keep: ({ id }) => Number(id) % 2 === 0 }],
    },
    steps: [
      {
        source: prints([
          ...recordsOf('visit_records', visitRows(0, 50)),
          withCount(state('visit_records', 50), 50),
          ...complete('visit_records'),
        ]),
        expected: { visits: 25, kept: { visit_records: 50 } },
      },
    ],
  },
  {
    name: 'D14 a prefix and a namespace',
    connection: { prefix: 'crm_', namespace: 'warehouse' },
    config: { streams: { crm_visit_records: 'visit_records' } },
    steps: [
      { source: sendsVisits(150), expected: { visits: 150, kept: { visit_records: 150 } } },
      { source: sendsVisits(250), expected: { visits: 250, kept: { visit_records: 250 } } },
    ],
  },
  {
    name: 'D15 mappers rename one column and hash another',
    connection: {
      mappers: [
        { kind: 'rename', stream: 'visit_records', from: 'id', to: 'number' },
        { kind: 'hash', stream: 'visit_records', column: 'family_name' },
      ],
    },
    config: {
      mapping: {
        visit_records: {
          ...{ firstName: 'given_name', lastName: 'family_name_hashed', email: 'mail' },
          ...{ locationCode: 'clinic', visitTime: 'at' },
        },
      },
    },
    steps: [
      { source: sendsVisits(50), expected: { visits: 50, kept: { visit_records: 50 } } },
      { source: sendsVisits(60), expected: { visits: 60 } },
    ],
  },
  {
    name: 'D16 GLOBAL states',
    connection: bothStreams,
    steps: [
      {
        source: prints([
          ...list(1, 2),
          ...recordsOf('visit_records', visitRows(0, 30)),
          globalState(30, 'visit_records'),
          ...recordsOf('visit_records', visitRows(30, 40)),
          globalState(40, 'visit_records'),
          ...complete('visit_records'),
          ...complete('locations'),
        ]),
        expected: { visits: 40, kept: { visit_records: 40, locations: {} } },
      },
    ],
  },
  {
    name: 'D33 GLOBAL states of a source that dies',
    steps: [
      {
        source: prints(
          [
            ...recordsOf('visit_records', visitRows(0, 30)),
            globalState(30, 'visit_records'),
            ...recordsOf('visit_records', visitRows(30, 40)),
          ],
          'SIGKILL',
        ),
        options: { maxAttempts: 1 },
        expected: { status: 'FAILED', blamed: 'source system_error', visits: 40, kept: { visit_records: 30 } },
      },
    ],
  },
  {
    name: 'D17 the source sends a record without data; the platform drops it and leaves the count',
    isCore: true,
    steps: [
      {
        source: prints([
          ...recordsOf('visit_records', visitRows(0, 20)),
          record('visit_records', {}),
          withCount(state('visit_records', 20), 21),
          ...complete('visit_records'),
        ]),
        expected: { visits: 20, mismatches: 1, kept: { visit_records: 20 }, says: /^WARN .*21/ },
      },
    ],
  },
  {
    name: 'D17b the source miscounts (cumulative counts)',
    isCore: true,
    steps: [
      {
        source: prints([
          ...recordsOf('visit_records', visitRows(0, 20)),
          withCount(state('visit_records', 20), 20),
          ...recordsOf('visit_records', visitRows(20, 30)),
          withCount(state('visit_records', 30), 30),
          ...complete('visit_records'),
        ]),
        expected: { visits: 30, mismatches: 1, kept: { visit_records: 30 }, says: /^WARN .*30/ },
      },
    ],
  },
  {
    name: 'D17c the source counts more locations than came: its list is not complete',
    isCore: true,
    hasLedger: true,
    config: { max_deactivations_percent: 100 },
    connection: { streams: [locations] },
    steps: [
      { source: sendsLocations(1, 2, 3), expected: {} },
      {
        source: prints([...list(1, 2), withCount(state('locations', 2), 3), ...complete('locations')]),
        expected: { mismatches: 1, ...untouched, says: /^WARN .*3/ },
      },
    ],
  },
  {
    name: 'D18 rejected records, with a dead-letter file',
    config: { dead_letter_path: newTempPath('jsonl') },
    steps: [
      {
        source: prints([
          ...recordsOf('visit_records', oneBadVisit),
          state('visit_records', 250),
          ...complete('visit_records'),
        ]),
        expected: { visits: 249, rejected: 1, kept: { visit_records: 250 } },
      },
    ],
  },
  {
    name: 'D35 rejected records, on_reject: continue',
    isCore: true,
    config: { on_reject: 'continue' },
    steps: [
      {
        source: prints([
          ...recordsOf('visit_records', oneBadVisit),
          state('visit_records', 250),
          ...complete('visit_records'),
        ]),
        expected: { visits: 249, rejected: 1, kept: { visit_records: 250 } },
      },
    ],
  },
  {
    name: 'D34 one bad record, without a dead-letter file',
    steps: [
      {
        source: prints([
          ...recordsOf('visit_records', oneBadVisit),
          state('visit_records', 250),
          ...complete('visit_records'),
        ]),
        expected: { status: 'FAILED', blamed: 'destination config_error', kept: {} },
      },
    ],
  },
  {
    name: 'D19 every record is rejected',
    config: { on_reject: 'continue' },
    steps: [
      {
        source: sendsVisits(50, { more: badMail }),
        expected: { status: 'FAILED', blamed: 'destination config_error', visits: 0, kept: {} },
      },
    ],
  },
  {
    name: 'D20 a slow service',
    service: { latency: { minMs: 50, maxMs: 50 } },
    steps: [{ source: sendsVisits(1000), expected: { visits: 1000, kept: { visit_records: 1000 } } }],
  },
  {
    name: 'D21 one of two streams is incomplete, exit 1',
    connection: bothStreams,
    steps: [
      {
        source: prints(
          [
            ...list(1, 2),
            state('locations', 2),
            ...complete('locations'),
            ...recordsOf('visit_records', visitRows(0, 30)),
            sourceError,
            incomplete('visit_records'),
          ],
          1,
        ),
        options: { maxAttempts: 1 },
        expected: { status: 'FAILED', blamed: 'source transient_error', visits: 30, kept: { locations: 2 } },
      },
    ],
  },
  {
    name: 'D22 the source calls a stream INCOMPLETE and exits with 0',
    isCore: true,
    steps: [
      {
        source: sends116Visits([incomplete('visit_records')], 0),
        expected: { visits: 116, unacknowledged: 16, kept: { visit_records: 100 } },
      },
    ],
  },
  {
    name: 'D22b the source calls a list INCOMPLETE before its first record and exits with 0',
    isCore: true,
    hasLedger: true,
    config: { max_deactivations_percent: 100 },
    connection: { streams: [locations] },
    steps: [
      { source: sendsLocations(1, 2, 3), expected: {} },
      { source: prints([incomplete('locations')]), expected: { sends: false, ...untouched } },
    ],
  },
  {
    name: 'D23 a complete list without C3, with a ledger',
    isCore: true,
    hasLedger: true,
    config: { max_deactivations_percent: 50 },
    connection: { streams: [locations] },
    steps: [
      { source: sendsLocations(1, 2, 3), expected: {} },
      {
        source: sendsLocations(1, 2),
        expected: {
          ...{ inactive: ['W3'] },
          custom: { ...untouched, says: /^WARN .*deactivate/ },
        },
      },
    ],
  },
  {
    name: 'D24 a Clear job of a list with a ledger, max_deactivations_percent 100',
    isCore: true,
    hasLedger: true,
    config: { max_deactivations_percent: 100 },
    connection: { streams: [locations] },
    steps: [
      { source: sendsLocations(1, 2, 3), expected: {} },
      {
        job: { kind: 'clear', streams: ['locations'] },
        expected: { sends: false, kept: {}, ...untouched, says: /^WARN / },
      },
    ],
  },
  {
    name: 'D24b a Clear job of a list with a ledger, max_deactivations_percent 10',
    hasLedger: true,
    connection: { streams: [locations] },
    steps: [
      { source: sendsLocations(1, 2, 3), expected: {} },
      { job: { kind: 'clear', streams: ['locations'] }, expected: { sends: false, kept: {}, ...untouched } },
    ],
  },
  {
    name: 'D24c a Clear job where everything unlisted at the service is deactivated',
    service: { like: 'published' },
    config: {
      ...{ lookups: { locations: true }, reconcile: { deactivate_unlisted: true } },
      max_deactivations_percent: 100,
    },
    connection: { streams: [locations] },
    steps: [{ job: { kind: 'clear', streams: ['locations'] }, expected: { sends: false, ...untouched } }],
  },
  {
    name: 'D24d the source skips the list without a word and exits with 0, with a ledger',
    isCore: true,
    hasLedger: true,
    config: { max_deactivations_percent: 100 },
    connection: bothStreams,
    steps: [
      {
        source: prints([
          ...list(1, 2, 3),
          state('locations', 3),
          ...complete('locations'),
          ...complete('visit_records'),
        ]),
        expected: {},
      },
      {
        source: sendsVisits(20),
        expected: { visits: 20, kept: { locations: {}, visit_records: 20 }, ...untouched },
      },
    ],
  },
  {
    name: 'D24e the source skips the list, and everything unlisted at the service is deactivated',
    service: { like: 'published' },
    config: {
      ...{ lookups: { locations: true }, reconcile: { deactivate_unlisted: true } },
      max_deactivations_percent: 100,
    },
    connection: { streams: [locations] },
    steps: [{ source: prints([]), expected: { sends: false, kept: { locations: {} }, ...untouched } }],
  },
  {
    name: 'D24f a list that is empty at the source, COMPLETE',
    hasLedger: true,
    config: { max_deactivations_percent: 100 },
    connection: { streams: [locations] },
    steps: [
      { source: sendsLocations(1, 2, 3), expected: {} },
      { source: sendsLocations(), expected: { sends: false, ...untouched } },
    ],
  },
  {
    name: 'D26 twelve streams of visits',
    connection: { streams: Array.from({ length: 12 }, (_, n) => named(visits, `visits_${n}`)) },
    config: {
      streams: Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`visits_${n}`, 'visit_records'])),
    },
    steps: [
      {
        source: prints(
          Array.from({ length: 12 }, (_, n) => `visits_${n}`).flatMap((name, n) => [
            ...recordsOf(
              name,
              visitRows(n * 20, n * 20 + 20).map((row) => ({ ...row, visitRecordId: `v-${row.id}` })),
            ),
            state(name, 20),
            ...complete(name),
          ]),
        ),
        expected: { visits: 240 },
      },
    ],
  },
  {
    name: 'D27 records longer than the blocks in which text leaves the platform',
    steps: [
      {
        source: sendsVisits(20, { every: 5, more: { note: 'x'.repeat(20_000) } }),
        expected: { visits: 20, kept: { visit_records: 20 } },
      },
    ],
    connection: {
      streams: [{ ...visits, stream: { name: 'visit_records', json_schema: {} } }],
    },
  },
  {
    name: 'D28 the source fails, and the platform loses what it still held',
    steps: [
      {
        source: sends116Visits([sourceError], 1),
        options: { maxAttempts: 1, lost: 10 },
        expected: {
          ...{ status: 'FAILED', blamed: 'source transient_error' },
          ...{ visits: 106, kept: { visit_records: 100 } },
        },
      },
      { source: sendsVisits(200), expected: { visits: 200 } },
    ],
  },
  {
    name: 'D29 update and soft_delete (data activation)',
    definitions: withRefreshes,
    connection: {
      streams: [
        { ...locations, sync_mode: 'incremental', destination_sync_mode: 'update' },
        named(locations, 'closed_clinics', {
          sync_mode: 'incremental',
          destination_sync_mode: 'soft_delete',
          destination_object_name: 'locations',
        }),
      ],
    },
    steps: [
      {
        source: prints([...list(2, 3), state('locations', 2), ...complete('locations'), ...complete('closed_clinics')]),
        expected: {},
      },
      {
        source: prints([
          ...complete('locations'),
          ...recordsOf('closed_clinics', [{ code: 'W2' }]),
          state('closed_clinics', 1),
          ...complete('closed_clinics'),
        ]),
        expected: { inactive: ['W2'] },
      },
    ],
  },
  {
    name: 'D30 nulls in records and states',
    steps: [
      {
        source: prints([
          ...visitRows(0, 10).map((row) => ({
            type: 'RECORD',
            record: {
              ...{ stream: 'visit_records', namespace: null, meta: null, emitted_at: 1 },
              data: { ...row, visitRecordId: null, phone: null, note: null },
            },
          })),
          {
            type: 'STATE',
            state: {
              ...{ type: 'STREAM', global: null, data: null },
              stream: { stream_descriptor: { name: 'visit_records', namespace: null }, stream_state: { at: 10 } },
            },
          },
          ...complete('visit_records'),
        ]),
        expected: { visits: 10, kept: { visit_records: 10 } },
      },
    ],
  },
  {
    name: 'D32 a dry run',
    config: { dry_run: true },
    steps: [
      {
        source: sendsVisits(100),
        expected: { sends: false, visits: 0, kept: {}, unacknowledged: 100 },
      },
    ],
  },
  {
    name: 'D36 the destination is killed; the next attempt goes on',
    isCore: true,
    service: { latency: { minMs: 20, maxMs: 20 } },
    steps: [
      {
        source: sendsVisits(2000),
        options: { interruption: 'destination killed', maxAttempts: 1 },
        expected: { status: 'FAILED', blamed: 'destination system_error' },
      },
      { source: sendsVisits(2000), expected: { visits: 2000, kept: { visit_records: 2000 } } },
    ],
  },
]
