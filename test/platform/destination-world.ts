import type { Sandbox, SandboxOptions } from '../../connector/sandbox/start'
import { airbyteFormat, formatStream, locationRow, mapping, visitRow } from '../support/destination-input'
import { newTempPath } from '../support/files'
import { programPath } from '../support/program'
import { startSmallSandbox } from '../support/sandbox'
import type { Connector } from './container'
import { type ConfiguredStream, type Connection, type Definition, type Json, streamKey } from './model/connection'
import type { Job } from './model/jobs'
import {
  type AttemptStart,
  airbyteRules,
  installConnection,
  type JobOptions,
  type JobResult,
  type Rules,
} from './platform'
import { type SourceEnd, scriptedSource } from './scripted'

const columns = (types: Readonly<Record<string, string>>): Json => ({
  type: 'object',
  properties: Object.fromEntries(Object.entries(types).map(([name, type]) => [name, { type: ['null', type] }])),
})

/** Two streams as a warehouse has them: visits by increments, a list of locations as a whole. */
export const visits: ConfiguredStream = {
  stream: {
    name: 'visit_records',
    json_schema: columns({
      ...{ id: 'integer', visitRecordId: 'string', given_name: 'string', family_name: 'string' },
      ...{ mail: 'string', clinic: 'string', npi: 'integer', at: 'string' },
    }),
  },
  sync_mode: 'incremental',
  destination_sync_mode: 'append_dedup',
  primary_key: [['id']],
  cursor_field: ['id'],
}
export const locations: ConfiguredStream = {
  stream: {
    name: 'locations',
    json_schema: columns({ code: 'string', name: 'string', city: 'string', active: 'string' }),
  },
  sync_mode: 'full_refresh',
  destination_sync_mode: 'overwrite',
  primary_key: [['code']],
}

/** Rows that the service takes: the location is there. */
export const visitRows = (from: number, to: number, more: Json = {}): ReadonlyArray<Json> =>
  Array.from({ length: to - from }, (_, n) => visitRow(from + n, { clinic: 'W1', ...more }))
export const locationRows = (...ids: ReadonlyArray<number>): ReadonlyArray<Json> => ids.map(locationRow)

export const record = airbyteFormat.record
export const state = airbyteFormat.state
export const complete = airbyteFormat.close
export const incomplete = (name: string): Json => ({
  type: 'TRACE',
  trace: {
    type: 'STREAM_STATUS',
    emitted_at: 1,
    stream_status: { stream_descriptor: { name }, status: 'INCOMPLETE' },
  },
})
export const sourceError: Json = {
  type: 'TRACE',
  trace: {
    type: 'ERROR',
    emitted_at: 1,
    error: { message: 'The database closed the connection', failure_type: 'transient_error' },
  },
}
export const withCount = (message: Json, recordCount: number): Json => ({
  ...message,
  state: { ...(message.state as Json), sourceStats: { recordCount } },
})

/** What a source prints, where the kept states say what the destination has. */
export type Script = (start: AttemptStart) => Connector

const keptPosition = ({ states }: AttemptStart, stream: string): number =>
  Number((states[stream]?.state as { readonly at?: number } | undefined)?.at ?? 0)

/** Prints lines, and ends with `end`. */
export const prints =
  (lines: ReadonlyArray<Json>, end: SourceEnd = 0): Script =>
  () =>
    scriptedSource(lines, end)

/** Visits from the kept position on, a state after every 100, and COMPLETE. */
export const sendsVisits =
  (count: number, { every = 100, more = {} }: { readonly every?: number; readonly more?: Json } = {}): Script =>
  (start) =>
    scriptedSource(
      formatStream(airbyteFormat, 'visit_records', 'id', visitRows(0, count, more), {
        from: keptPosition(start, 'visit_records'),
        every,
      }),
    )

/** The whole list of locations, one state, and COMPLETE. */
export const sendsLocations = (...ids: ReadonlyArray<number>): Script =>
  prints(formatStream(airbyteFormat, 'locations', 'code', locationRows(...ids)))

/** 116 visits of which the last state covers 100; then `last` and its end. */
export const sends116Visits = (last: ReadonlyArray<Json>, end: SourceEnd): Script =>
  prints(
    [
      ...visitRows(0, 100).map((row) => record('visit_records', row)),
      state('visit_records', 100),
      ...visitRows(100, 116).map((row) => record('visit_records', row)),
      ...last,
    ],
    end,
  )

/** How a job ended, and what the service and the platform hold after it. */
export type Outcome = {
  readonly status: JobResult['status']
  readonly attempts: number
  /** Whose failure is shown, and what kind it is. */
  readonly blamed?: string
  /** The position that is kept of visits, or the whole state of locations. */
  readonly kept: Json
  /** The visits at the service, and the codes of inactive locations. */
  readonly visits: number
  readonly inactive: ReadonlyArray<string>
  /** This job sent the service a record. */
  readonly sends: boolean
  /** Of the last attempt. */
  readonly unacknowledged: number
  readonly rejected: number
  readonly mismatches: number
  readonly destinationStatus: number
  readonly junk: ReadonlyArray<string>
  readonly log: ReadonlyArray<string>
}

