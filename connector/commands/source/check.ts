import * as E from 'fp-ts/Either'
import { statusLine } from '../../cdk/airbyte'
import { command, Stopped } from '../../cdk/cli'
import { type Failure, transientFailure } from '../../cdk/failure'
import { configOption, loadConfig, orStop } from '../../load'
import { probe } from '../../probe'
import { wire } from '../../wire'

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
    const config = await loadConfig(io, String(options.config))
    const wired = orStop(wire(config, { attempts: 2 }))
    const timer = new Promise<E.Either<Failure, never>>((resolve) => {
      setTimeout(() => resolve(E.left(tooSlow)), patience).unref()
    })
    const outcome = await Promise.race([probe(wired.source)(), timer])
    await wired.close()
    if (E.isLeft(outcome)) throw new Stopped(outcome.left)
    for (const warning of outcome.right) io.warn(warning)
    await io.print(statusLine('SUCCEEDED', outcome.right.length === 0 ? undefined : outcome.right.join(' ')))
    return 0
  },
})
