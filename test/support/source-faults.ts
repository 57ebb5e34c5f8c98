import { randomUUID } from 'node:crypto'
import * as E from 'fp-ts/Either'
import * as TE from 'fp-ts/TaskEither'
import { systemClock } from '../../connector/api/http/rate-limit'
import type { Api } from '../../connector/api/routes'
import type { SourceState } from '../../connector/cdk/catalog'
import { sourceFormat } from '../../connector/config/source'
import { createSource } from '../../connector/runtime/source'
import type { Fault, FaultRule } from '../../connector/sandbox/faults/plan'
import { createTokenRegistry, type OperationName } from '../../connector/sandbox/operations/operation'
import { createRequestLog } from '../../connector/sandbox/server/pages'
import { createLatency, type SandboxServer, startServer } from '../../connector/sandbox/server/server'
import type { Sandbox } from '../../connector/sandbox/start'
import { type Outcome, readAll } from './in-process'
import { sandboxKind, startTestSandbox } from './sandbox'

/**
 * A service that does not change, with deletions in the past, so that the next run has nothing to read; and its time.
 */
export const quietSandbox = async (reviews: number, deleted: number): Promise<Sandbox & { readonly now: number }> => {
  let ago = 60_000
  const sandbox = await startTestSandbox({ reviews, locations: 4, providers: 5, now: () => Date.now() - ago })
  await sandbox.churn({ delete: deleted })
  ago = 0
  return { ...sandbox, now: Math.floor(Date.now() / 1000) * 1000 }
}

/** The requests of one operation that get a fault: `times` of them, starting with the `from`th. */
export type ScheduledFault = {
  readonly fault: Fault
  readonly operation: OperationName
  readonly from: number
  readonly times: number
}

const toRule = ({ fault, operation, from, times }: ScheduledFault): FaultRule => ({
  ...fault,
  operations: [operation],
  requests: undefined,
  from,
  to: from + times - 1,
  share: 1,
  times: Number.POSITIVE_INFINITY,
})

/** Time passes only by waits, which end at once: waiting costs no time, and every run sends the same requests. */
export const createFastClock = (now: number) => (stop: AbortSignal) => {
  let ahead = 0
  return {
    ...systemClock(stop),
    now: () => now + ahead,
    ticks: () => ahead,
    random: () => 0.5,
    wait: (millis: number) => async () => {
      if (millis > 0) ahead += millis
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

/** The same API of a service that does not change, with each answer computed once. */
export const cacheApi = (api: Api): Api => {
  const answers = new Map<string, unknown>()
  const once = (name: string, ask: Api[keyof Api]) => (request: never) => () => {
    const key = `${name} ${JSON.stringify(request)}`
    const answer = answers.get(key) ?? ask(request)()
    answers.set(key, answer)
    return answer
  }
  return Object.fromEntries(Object.entries(api).map(([name, ask]) => [name, once(name, ask)])) as unknown as Api
}

/** Serves an `Api` over HTTP, with a fault; `requests` counts the requests of an operation. */
export const serveWithFault = async (api: Api, scheduled: ScheduledFault | undefined, now: number) => {
  const tokenRegistry = createTokenRegistry({
    createText: randomUUID,
    now: Date.now,
    lifetimeSeconds: 3600,
    denied: [],
    granted: new Map(),
  })
  const log = createRequestLog()
  const server: SandboxServer = await startServer(api, {
    host: '127.0.0.1',
    port: 0,
    tokenRegistry,
    rules: scheduled === undefined ? [] : [toRule(scheduled)],
    seed: 1,
    requestRate: { requests: Number.POSITIVE_INFINITY, seconds: 1 },
    latency: createLatency({ minMs: 0, maxMs: 0 }, 1),
    lookups: {},
    published:
      sandboxKind === 'published' ? { now: () => now, listEntities: () => TE.right({ entities: [] }) } : undefined,
    pages: [],
    log,
    now: () => now,
    headerClock: () => now,
  })
  return {
    settings: {
      base_url: server.url,
      credentials: { auth_type: 'access_token', access_token: tokenRegistry.accessToken },
      rate_limit: { max_concurrency: 1 },
    },
    /** The response time-out: short only for faults that do not answer. */
    seconds: scheduled !== undefined && ['hang', 'drip'].includes(scheduled.fault.kind) ? 0.5 : 60,
    requests: (operation: OperationName) => log.entries().filter((entry) => entry.operation === operation).length,
    faults: () => log.entries().filter(({ fault }) => fault !== null).length,
    close: server.close,
  }
}

export type FaultyRun = Outcome & {
  /** Of the operation with the fault. */
  readonly requests: number
  readonly faults: number
}

export type FaultyRead = {
  readonly api: Api
  readonly now: number
  readonly operation: OperationName
  readonly streams: ReadonlyArray<string>
  readonly config?: object
}

/** One run of some streams on the data of `api`, against a new server with a fault. */
export const readWithFault = async (
  { api, now, operation, streams: names, config: more = {} }: FaultyRead,
  fault?: Omit<ScheduledFault, 'operation'>,
  state: SourceState = {},
): Promise<FaultyRun> => {
  const served = await serveWithFault(api, fault && { ...fault, operation }, now)
  const config = sourceFormat.decode({ ...served.settings, start_date: '2010-01-01T00:00:00Z', page_size: 20, ...more })
  if (E.isLeft(config)) throw new Error(config.left.message)
  const { timeouts } = config.right.config
  const created = createSource(
    { ...config.right.config, timeouts: { ...timeouts, response_seconds: served.seconds } },
    { clock: createFastClock(now), proxyVariables: {} },
  )
  if (E.isLeft(created)) throw new Error(created.left.message)
  const { env, streams, close } = created.right
  try {
    const selected = streams.filter(({ name }) => names.includes(name))
    const outcome = await readAll({ ...env, now: () => now }, selected, state)
    return { ...outcome, requests: served.requests(operation), faults: served.faults() }
  } finally {
    await close()
    await served.close()
  }
}
