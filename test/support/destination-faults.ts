import * as E from 'fp-ts/Either'
import type { Api } from '../../connector/api/routes'
import { decodeConfiguredCatalog } from '../../connector/cdk/airbyte/catalog'
import type { Failure } from '../../connector/cdk/failure'
import { joinText } from '../../connector/cdk/lines'
import { CommandError } from '../../connector/cdk/program/error'
import { protocols } from '../../connector/cdk/protocols'
import { destinationFormat } from '../../connector/cli/feedback-destination'
import { runWrite } from '../../connector/runtime/write'
import type { OperationName } from '../../connector/sandbox/operations/operation'
import { createTestIo, toInput } from './command-io'
import { createFastClock, type ScheduledFault, serveWithFault } from './source-faults'

export type FaultyWriteResult = {
  readonly failures: ReadonlyArray<Failure>
  /** The number of rejected records. */
  readonly rejected: number
  /** The `at` of the last state that was printed; 0 if none was. */
  readonly reached: number
  readonly requests: number
  readonly faults: number
}

export type FaultyWrite = {
  readonly api: Api
  readonly operation: OperationName
  readonly catalog: unknown
  readonly config?: object
}

/** One run of `write` with the lines of `stdin`, against a new server of `api` with a fault. */
export const writeWithFault = async (
  { api, operation, catalog, config: more = {} }: FaultyWrite,
  stdin: string,
  fault?: Omit<ScheduledFault, 'operation'>,
): Promise<FaultyWriteResult> => {
  const now = Date.now()
  const server = await serveWithFault(api, fault && { ...fault, operation }, now)
  const config = destinationFormat.decode({ ...server.settings, batch_size: 10, ...more })
  const configured = decodeConfiguredCatalog('destination')(catalog)
  if (E.isLeft(config)) throw new Error(config.left.message)
  if (E.isLeft(configured)) throw new Error(configured.left.message)
  const out: string[] = []
  const io = createTestIo(toInput(stdin), async (text) => {
    out.push(joinText(text))
  })
  const { timeouts } = config.right.config
  try {
    const result = await runWrite(
      io,
      { ...config.right.config, timeouts: { ...timeouts, response_seconds: server.seconds } },
      { protocol: protocols.airbyte, catalog: configured.right },
      { clock: createFastClock(now) },
    ).catch((error: unknown) => {
      if (error instanceof CommandError) return { failures: [error.failure], countsByStream: new Map() }
      throw error
    })
    const states = out
      .join('')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line))
      .filter(({ type }) => type === 'STATE')
    return {
      failures: result.failures,
      rejected: [...result.countsByStream.values()].reduce((sum, { rejected }) => sum + rejected, 0),
      reached: states.at(-1)?.state.stream.stream_state.at ?? 0,
      requests: server.requests(operation),
      faults: server.faults(),
    }
  } finally {
    await server.close()
  }
}
