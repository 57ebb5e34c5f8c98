import * as E from 'fp-ts/Either'
import { toFailure } from '../../api/error'
import { statusLine } from '../../cdk/airbyte'
import { command, Stopped } from '../../cdk/cli'
import type { Failure } from '../../cdk/failure'
import type { SourceConfig } from '../../config'
import { attempts, hurried, inTime, tooSlow } from '../../hurry'
import { configOption, loadConfig, orStop } from '../../load'
import { type Probing, probing } from '../../probe'
import { wire } from '../../wire'

/** What is known when the time is up: nothing wrong yet, where only our own budget keeps questions back. */
const late = (
  { rate_limit: { requests_per_minute } }: SourceConfig,
  unanswered: ReadonlyArray<string>,
  asked: number,
  last: Failure | undefined,
): E.Either<Failure, ReadonlyArray<string>> => {
  const which = unanswered.join(' and ')
  return requests_per_minute !== undefined && asked > 0
    ? E.right([`rate_limit.requests_per_minute (${requests_per_minute}) left no time to ask everything of ${which}.`])
    : E.left(tooSlow(which, last))
}

/** How many operations beside the exports the config makes use of. */
const beside = ({ entities, lookups }: SourceConfig): number => {
  const { person_ids, location_ids, entity_ids } = entities
  const feedback = person_ids.length + location_ids.length + entity_ids.length > 0 ? 2 : 0
  return feedback + Object.values(lookups).filter((lookup) => lookup !== undefined).length
}

export const check = command({
  name: 'check',
  summary: 'Says whether the configuration works: address, token, permission by operation.',
  options: { config: configOption },
  run: async (io, { options }) => {
    const config = await loadConfig(io, String(options.config))
    let answered = 0
    let last: Failure | undefined
    const wired = orStop(
      wire(hurried(config, beside(config)), {
        attempts,
        onRequest: ({ status }) => {
          answered += status < 400 ? 1 : 0
        },
        onRetry: ({ operation, error }) => {
          last = toFailure(operation, error)
        },
      }),
    )
    const { finding, open }: Probing = probing(wired)
    const outcome = await inTime(finding, () => late(config, open(), answered, last))
    await wired.close()
    if (E.isLeft(outcome)) throw new Stopped(outcome.left)
    const warnings = outcome.right.map(io.clean)
    for (const warning of warnings) io.warn(warning)
    await io.print(statusLine('SUCCEEDED', warnings.length === 0 ? undefined : warnings.join(' ')))
    return 0
  },
})
