import * as E from 'fp-ts/Either'
import type { ClientOptions } from '../../api/client'
import { toFailure } from '../../api/error'
import { connectionStatusLine } from '../../cdk/airbyte'
import { CommandError, defineCommand } from '../../cdk/cli'
import type { Failure } from '../../cdk/failure'
import { awaitOrTimeOut, checkAttempts, checkTimeoutFailure, withCheckTimeouts } from '../../hurry'
import { configOption, loadDestinationConfig, runOrThrow } from '../../load'
import { checkDestination } from '../../probe-destination'
import { openDestination } from '../../wire-destination'

export const destinationCheckCommand = defineCommand({
  name: 'check',
  summary: 'Says whether the configuration works: address, token, permission by operation.',
  options: { config: configOption },
  run: async (io, { options }) => {
    let last: Failure | undefined
    const onRetry: ClientOptions['onRetry'] = ({ operation, error }) => {
      last = toFailure(operation, error)
    }
    const config = withCheckTimeouts({ ...(await loadDestinationConfig(io, String(options.config))), dry_run: false })
    const wired = await runOrThrow(openDestination(config, io.printWarning, { attempts: checkAttempts, onRetry }))
    const outcome = await awaitOrTimeOut<E.Either<Failure, string>>(checkDestination(config, wired.target)(), () =>
      E.left(checkTimeoutFailure('an empty array', last)),
    )
    await wired.close()
    if (E.isLeft(outcome)) throw new CommandError(outcome.left)
    await io.print(connectionStatusLine('SUCCEEDED', io.redactText(outcome.right)))
    return 0
  },
})
