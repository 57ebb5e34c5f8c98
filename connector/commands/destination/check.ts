import * as E from 'fp-ts/Either'
import type { ClientOptions } from '../../api/client'
import { toFailure } from '../../api/error'
import { statusLine } from '../../cdk/airbyte'
import { command, Stopped } from '../../cdk/cli'
import type { Failure } from '../../cdk/failure'
import { attempts, hurried, inTime, tooSlow } from '../../hurry'
import { configOption, loadDestinationConfig, runOrStop } from '../../load'
import { probeDestination } from '../../probe-destination'
import { wireDestination } from '../../wire-destination'

export const check = command({
  name: 'check',
  summary: 'Says whether the configuration works: address, token, permission by operation.',
  options: { config: configOption },
  run: async (io, { options }) => {
    let last: Failure | undefined
    const onRetry: ClientOptions['onRetry'] = ({ operation, error }) => {
      last = toFailure(operation, error)
    }
    const config = hurried({ ...(await loadDestinationConfig(io, String(options.config))), dry_run: false })
    const wired = await runOrStop(wireDestination(config, io.warn, { attempts, onRetry }))
    const outcome = await inTime<E.Either<Failure, string>>(probeDestination(config, wired.target)(), () =>
      E.left(tooSlow('an empty array', last)),
    )
    await wired.close()
    if (E.isLeft(outcome)) throw new Stopped(outcome.left)
    await io.print(statusLine('SUCCEEDED', io.clean(outcome.right)))
    return 0
  },
})
