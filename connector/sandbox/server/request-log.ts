import type { OperationName } from '../operations/operation'

/** One request as `/__sandbox/log` tells it; never a token. */
export type RequestLogEntry = {
  /** Counts all requests from 1. */
  readonly n: number
  readonly at: string
  readonly operation: OperationName | null
  readonly method: string
  readonly path: string
  /** What was asked; null if it could not be read, is long, or holds a secret. */
  readonly request: unknown
  /** Null: no answer was sent. */
  readonly status: number | null
  readonly bytes: number
  readonly fault: string | null
}

export type RequestStats = {
  /** Requests per operation. */
  readonly requests: Readonly<Record<string, number>>
  /** Requests of the two exports together. */
  readonly exports: number
  /** Answers per status. */
  readonly statuses: Readonly<Record<string, number>>
  /** Faults per kind. */
  readonly faults: Readonly<Record<string, number>>
}

export type RequestLog = {
  /** A request for an operation has begun. */
  readonly countRequest: (operation: OperationName) => void
  readonly addEntry: (entry: Omit<RequestLogEntry, 'n'>) => void
  readonly entries: () => ReadonlyArray<RequestLogEntry>
  readonly stats: () => RequestStats
}

const maxEntries = 10_000

/** The last 10,000 requests, and counts of all. */
export const createRequestLog = (): RequestLog => {
  const entries: Array<RequestLogEntry> = []
  const requests = new Map<string, number>()
  const statuses = new Map<string, number>()
  const faults = new Map<string, number>()
  const count = (counts: Map<string, number>, key: string | number | null): void => {
    if (key !== null) counts.set(String(key), (counts.get(String(key)) ?? 0) + 1)
  }
  let n = 0
  return {
    countRequest: (operation) => count(requests, operation),
    addEntry: (entry) => {
      count(statuses, entry.status)
      count(faults, entry.fault)
      entries.push({ n: ++n, ...entry })
      if (entries.length > maxEntries) entries.shift()
    },
    entries: () => entries,
    stats: () => ({
      requests: Object.fromEntries(requests),
      exports: (requests.get('exportReviews') ?? 0) + (requests.get('exportDeletedReviews') ?? 0),
      statuses: Object.fromEntries(statuses),
      faults: Object.fromEntries(faults),
    }),
  }
}
