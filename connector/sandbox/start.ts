import { randomUUID } from 'node:crypto'
import { type Api, issueToken, type LookupRoutes } from '../api'
import type { SeedOptions } from './data/generate'
import { type DataFiles, openData } from './data/open-data'
import type { Trend } from './data/trend'
import type { FaultRule } from './faults/plan'
import type { ExportOrder } from './operations/exports'
import { createTokenRegistry, type OperationName } from './operations/operation'
import { createSandboxService } from './operations/service'
import type { RequestLimits, TransparencyRules } from './operations/transparency'
import type { Truth } from './operations/truth'
import { type Churn, noChurn } from './operations/writes'
import type { ServiceKind } from './server/handlers'
import { createRequestLog, createSandboxPages, type RequestLogEntry, type RequestStats } from './server/pages'
import { createLatency, type Latency, type RequestRate, startServer } from './server/server'

/** Every option has a default: 1,000 reviews in modification order, no changes and no faults, on a free port. */
export type SandboxOptions = Partial<SeedOptions> &
  DataFiles & {
    /** What makes the months of generated reviews differ; default nothing, and reviews change at any later time. */
    readonly trend?: Trend
    /** Default 127.0.0.1. */
    readonly host?: string
    /** Default 0, which means any free port. */
    readonly port?: number
    /** Default modified_asc. */
    readonly order?: ExportOrder
    /** Changes after each successful page of operation 6; default none. */
    readonly churn?: Partial<Churn>
    /** Faults, as `decodeFaultPlan` and `parseFaultList` return them; default none. */
    readonly faults?: ReadonlyArray<FaultRule>
    /** The most requests in a period; default no limit. */
    readonly rate?: RequestRate
    /** Delay of every answer; default none. */
    readonly latency?: Latency
    /** Limits of the transparency operations; default 100 rows a page and 50 identifiers a request. */
    readonly limits?: Partial<RequestLimits>
    /** Lifetime of an exchanged token in seconds; default 3600, and 1800 like published deployments. */
    readonly tokenLifetime?: number
    /** Operations that the application's tokens may not call; default none. */
    readonly denied?: ReadonlyArray<OperationName>
    /** More tokens, each with the operations that it may call; default none. */
    readonly granted?: ReadonlyMap<string, ReadonlyArray<OperationName>>
    /** Method and path of each lookup; default as in api/routes.ts. */
    readonly lookups?: LookupRoutes
    /** What the service behaves like; default the specification. */
    readonly like?: ServiceKind
    /**
     * How many seconds the clock moves forward with every request, so that a long backfill takes little time; default
     * 0.
     */
    readonly secondsPerRequest?: number
    /** The clock for modification times, rates and tokens, in milliseconds; default the real time. */
    readonly now?: () => number
    /** How far the `Date` header is ahead of `now`, in milliseconds; default 0. */
    readonly clockSkew?: number
  }

/** A running sandbox. */
export type Sandbox = {
  /** The address without a trailing slash, as `base_url` takes it. */
  readonly url: string
  readonly accessToken: string
  readonly applicationId: string
  readonly applicationSecret: string
  readonly tokenUrl: string
  /** The same service, called without HTTP. */
  readonly api: Api
  /** Changes, deletes, adds and restores this many reviews now. */
  readonly churn: (step: Partial<Churn>) => Promise<void>
  /** Sets the changes after each later page of operation 6. */
  readonly setChurn: (step: Partial<Churn>) => void
  /** Moves the service's clock forward. */
  readonly forward: (seconds: number) => void
  /** The data of the service, in the order of ids; a review's `json` is its text with all additional fields. */
  readonly truth: () => Promise<Truth>
  /** Numbers of requests, answers and faults so far. */
  readonly stats: () => RequestStats
  /** The last 10,000 requests. */
  readonly log: () => ReadonlyArray<RequestLogEntry>
  readonly close: () => Promise<void>
}

/** Opens or generates the data and starts the server; resolves when it listens, rejects with a `CommandError`. */
export const startSandbox = async (options: SandboxOptions = {}): Promise<Sandbox> => {
  const { like: kind = 'specification', lookups = {}, denied = [], granted = new Map() } = options
  const { now, forward } = createMovableClock(options.now ?? Date.now)
  const seedOptions = fillSeedOptions(options, now())
  const database = await openData(options, { ...seedOptions, trend: options.trend })
  let pageChurn: Churn = { ...noChurn, ...options.churn }
  const lifetimeSeconds = options.tokenLifetime ?? (kind === 'published' ? 1800 : 3600)
  const tokenRegistry = createTokenRegistry({ createText: randomUUID, now, lifetimeSeconds, denied, granted })
  const service = createSandboxService(database, {
    order: options.order ?? 'modified_asc',
    pageChurn: () => pageChurn,
    rules: { maxPerPage: 100, maxIdentifiers: 50, ...options.limits, ...answerRules[kind] },
    tokenRegistry,
    now,
  })
  const log = createRequestLog()
  const server = await startServer(service.api, {
    host: options.host ?? '127.0.0.1',
    port: options.port ?? 0,
    tokenRegistry,
    rules: options.faults ?? [],
    seed: seedOptions.seed,
    requestRate: options.rate ?? { requests: Number.POSITIVE_INFINITY, seconds: 1 },
    latency: createLatency(options.latency ?? { minMs: 0, maxMs: 0 }, seedOptions.seed),
    lookups,
    published: kind === 'published' ? { now, listEntities: service.listEntities } : undefined,
    onRequest: () => forward(options.secondsPerRequest ?? 0),
    pages: createSandboxPages(service, log, { kind, lookups }, forward),
    log,
    now,
    headerClock: () => now() + (options.clockSkew ?? 0),
  })
  const { accessToken, applicationId, applicationSecret } = tokenRegistry
  return {
    url: server.url,
    accessToken,
    applicationId,
    applicationSecret,
    tokenUrl: server.url + issueToken.path,
    api: service.api,
    churn: (step) => service.churn({ ...noChurn, ...step }),
    setChurn: (step) => {
      pageChurn = { ...noChurn, ...step }
    },
    forward,
    truth: service.truth,
    stats: log.stats,
    log: log.entries,
    close: async () => {
      await server.close()
      database.close()
    },
  }
}

/** A clock in milliseconds that its operator moves forward. */
const createMovableClock = (base: () => number) => {
  let forwardedMs = 0
  return {
    now: (): number => base() + forwardedMs,
    forward: (seconds: number): void => {
      forwardedMs += seconds * 1000
    },
  }
}

const fillSeedOptions = (options: SandboxOptions, now: number): SeedOptions => ({
  reviews: options.reviews ?? 1000,
  seed: options.seed ?? 7,
  locations: options.locations ?? 40,
  providers: options.providers ?? 200,
  batch: options.batch ?? 40,
  years: options.years ?? 3,
  until: options.until ?? now - 60_000,
})

/** How each kind of service reads requests of the transparency operations. */
const answerRules: Readonly<Record<ServiceKind, Omit<TransparencyRules, keyof RequestLimits>>> = {
  specification: { scrollOnly: false, wholeSeconds: false, minRatingCount: -1 },
  published: { scrollOnly: true, wholeSeconds: true, minRatingCount: 30 },
}
