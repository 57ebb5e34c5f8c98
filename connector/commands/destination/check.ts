import * as E from 'fp-ts/Either'
import { statusLine } from '../../cdk/airbyte'
import { command, Stopped } from '../../cdk/cli'
import { type Failure, transientFailure } from '../../cdk/failure'
import { configOption, loadDestinationConfig, runOrStop } from '../../load'
import { probeDestination } from '../../probe-destination'
import { wireDestination } from '../../wire-destination'

/** A platform's patience with `check`, less a second, in milliseconds. */
const patience = 14_000

const tooSlow = transientFailure(
  'check: the service has not answered within 14 s. It may be slow or limit our rate; see that base_url is right and try again.',
)

export const check = command({
  name: 'check',
  summary: 'Says whether the configuration works: address, token, permission by operation.',
  options: { config: configOption },
  run: async (io, { options }) => {
    const config = { ...(await loadDestinationConfig(io, String(options.config))), dry_run: false }
    const wired = await runOrStop(wireDestination(config, io.warn, { attempts: 2 }))
    const timer = new Promise<E.Either<Failure, never>>((resolve) => {
      setTimeout(() => resolve(E.left(tooSlow)), patience).unref()
    })
    const outcome = await Promise.race([probeDestination(config, wired.target)(), timer])
    await wired.close()
    if (E.isLeft(outcome)) throw new Stopped(outcome.left)
    await io.print(statusLine('SUCCEEDED', outcome.right))
    return 0
  },
})
