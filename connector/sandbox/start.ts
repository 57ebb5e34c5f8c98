import { randomUUID } from 'node:crypto'
import * as E from 'fp-ts/Either'
import type { Api } from '../api/api'
import { Stopped } from '../cdk/cli'
import { openDatabase } from '../snapshot/database'
import type { Churn } from './churn'
import type { Order } from './export-orders'
import type { FaultPlan } from './faults'
import { type Data, seed } from './seed'
import { type Stats, serve, tokenPath } from './serve'
import { service, type Truth } from './service'
import { tokens } from './tokens'

/** Everything has a default: 1,000 reviews in the order of their change, a quiet service without faults on a free port. */
export type SandboxOptions = Partial<Data> & {
  /** Default 127.0.0.1. */
  readonly host?: string
  /** Default 0: any that is free. */
  readonly port?: number
  /** Default modified_asc. */
  readonly order?: Order
  /** What happens after every page of operation 6 that was served; default nothing. */
  readonly churn?: Partial<Churn>
  /** Faults of the numbered requests of operations 6 and 7, counted together from 1; each happens once. */
  readonly fail?: FaultPlan
  /** Seconds an exchanged token lives; default 3600. */
  readonly tokenLifetime?: number
  /** The clock that stamps changes, milliseconds; default the real one. */
  readonly now?: () => number
  /** How far the clock that the `Date` header shows is ahead of `now`, milliseconds; default 0. */
  readonly clockSkew?: number
}

/** A running sandbox. */
export type Sandbox = {
  /** Without a slash at its end: what `base_url` wants. */
  readonly url: string
  readonly accessToken: string
  readonly applicationId: string
  readonly applicationSecret: string
  readonly tokenUrl: string
  /** The service without HTTP. */
  readonly api: Api
  /** Lets so many reviews change, be deleted and arrive now. */
  readonly churn: (step: Partial<Churn>) => Promise<void>
  /** What the service holds, in the order of ids; a review's `json` is its text with all additional fields. */
  readonly truth: () => Promise<Truth>
  readonly stats: () => Stats
  readonly close: () => Promise<void>
}

const quiet: Churn = { change: 0, delete: 0, add: 0 }

/** Seeds a service, serves it on loopback and answers once it listens; rejects with `Stopped`. */
export const startSandbox = async (options: SandboxOptions = {}): Promise<Sandbox> => {
  const now = options.now ?? Date.now
  const opened = await openDatabase(':memory:')()
  if (E.isLeft(opened)) throw new Stopped(opened.left)
  const database = opened.right
  await seed(database, {
    reviews: options.reviews ?? 1000,
    seed: options.seed ?? 7,
    locations: options.locations ?? 40,
    providers: options.providers ?? 200,
    batch: options.batch ?? 40,
    years: options.years ?? 3,
    until: options.until ?? now() - 60_000,
  })
  const { api, churn, truth } = service(database, {
    order: options.order ?? 'modified_asc',
    churn: { ...quiet, ...options.churn },
    now,
  })
  const issued = tokens(randomUUID, now, options.tokenLifetime ?? 3600)
  const server = await serve(api, {
    host: options.host ?? '127.0.0.1',
    port: options.port ?? 0,
    tokens: issued,
    fail: options.fail ?? new Map(),
    now: () => now() + (options.clockSkew ?? 0),
  })
  const { accessToken, applicationId, applicationSecret } = issued
  return {
    url: server.url,
    accessToken,
    applicationId,
    applicationSecret,
    tokenUrl: server.url + tokenPath,
    api,
    churn: (step) => churn({ ...quiet, ...step }),
    truth,
    stats: server.stats,
    close: async () => {
      await server.close()
      database.close()
    },
  }
}
