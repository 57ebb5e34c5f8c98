import * as E from 'fp-ts/Either'
import type { Api } from '../../connector/api/api'
import { parseJson } from '../../connector/api/json-text'
import { Stopped } from '../../connector/cdk/cli'
import type { Failure } from '../../connector/cdk/failure'
import { wholeOf } from '../../connector/cdk/lines'
import { airbyteArrivals } from '../../connector/cdk/write/airbyte'
import { readConfigured } from '../../connector/cdk/write/airbyte-catalog'
import { readDestinationConfig } from '../../connector/destination-config'
import { runWrite } from '../../connector/run-write'
import type { Operation } from '../../connector/sandbox/operations'
import { hasty, type Strike, servedStruck } from '../source/struck'
import { inputOf, quietIo } from '../support/io'

export type Written = {
  readonly failures: ReadonlyArray<Failure>
  /** What was said of each record that the service did not take. */
  readonly rejected: number
  /** The `at` of the last state that was answered; 0 where none was. */
  readonly reached: number
  readonly requests: number
  readonly faults: number
}

export type Writing = {
  readonly api: Api
  readonly operation: Operation
  readonly catalog: unknown
  readonly config?: object
}

/** One run of `write` on the lines of `stdin`, against `api` served anew with a fault. */
export const writeStruck = async (
  { api, operation, catalog, config: more = {} }: Writing,
  stdin: string,
  strike?: Omit<Strike, 'operation'>,
): Promise<Written> => {
  const now = Date.now()
  const served = await servedStruck(api, strike && { ...strike, operation }, now)
  const config = readDestinationConfig({ ...served.settings, batch_size: 10, ...more })
  const configured = readConfigured(catalog)
  if (E.isLeft(config)) throw new Error(config.left.message)
  if (E.isLeft(configured)) throw new Error(configured.left.message)
  const out: string[] = []
  const io = quietIo(inputOf(stdin), async (text) => {
    out.push(wholeOf(text))
  })
  const { timeouts } = config.right.config
  try {
    const written = await runWrite(
      io,
      { ...config.right.config, timeouts: { ...timeouts, response_seconds: served.seconds } },
      airbyteArrivals(configured.right, parseJson),
      () => undefined,
      { clock: hasty(now) },
    ).catch((error: unknown) => {
      if (error instanceof Stopped) return { failures: [error.failure], tallies: new Map() }
      throw error
    })
    const states = out
      .join('')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line))
      .filter(({ type }) => type === 'STATE')
    return {
      failures: written.failures,
      rejected: [...written.tallies.values()].reduce((sum, { rejected }) => sum + rejected, 0),
      reached: states.at(-1)?.state.stream.stream_state.at ?? 0,
      requests: served.requests(operation),
      faults: served.faults(),
    }
  } finally {
    await served.close()
  }
}
