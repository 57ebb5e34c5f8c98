import * as E from 'fp-ts/Either'
import { statusLine } from '../../cdk/airbyte'
import { command, Stopped } from '../../cdk/cli'
import { type Failure, transientFailure } from '../../cdk/failure'
import { attempts, hurried, inTime } from '../../hurry'
import { configOption, loadDestinationConfig, runOrStop } from '../../load'
import { probeDestination } from '../../probe-destination'
import { wireDestination } from '../../wire-destination'

const tooSlow = transientFailure(
  'check: the service has not answered within 14 s. It may be slow or limit our rate; see that base_url is right and try again.',
)

export const check = command({
  name: 'check',
  summary: 'Says whether the configuration works: address, token, permission by operation.',
  options: { config: configOption },
  run: async (io, { options }) => {
    const config = hurried({ ...(await loadDestinationConfig(io, String(options.config))), dry_run: false })
    const wired = await runOrStop(wireDestination(config, io.warn, { attempts }))
    const outcome = await inTime<E.Either<Failure, string>>(probeDestination(config, wired.target)(), () =>
      E.left(tooSlow),
    )
    await wired.close()
    if (E.isLeft(outcome)) throw new Stopped(outcome.left)
    await io.print(statusLine('SUCCEEDED', io.clean(outcome.right)))
    return 0
  },
})
