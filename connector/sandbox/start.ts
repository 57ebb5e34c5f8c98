import { randomUUID } from 'node:crypto'
import { type Api, issueToken, type LookupRoutes } from '../api'
import { type Churn, noChurn } from './data/churn'
import type { SeedOptions } from './data/generate'
import { type DataFiles, openData } from './data/open-data'
import type { FaultRule } from './faults/plan'
import type { ExportOrder } from './operations/exports'
import { createTokenRegistry, type OperationName } from './operations/operation'
import { createSandboxService, type Truth } from './operations/service'
import type { RequestLimits } from './operations/transparency'
import { createRequestLog, createSandboxPages, type RequestLogEntry, type RequestStats } from './server/pages'
import { createLatency, type Latency, type RequestRate, startServer } from './server/server'

/** Everything has a default: 1,000 reviews in the order of their change, a quiet service without faults on a free port. */
export type SandboxOptions = Partial<SeedOptions> &
  DataFiles & {
    /** Default 127.0.0.1. */
    readonly host?: string
    /** Default 0: any that is free. */
    readonly port?: number
    /** Default modified_asc. */
    readonly order?: ExportOrder
    /** What happens after every page of operation 6 that was served; default nothing. */
    readonly churn?: Partial<Churn>
    /** Faults, see `readPlan` and `readFaults`; default none. */
    readonly faults?: ReadonlyArray<FaultRule>
    /** Default: as many as you like. */
    readonly rate?: RequestRate
    /** Default none. */
    readonly latency?: Latency
    /** Default 100 rows a page and 50 identifiers a request of the transparency operations. */
    readonly limits?: Partial<RequestLimits>
    /** Seconds an exchanged token lives; default 3600. */
    readonly tokenLifetime?: number
    /** Operations that the application's tokens may not call; default none. */
    readonly denied?: ReadonlyArray<OperationName>
    /** Further tokens, with the operations they may call. */
    readonly granted?: ReadonlyMap<string, ReadonlyArray<OperationName>>
    /** Where the lookups are; default as in api/routes.ts. */
    readonly lookups?: LookupRoutes
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
  /** What happens after every page of operation 6 from now on. */
  readonly setChurn: (step: Partial<Churn>) => void
  /** What the service holds, in the order of ids; a review's `json` is its text with all additional fields. */
  readonly truth: () => Promise<Truth>
  /** Requests, answers and faults so far. */
  readonly stats: () => RequestStats
  /** The last 10,000 requests. */
  readonly log: () => ReadonlyArray<RequestLogEntry>
  readonly close: () => Promise<void>
}

/** Seeds a service, serves it on loopback and answers once it listens; rejects with `Stopped`. */
export const startSandbox = async (options: SandboxOptions = {}): Promise<Sandbox> => {
  const now = options.now ?? Date.now
  const data = {
    reviews: options.reviews ?? 1000,
    seed: options.seed ?? 7,
    locations: options.locations ?? 40,
    providers: options.providers ?? 200,
    batch: options.batch ?? 40,
    years: options.years ?? 3,
    until: options.until ?? now() - 60_000,
  }
  const database = await openData(options, data)
  const lifetime = options.tokenLifetime ?? 3600
  const { denied = [], granted = new Map() } = options
  let churnOfPages: Churn = { ...noChurn, ...options.churn }
  const issued = createTokenRegistry({ createText: randomUUID, now, lifetimeSeconds: lifetime, denied, granted })
  const held = createSandboxService(database, {
    order: options.order ?? 'modified_asc',
    pageChurn: () => churnOfPages,
    limits: { maxPerPage: 100, maxIdentifiers: 50, ...options.limits },
    tokenRegistry: issued,
    now,
  })
  const log = createRequestLog()
  const server = await startServer(held.api, {
    host: options.host ?? '127.0.0.1',
    port: options.port ?? 0,
    tokenRegistry: issued,
    rules: options.faults ?? [],
    seed: data.seed,
    requestRate: options.rate ?? { requests: Number.POSITIVE_INFINITY, seconds: 1 },
    latency: createLatency(options.latency ?? { minMs: 0, maxMs: 0 }, data.seed),
    lookups: options.lookups ?? {},
    pages: createSandboxPages(held, log, options.lookups ?? {}),
    log,
    now,
    headerClock: () => now() + (options.clockSkew ?? 0),
  })
  const { accessToken, applicationId, applicationSecret } = issued
  return {
    url: server.url,
    accessToken,
    applicationId,
    applicationSecret,
    tokenUrl: server.url + issueToken.path,
    api: held.api,
    churn: (step) => held.churn({ ...noChurn, ...step }),
    setChurn: (step) => {
      churnOfPages = { ...noChurn, ...step }
    },
    truth: held.truth,
    stats: log.stats,
    log: log.entries,
    close: async () => {
      await server.close()
      database.close()
    },
  }
}
