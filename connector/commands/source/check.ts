import * as E from 'fp-ts/Either'
import { toFailure } from '../../api/error'
import { connectionStatusLine } from '../../cdk/airbyte'
import { CommandError, defineCommand } from '../../cdk/cli'
import type { Failure } from '../../cdk/failure'
import type { SourceConfig } from '../../config'
import { awaitOrTimeOut, checkAttempts, checkTimeoutFailure, withCheckTimeouts } from '../../hurry'
import { configOption, getOrThrow, loadSourceConfig } from '../../load'
import { type SourceCheck, startSourceCheck } from '../../probe'
import { createSource } from '../../wire'

/** What is known when the time is up: nothing wrong yet, where only our own budget keeps questions back. */
const toTimeoutOutcome = (
  { rate_limit: { requests_per_minute } }: SourceConfig,
  unanswered: ReadonlyArray<string>,
  asked: number,
  last: Failure | undefined,
): E.Either<Failure, ReadonlyArray<string>> => {
  const which = unanswered.join(' and ')
  return requests_per_minute !== undefined && asked > 0
    ? E.right([`rate_limit.requests_per_minute (${requests_per_minute}) left no time to ask everything of ${which}.`])
    : E.left(checkTimeoutFailure(which, last))
}

/** How many operations beside the exports the config makes use of. */
const countOtherOperations = ({ entities, lookups }: SourceConfig): number => {
  const { person_ids, location_ids, entity_ids } = entities
  const feedback = person_ids.length + location_ids.length + entity_ids.length > 0 ? 2 : 0
  return feedback + Object.values(lookups).filter((lookup) => lookup !== undefined).length
}

export const sourceCheckCommand = defineCommand({
  name: 'check',
  summary: 'Says whether the configuration works: address, token, permission by operation.',
  options: { config: configOption },
  run: async (io, { options }) => {
    const config = await loadSourceConfig(io, String(options.config))
    let answered = 0
    let last: Failure | undefined
    const wired = getOrThrow(
      createSource(withCheckTimeouts(config, countOtherOperations(config)), {
        attempts: checkAttempts,
        onRequest: ({ status }) => {
          answered += status < 400 ? 1 : 0
        },
        onRetry: ({ operation, error }) => {
          last = toFailure(operation, error)
        },
      }),
    )
    const { outcome: finding, unansweredOperations }: SourceCheck = startSourceCheck(wired)
    const outcome = await awaitOrTimeOut(finding, () =>
      toTimeoutOutcome(config, unansweredOperations(), answered, last),
    )
    await wired.close()
    if (E.isLeft(outcome)) throw new CommandError(outcome.left)
    const warnings = outcome.right.map(io.redactText)
    for (const warning of warnings) io.printWarning(warning)
    await io.print(connectionStatusLine('SUCCEEDED', warnings.length === 0 ? undefined : warnings.join(' ')))
    return 0
  },
})
