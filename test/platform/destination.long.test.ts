import { expect, it } from 'vitest'
import { canBeProcess1 } from './container'
import { destinationScenarios } from './destination-scenarios'
import { expectedOf, playScenario, type Scenario } from './destination-world'
import type { Definition } from './model/connection'

/** `npm test` runs a core; PLATFORM=all runs every scenario. */
const isAll = process.env.PLATFORM === 'all'

const isPossible = ({ steps }: Scenario): boolean =>
  steps.every(({ options }) => options?.interruption !== 'SIGTERM') || canBeProcess1()

const cases = destinationScenarios
  .filter((scenario) => (isAll || scenario.isCore === true) && isPossible(scenario))
  .flatMap((scenario) =>
    (scenario.definitions ?? (['custom', 'refreshes'] as const)).map(
      (definition): readonly [string, Definition, Scenario] => [scenario.name, definition, scenario],
    ),
  )

it.each(cases)('%s (%s)', { timeout: 120_000 }, async (_, definition, scenario) => {
  const outcomes = await playScenario(scenario, definition)
  scenario.steps.forEach((step, n) => {
    const { shown, says } = expectedOf(step, definition)
    const { log, ...outcome } = outcomes[n] ?? { log: [] }
    expect({ log, ...outcome }, `job ${n + 1}`).toMatchObject(shown)
    if (says !== undefined) expect(log).toContainEqual(expect.stringMatching(says))
  })
})