export type Step = {
  readonly job?: Job
  readonly source?: Script
  readonly options?: JobOptions
  readonly expected: Expected
}
/**
 * What is not named is as after a good job: completed at the first attempt, all acknowledged, counts agree, nothing
 * inactive.
 */
export type Expected = Partial<Omit<Outcome, 'log'>> & {
  readonly says?: RegExp
  /** What differs where the platform sends no ids and no statuses. */
  readonly custom?: Partial<Omit<Outcome, 'log'>> & { readonly says?: RegExp }
}

export type Scenario = {
  readonly name: string
  /** Runs in `npm test` too. */
  readonly isCore?: boolean
  /** Default both. */
  readonly definitions?: ReadonlyArray<Definition>
  readonly service?: SandboxOptions
  readonly config?: Json
  /** Keeps a ledger of locations in a file that outlives the jobs. */
  readonly hasLedger?: boolean
  readonly connection?: Partial<Connection>
  readonly steps: ReadonlyArray<Step>
}

/** A sandbox whose location W1 can be visited. */
const startService = async (options: SandboxOptions = {}): Promise<Sandbox> => {
  const sandbox = await startSmallSandbox({ reviews: 10, locations: 1, ...options })
  await sandbox.api.syncLocations([{ code: 'W1', active: true }])()
  return sandbox
}

const destinationOf = (sandbox: Sandbox, { config, hasLedger = false }: Scenario): Connector => ({
  entrypoint: programPath('destination-feedback'),
  config: {
    base_url: sandbox.url,
    credentials: { auth_type: 'access_token', access_token: sandbox.accessToken },
    mapping,
    ...(hasLedger ? { reconcile: { ledger_path: newTempPath('ledger') } } : {}),
    ...config,
  },
})

/** The log keeps no body that is long; one without records is `[]`. */
const hasSent = (sandbox: Sandbox, from: number): boolean =>
  sandbox
    .log()
    .slice(from)
    .filter(({ operation }) => operation === 'createVisitRecords' || operation === 'syncLocations')
    .some(({ request }) => JSON.stringify(request) !== '[]')

const observe = async (sandbox: Sandbox, result: JobResult, kept: Json, from: number): Promise<Outcome> => {
  const { visits: written, locations: held } = await sandbox.truth()
  const last = result.attempts.at(-1)
  if (last === undefined) throw new Error('The job had no attempt.')
  const failure = last.failures[0]
  return {
    status: result.status,
    attempts: result.attempts.length,
    ...(failure === undefined ? {} : { blamed: `${failure.origin} ${failure.type}` }),
    kept,
    visits: new Set(written.map(({ id }) => id)).size,
    inactive: held.filter(({ active }) => !active).map(({ code }) => code),
    sends: hasSent(sandbox, from),
    unacknowledged: last.emitted - last.acknowledged,
    rejected: last.rejected,
    mismatches: last.mismatches.length,
    destinationStatus: last.destinationStatus,
    junk: result.attempts.flatMap(({ junk }) => junk.destination),
    log: last.log,
  }
}

const sync: Job = { kind: 'sync' }

/** Runs the jobs of a scenario one after the other; returns what was seen after each. */
export const playScenario = async (
  scenario: Scenario,
  definition: Definition,
  rules: Rules = airbyteRules,
): Promise<ReadonlyArray<Outcome>> => {
  const sandbox = await startService(scenario.service)
  const connection = { streams: [visits], ...scenario.connection, definition }
  const installed = installConnection(connection, destinationOf(sandbox, scenario), rules)
  const outcomes: Outcome[] = []
  for (const { job = sync, source = prints([]), options } of scenario.steps) {
    const from = sandbox.log().length
    const result = await installed.run(job, source, options)
    const { states } = installed.kept()
    const kept = Object.fromEntries(
      connection.streams.flatMap(({ stream }) => {
        const held = states[streamKey(stream)]
        return held === undefined ? [] : [[stream.name, (held.state as Json).at ?? held.state]]
      }),
    )
    outcomes.push(await observe(sandbox, result, kept, from))
  }
  return outcomes
}

/** What a step must show under a definition. */
export const expectedOf = ({ expected }: Step, definition: Definition) => {
  const { custom, ...usual } = expected
  const { says, ...shown } = { ...usual, ...(definition === 'custom' ? custom : {}) }
  const isGood = (shown.status ?? 'COMPLETED') === 'COMPLETED'
  return {
    says,
    shown: {
      ...{ status: 'COMPLETED', attempts: 1, inactive: [], rejected: 0, mismatches: 0, junk: [] },
      ...(isGood ? { unacknowledged: 0, destinationStatus: 0 } : {}),
      ...shown,
    },
  }
}
