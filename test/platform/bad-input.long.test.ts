import { expect, it } from 'vitest'
import { formatLines, mapping } from '../support/destination-input'
import { writeTempFile } from '../support/files'
import { runProgram } from '../support/program'
import { startSmallSandbox } from '../support/sandbox'
import { complete, locationRows, locations, record, state, visitRows, visits } from './destination-world'
import type { ConfiguredStream, Json } from './model/connection'

const ids = { generation_id: 2, minimum_generation_id: 2, sync_id: 5 }
const withIds = [
  { ...locations, ...ids },
  { ...visits, ...ids },
]
const withoutIds = [locations, visits]
const onlyOneWithIds = [locations, { ...visits, ...ids }]

const withId = (message: Json, id: number): Json => ({ ...message, state: { ...(message.state as Json), id } })
const all: ReadonlyArray<Json> = [
  ...locationRows(1, 2, 3).map((row) => record('locations', row)),
  withId(state('locations', 3), 1),
  ...visitRows(0, 5).map((row) => record('visit_records', { ...row, clinic: 'W1' })),
  withId(state('visit_records', 5), 2),
]
const statuses = [...complete('locations'), ...complete('visit_records')]
const injected = withId(
  { type: 'STATE', state: { type: 'STREAM', stream: { stream_descriptor: { name: 'locations' }, stream_state: {} } } },
  1,
)
const withoutContent = withId(
  { type: 'STATE', state: { type: 'STREAM', stream: { stream_descriptor: { name: 'locations' } } } },
  1,
)
const globalState = withId(
  {
    type: 'STATE',
    state: {
      type: 'GLOBAL',
      global: {
        shared_state: { lsn: 1 },
        stream_states: [{ stream_descriptor: { name: 'visit_records' }, stream_state: {} }],
      },
    },
  },
  1,
)
const text = formatLines(all)

/** Streams, input, exit status, ids of the states that come back, visits at the service. */
type Case = readonly [string, ReadonlyArray<ConfiguredStream>, string, number, ReadonlyArray<number>, number]

it.each<Case>([
  ['ids on some streams, no COMPLETE', onlyOneWithIds, text, 1, [1, 2], 5],
  ['ids on some streams, COMPLETE for all', onlyOneWithIds, text + formatLines(statuses), 0, [1, 2], 5],
  ['ids, COMPLETE for one stream of two', withIds, text + formatLines(statuses.slice(0, 1)), 1, [1, 2], 5],
  ['no ids, no COMPLETE', withoutIds, text, 0, [1, 2], 5],
  ['no ids, but COMPLETE', withoutIds, text + formatLines(statuses), 0, [1, 2], 5],
  ['a state without stream_state, no ids', withoutIds, formatLines([withoutContent]), 0, [1], 0],
  ['a state without stream_state, ids', withIds, formatLines([withoutContent, ...statuses]), 0, [1], 0],
  ['an injected {}, no ids', withoutIds, formatLines([injected]), 0, [1], 0],
  ['an injected {}, ids', withIds, formatLines([injected, ...statuses]), 0, [1], 0],
  ['a GLOBAL state, no ids', withoutIds, formatLines([...all.slice(4, 9), globalState]), 0, [1], 5],
  ['a GLOBAL state, ids', withIds, formatLines([...all.slice(4, 9), globalState, ...statuses]), 0, [1], 5],
  ['a last line that is cut, no ids', withoutIds, text.slice(0, -9), 1, [1], 5],
  ['a last line that is cut, ids', withIds, text.slice(0, -9), 1, [1], 5],
  ['a last record that is cut', withoutIds, formatLines(all.slice(0, 6)).slice(0, -30), 1, [1], 1],
  ['no input at all, no ids', withoutIds, '', 0, [], 0],
  ['no input at all, ids', withIds, '', 0, [], 0],
])(
  '%s: nothing is lost, and nothing is deactivated',
  { timeout: 120_000 },
  async (_, streams, stdin, status, states, sent) => {
    const sandbox = await startSmallSandbox({ reviews: 10, locations: 1 })
    await sandbox.api.syncLocations(['W1', 'W8'].map((code) => ({ code, active: true })))()
    // The ledger knows W8, which is on no list of these inputs.
    const known = { code: 'W8', codeType: null, active: true }
    const ledger_path = writeTempFile(formatLines([{ base_url: sandbox.url }, known]), 'ledger')
    const config = writeTempFile({
      base_url: sandbox.url,
      credentials: { auth_type: 'access_token', access_token: sandbox.accessToken },
      reconcile: { ledger_path },
      max_deactivations_percent: 100,
      mapping,
    })
    const catalog = writeTempFile({ streams })
    const ended = await runProgram('destination-feedback', ['write', '--config', config, '--catalog', catalog], {
      stdin,
    })
    const back = ended.stdout
      .split('\n')
      .flatMap((line) => (line.startsWith('{"type":"STATE"') ? [JSON.parse(line).state.id] : []))
    const truth = await sandbox.truth()
    expect([ended.status, back, truth.visits.length], ended.stdout).toEqual([status, states, sent])
    // W8 is not on a list that is whole: with records, COMPLETE, and nothing that broke the input.
    const isWhole = stdin.includes('"code"') && stdin.includes('COMPLETE') && status === 0
    expect(truth.locations.filter(({ active }) => !active).map(({ code }) => code)).toEqual(isWhole ? ['W8'] : [])
  },
)
