import { randomUUID } from 'node:crypto'
import * as E from 'fp-ts/Either'
import type { Api } from '../../connector/api/api'
import { systemClock } from '../../connector/api/clock'
import type { State } from '../../connector/cdk/catalog'
import { readConfig } from '../../connector/config'
import type { Fault, Rule } from '../../connector/sandbox/faults'
import { latencyOf } from '../../connector/sandbox/latency'
import { requestLog } from '../../connector/sandbox/log'
import type { Operation } from '../../connector/sandbox/operations'
import { serve } from '../../connector/sandbox/serve'
import { type Sandbox, startSandbox } from '../../connector/sandbox/start'
import { tokens } from '../../connector/sandbox/tokens'
import { streams } from '../../connector/streams'
import { wire } from '../../connector/wire'
import { type Outcome, readAll } from '../support/in-process'

/** A service with deletions that lie in the past, so that nothing is left for the next run. */
export const settledSandbox = async (reviews: number, deleted: number): Promise<Sandbox> => {
  let ago = 60_000
  const sandbox = await startSandbox({ reviews, now: () => Date.now() - ago })
  await sandbox.churn({ delete: deleted })
  ago = 0
  return sandbox
}

/** Which requests of one operation a fault strikes: `times` of them from the `from`th on. */
export type Strike = {
  readonly fault: Fault
  readonly operation: Operation
  readonly from: number
  readonly times: number
}

const toRule = ({ fault, operation, from, times }: Strike): Rule => ({
  ...fault,
  operations: [operation],
  requests: undefined,
  from,
  to: from + times - 1,
  share: 1,
  times: Number.POSITIVE_INFINITY,
})

/** Waits are over at once and move the time, so that patience costs none. */
const hasty = (stop: AbortSignal) => {
  let ahead = 0
  const real = systemClock(stop)
  return {
    now: () => real.now() + ahead,
    ticks: () => real.ticks() + ahead,
    random: () => 0.5,
    wait: (millis: number) => async () => {
      if (millis > 0) ahead += millis
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

export type Struck = Outcome & {
  readonly requests: number
  readonly faults: number
}

/** The answers of a service that does not change, each made once. */
export const remembered = (api: Api): Api => {
  const answers = new Map<string, ReturnType<ReturnType<Api['exportReviews']>>>()
  const once =
    (name: 'exportReviews' | 'exportDeletedReviews'): Api['exportReviews'] =>
    (request) =>
    () => {
      const key = `${name} ${JSON.stringify(request)}`
      const answer = answers.get(key) ?? api[name](request)()
      answers.set(key, answer)
      return answer
    }
  return { ...api, exportReviews: once('exportReviews'), exportDeletedReviews: once('exportDeletedReviews') }
}

/** One run of the streams called `names` on the data of `api`, served anew with a fault. */
export const readStruck = async (
  api: Api,
  names: ReadonlyArray<string>,
  strike: Strike | undefined,
  state: State = {},
): Promise<Struck> => {
  const silent = strike !== undefined && ['hang', 'drip'].includes(strike.fault.kind)
  const issued = tokens({ random: randomUUID, now: Date.now, lifetime: 3600, denied: [], granted: new Map() })
  const log = requestLog()
  const server = await serve(api, {
    host: '127.0.0.1',
    port: 0,
    tokens: issued,
    rules: strike === undefined ? [] : [toRule(strike)],
    seed: 1,
    rate: { requests: Number.POSITIVE_INFINITY, seconds: 1 },
    latency: latencyOf({ least: 0, most: 0 }, 1),
    lookups: {},
    pages: [],
    log,
    now: Date.now,
    shown: Date.now,
  })
  const config = readConfig({
    base_url: server.url,
    credentials: { auth_type: 'access_token', access_token: issued.accessToken },
    start_date: '2010-01-01T00:00:00Z',
    page_size: 20,
    rate_limit: { max_concurrency: 1 },
  })
  if (E.isLeft(config)) throw new Error(config.left.message)
  const { timeouts } = config.right.config
  const wired = wire(
    { ...config.right.config, timeouts: { ...timeouts, response_seconds: silent ? 0.5 : 60 } },
    { clock: hasty },
  )
  if (E.isLeft(wired)) throw new Error(wired.left.message)
  try {
    const selected = streams.filter(({ name }) => names.includes(name))
    const outcome = await readAll(wired.right.source, selected, state)
    const entries = log.entries()
    return {
      ...outcome,
      requests: entries.length,
      faults: entries.filter(({ fault }) => fault !== null).length,
    }
  } finally {
    await wired.right.close()
    await server.close()
  }
}
