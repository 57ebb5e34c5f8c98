import { expect, it } from 'vitest'
import { destinationScenarios } from './destination-scenarios'
import { expectedOf, playScenario } from './destination-world'
import type { Definition, Json } from './model/connection'
import { airbyteRules, type Rules } from './platform'

const withoutId = (message: Json): Json => {
  const { id: _, ...state } = message.state as Json
  return { ...message, state }
}

/** A rule switched off, a scenario that depends on it, and what its job (counted from 1) then shows. */
const cases: ReadonlyArray<readonly [string, Partial<Rules>, string, Definition, number, object]> = [
  [
    'ids in the catalogue, with refreshes',
    {
      prepareAttempt: (connection, ...more) =>
        airbyteRules.prepareAttempt({ ...connection, definition: 'custom' }, ...more),
    },
    ...(['D8b', 'refreshes', 1, { destinationStatus: 0 }] as const),
  ],
  [
    'states deleted by a refresh',
    {
      prepareAttempt: (connection, job, id, before) => {
        const prepared = airbyteRules.prepareAttempt(connection, job, id, before)
        return { ...prepared, kept: { ...prepared.kept, states: before.states } }
      },
    },
    ...(['D6', 'refreshes', 2, { sends: false }] as const),
  ],
  [
    'COMPLETE after a source that exits with 0',
    { completeLines: () => [] },
    ...(['D1', 'refreshes', 1, { status: 'FAILED', destinationStatus: 1 }] as const),
  ],
  [
    'an id in each state',
    { toDestinationState: (...given) => withoutId(airbyteRules.toDestinationState(...given)) },
    ...(['D1', 'custom', 1, { status: 'FAILED', blamed: 'platform system_error' }] as const),
  ],
  ['a state where the source sent none', { missingStates: () => [] }, 'D3', 'refreshes', 1, { kept: {} }],
  [
    'counts less what a row filter dropped',
    {
      toDestinationState: (connection, message, counted) =>
        airbyteRules.toDestinationState(connection, message, { ...counted, filtered: 0 }),
    },
    ...(['D13', 'custom', 1, { mismatches: 1 }] as const),
  ],
  [
    'records without data dropped',
    { screenMessage: (_, message) => ({ verdict: 'pass', message }) },
    ...(['D17', 'custom', 1, { status: 'FAILED', blamed: 'destination config_error' }] as const),
  ],
  [
    'prefix and namespace in the catalogue',
    {
      toDestinationCatalog: ({ prefix: _, namespace: __, ...connection }, streams) =>
        airbyteRules.toDestinationCatalog(connection, streams),
    },
    ...(['D14', 'custom', 1, { status: 'FAILED', blamed: 'destination config_error' }] as const),
  ],
  [
    "the source's failure before the destination's",
    { listFailures: (end) => [...airbyteRules.listFailures(end)].reverse() },
    ...(['D8b', 'refreshes', 1, { blamed: 'destination system_error' }] as const),
  ],
  ['no other attempt after config_error', { mayRetry: () => true }, 'D34', 'custom', 1, { attempts: 3 }],
]

it.runIf(process.env.PLATFORM === 'all').each(cases)(
  'without the rule "%s" %#: another outcome',
  { timeout: 120_000 },
  async (_, switchedOff, name, definition, job, shown) => {
    const scenario = destinationScenarios.find((one) => one.name.startsWith(name))
    const step = scenario?.steps[job - 1]
    if (scenario === undefined || step === undefined) throw new Error(`There is no ${name}.`)
    const outcomes = await playScenario(scenario, definition, { ...airbyteRules, ...switchedOff })
    expect(outcomes[job - 1]).toMatchObject(shown)
    expect(outcomes[job - 1]).not.toMatchObject(expectedOf(step, definition).shown)
  },
)
