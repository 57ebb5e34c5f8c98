import { createServer } from 'node:http'
import {
  createFront,
  type FrontTraits,
  type ServiceAnswer,
  type ServiceFault,
  type ServiceFront,
  type ServiceRequest,
  serviceFaults,
} from './front'
import type { Chance } from './random'
import {
  type Change,
  changes,
  createRows,
  type ExportRow,
  type RowFilter,
  type Rows,
  type RowTraits,
  sourceIds,
  type Truth,
} from './rows'

/** How the simulated service behaves; times in milliseconds. */
export type ServiceTraits = FrontTraits &
  RowTraits & {
    /** The most rows of a page. */
    readonly clamp: number
    /** Its answers say how many rows a page may have. */
    readonly tellsLimit: boolean
    /** Some pages have fewer rows than requested: at least this fraction of them, by default 0.4. */
    readonly hasShortPages: boolean
    readonly shortestPage?: number
    /** It refuses an offset after the last row. */
    readonly refusesEnd: boolean
    /** How likely it is that rows change after a page. */
    readonly churn: number
    /** The most rows that change at a time. */
    readonly burst: number
  }

export type SimulatedService = Omit<ServiceFront, 'isCalm' | 'refuse'> & {
  readonly change: (kind: Change, count: number) => void
  /** Lets rows change within the given number of pages from now on. */
  readonly allowChurn: (pages: number) => void
  /** Limits pages to this many rows from now on. */
  readonly lowerLimit?: (most: number) => void
  /** Texts of patients. */
  readonly words: () => ReadonlyArray<string>
}

/** A service with both exports. */
export type ExportService = SimulatedService & {
  /** What it holds of what happened, and was to be seen, up to a time. */
  readonly truth: (until: number) => Truth
  readonly newest: Rows['newest']
  readonly wordsOf: Rows['wordsOf']
  /** How many empty pages it has sent although there were rows. */
  readonly falseEnds: () => number
  /** The reviews that it serves now, changed after this time, in their order; milliseconds. */
  readonly list: (from: number) => ReadonlyArray<ExportRow>
  /** Calls `listener` with the rows of each page that it sends. */
  readonly onPage: (listener: (rows: ReadonlyArray<ExportRow>) => void) => void
  /** How many rows have changed since the world began. */
  readonly changes: () => number
}

/** What goes wrong at an export besides the faults of every service. */
export const exportFaults: ReadonlyArray<ServiceFault> = [
  ...serviceFaults,
  '401 in 200',
  'endless wait',
  'empty page',
  'empty page with an error',
]

const exportPath = '/api/reputation/v1/reviews'
const deletedPath = '/api/reputation/v1/deleted-reviews'

/**
 * A service with both exports and tokens, following its specification, whose rows and answers are drawn from a seed.
 */
export const createService = (traits: ServiceTraits, now: () => number, chance: Chance): ExportService => {
  const rows = createRows(traits, now, chance)
  let changeCount = 0
  /** How many pages may still be followed by changes, since a read of a service that always changes need not end. */
  let churnLeft = 0
  let clamp = traits.clamp
  let falseEnds = 0
  let notePage = (_rows: ReadonlyArray<ExportRow>): void => undefined
  /** Of the page served last. */
  let lastIds: ReadonlyArray<number> = []

  const change: Rows['change'] = (kind, count, near) => {
    changeCount += count
    rows.change(kind, count, near)
  }
  const respond = ({ path, body }: ServiceRequest, fault: ServiceFault | undefined): ServiceAnswer | undefined =>
    path === exportPath || path === deletedPath ? exportPage(path, body, fault) : undefined
  const { isCalm, refuse, ...front } = createFront(traits, now, chance, { words: rows.words, respond })

  const exportPage = (path: string, body: string, fault: ServiceFault | undefined): ServiceAnswer => {
    const request: RowFilter & { readonly offset?: number; readonly limit?: number } = JSON.parse(body)
    const { offset = 0, limit = 1000 } = request
    const listed = path === exportPath ? rows.listReviews(request) : rows.listDeletions(request)
    if (traits.refusesEnd && offset > 0 && offset >= listed.length)
      return { status: 400, body: refuse(400, 'the offset is too large') }
    const most = Math.min(limit, clamp)
    const { shortestPage = 0.4 } = traits
    const length =
      traits.hasShortPages && chance.happens(0.3)
        ? Math.ceil(most * (shortestPage + chance.next() * (1 - shortestPage)))
        : most
    const isEmpty = fault === 'empty page' || fault === 'empty page with an error'
    // The answer to another request, as its echo shows.
    const served = fault === 'other offset' ? offset + 1 : offset
    const page = isEmpty ? [] : listed.slice(served, served + length)
    if (isEmpty && listed.length > offset) falseEnds += 1
    notePage(page)
    if (path === exportPath && page.length > 0) lastIds = page.map(({ id }) => id)
    if (!isCalm() && path === exportPath && churnLeft > 0 && chance.happens(traits.churn)) {
      churnLeft -= 1
      change(chance.pick(changes), chance.between(1, traits.burst), lastIds)
    }
    const filter = {
      // If the request names no sources, those of a default that does not include all.
      sources: request.sources ?? sourceIds.slice(0, 2),
      modifiedTimeFrom: request.modifiedTimeFrom,
      offset: served,
      ...(traits.tellsLimit ? { limit: most } : {}),
    }
    const status = fault === 'empty page with an error' ? ',"status":{"code":500,"message":null}' : ''
    const list = page.map((row) => row.text).join(',')
    return { status: 200, body: `{"reviews":[${list}],"filter":${JSON.stringify(filter)}${status}}` }
  }

  return {
    ...front,
    calm: () => {
      front.calm()
      rows.calm()
    },
    change,
    list: (from) => rows.listReviews({ modifiedTimeFrom: new Date(from).toISOString() }),
    onPage: (listener) => {
      notePage = listener
    },
    changes: () => changeCount,
    allowChurn: (pages) => {
      churnLeft = pages
    },
    lowerLimit: (most) => {
      clamp = Math.min(clamp, most)
    },
    falseEnds: () => falseEnds,
    truth: rows.truth,
    newest: rows.newest,
    wordsOf: rows.wordsOf,
    words: () => rows.words,
  }
}

/** Lets a simulated service listen; resolves with its address. */
export const listen = (service: SimulatedService): Promise<string> =>
  new Promise((resolve) => {
    const server = createServer(service.handle)
    server.keepAliveTimeout = 60_000
    server.on('clientError', (_error, socket) => socket.destroy())
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`)
    })
  })
