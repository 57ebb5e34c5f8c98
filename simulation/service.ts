import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Chance } from './random'

/** How the simulated service behaves; times in milliseconds. */
export type ServiceTraits = {
  readonly reviews: number
  /** The order of an export; rows with one time keep no order among `ties`. */
  readonly order: 'ascending' | 'descending' | 'id' | 'ties'
  /** The most rows of a page; its answers tell it. */
  readonly clamp: number
  /** How many reviews have the same modification time at first. */
  readonly rowsPerTime: number
  /** How likely it is that rows change after a page. */
  readonly churn: number
  /** The longest time until a version shows. */
  readonly lag: number
  /** How far `Date` is ahead of the clock that stamps rows. */
  readonly clockSkew: number
  /** How long a token lives, seconds; undefined: one token is valid forever. */
  readonly tokenSeconds: number | undefined
  /** The most requests in a minute; undefined: any number. */
  readonly requestsPerMinute: number | undefined
}

/** An answer other than the right one. */
export const serviceFaults = [
  '401',
  '429',
  '429 date',
  'long wait',
  '500',
  '502',
  '503',
  'html',
  'cut json',
  'application error',
  'other offset',
  'token expired',
] as const
export type ServiceFault = (typeof serviceFaults)[number]

/** What the rows of a service do. */
export type Change = 'change' | 'delete' | 'add' | 'restore'

type Version = {
  readonly modified: number
  readonly visible: number
  readonly text: string
  readonly isDeleted: boolean
}
type Review = { readonly id: number; readonly versions: Version[] }
type Deletion = { readonly id: number; readonly modified: number }

/** What a service holds: the newest version of each review, and each deletion, as `id time`. */
export type Truth = {
  readonly reviews: ReadonlyArray<readonly [string, number]>
  readonly deleted: ReadonlyArray<string>
}

export type SimulatedService = {
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void
  /** Answers so the next few times. */
  readonly arm: (fault: ServiceFault, times: number) => void
  /** How many answers are still to be wrong. */
  readonly armed: () => number
  /** Nothing goes wrong and nothing changes any more. */
  readonly calm: () => void
  readonly change: (kind: Change, count: number) => void
  /** Lets rows change after at most so many pages from now on. */
  readonly allowChurn: (pages: number) => void
  readonly truth: () => Truth
  /** Texts of patients. */
  readonly words: () => ReadonlyArray<string>
  readonly secrets: () => ReadonlyArray<string>
  readonly credentials: object
}

const exportPath = '/api/reputation/v1/reviews'
const deletedPath = '/api/reputation/v1/deleted-reviews'
const tokenPath = '/api/service/v1/token/create'
const year = 365 * 86_400_000

const toInstant = (millis: number): string => new Date(millis).toISOString()

/** A service with both exports and tokens, as its specification describes it, whose rows and answers are drawn from a seed. */
export const createService = (traits: ServiceTraits, now: () => number, chance: Chance): SimulatedService => {
  const reviews: Review[] = []
  const deletions: Deletion[] = []
  const words: string[] = []
  const applicationSecret = `secret-${chance.next()}`
  const tokens = new Map<string, number>()
  const issuedTokens: string[] = []
  let armed: ServiceFault[] = []
  let sendTimes: number[] = []
  let isCalm = false
  /** How many pages may still be followed by changes: a read of a service that never rests need not end. */
  let churnLeft = 0

  const issueToken = (seconds: number): string => {
    const token = `token-${chance.next()}`
    tokens.set(token, now() + seconds * 1000)
    issuedTokens.push(token)
    return token
  }
  const staticToken = traits.tokenSeconds === undefined ? issueToken(1e9) : undefined

  const createVersion = (id: number, modified: number): Version => {
    const text = `My doctor told me ${chance.next()}`
    words.push(text)
    const json = {
      id,
      location: { id: 1 + (id % 5), name: `Location ${id % 5}` },
      source: { id: 101 + (id % 3), name: `Source ${id % 3}` },
      mentionTime: toInstant(modified - 1000),
      modifiedTime: toInstant(modified),
      rating: 1 + (id % 5),
      contents: [{ id: id * 10, question: 'Review', response: text, questionCode: 'COMMENT' }],
    }
    return { modified, visible: modified, text: JSON.stringify(json), isDeleted: false }
  }
  const addReview = (modified: number): Review => {
    const review = { id: 1_000 + reviews.length * 7, versions: [] as Version[] }
    review.versions.push(createVersion(review.id, modified))
    reviews.push(review)
    return review
  }
  const begin = now() - year
  for (let i = 0; i < traits.reviews; i += 1)
    addReview(begin + Math.floor(((i - (i % traits.rowsPerTime)) / traits.reviews) * year * 0.99))

  const newest = ({ versions }: Review): Version => versions.at(-1) as Version
  const select = (isDeleted: boolean): Review | undefined => {
    const found = reviews.filter((review) => newest(review).isDeleted === isDeleted)
    return found.length === 0 ? undefined : chance.pick(found)
  }
  /** Rows of one review keep their order. */
  const stamp = (review: Review): number => Math.max(now(), newest(review).modified + 1)
  const change = (kind: Change, count: number): void => {
    for (let i = 0; i < count; i += 1) {
      const late = isCalm ? 0 : Math.floor(chance.next() * traits.lag)
      if (kind === 'add') {
        const review = addReview(now())
        review.versions[0] = { ...newest(review), visible: now() + late }
        continue
      }
      const review = select(kind === 'restore')
      if (review === undefined) continue
      const modified = stamp(review)
      if (kind === 'delete') {
        review.versions.push({ ...newest(review), modified, visible: modified, isDeleted: true })
        deletions.push({ id: review.id, modified })
      } else review.versions.push({ ...createVersion(review.id, modified), visible: modified + late })
    }
  }

  const exportRows = (
    from: number,
  ): ReadonlyArray<{ readonly id: number; readonly modified: number; readonly text: string }> => {
    const rows = reviews.flatMap(({ id, versions }) => {
      const version = versions.findLast(({ visible }) => visible <= now())
      return version === undefined || version.isDeleted || version.modified <= from ? [] : [{ id, ...version }]
    })
    const shuffled = traits.order === 'ties' ? rows.map((row) => ({ row, key: chance.next() })) : []
    switch (traits.order) {
      case 'ascending':
        return rows.sort((a, b) => a.modified - b.modified || a.id - b.id)
      case 'descending':
        return rows.sort((a, b) => b.modified - a.modified || b.id - a.id)
      case 'id':
        return rows
      case 'ties':
        return shuffled.sort((a, b) => a.row.modified - b.row.modified || a.key - b.key).map(({ row }) => row)
    }
  }
  const deletedRows = (from: number) =>
    deletions
      .filter(({ modified }) => modified > from)
      .sort((a, b) => a.modified - b.modified || a.id - b.id)
      .map(({ id, modified }) => ({ id, modified, text: `{"id":${id},"modifiedTime":"${toInstant(modified)}"}` }))

  const exportPage = (path: string, body: string, fault: ServiceFault | undefined): string => {
    const { modifiedTimeFrom, offset = 0, limit = 1000 } = JSON.parse(body)
    const from = Date.parse(modifiedTimeFrom)
    const rows = path === exportPath ? exportRows(from) : deletedRows(from)
    const most = Math.min(limit, traits.clamp)
    const filter = { modifiedTimeFrom, offset: fault === 'other offset' ? offset + 1 : offset, limit: most }
    const page = rows.slice(offset, offset + most).map(({ text }) => text)
    if (!isCalm && path === exportPath && churnLeft > 0 && chance.happens(traits.churn)) {
      churnLeft -= 1
      change(chance.pick(['change', 'change', 'delete', 'add', 'restore'] as const), chance.between(1, 3))
    }
    const answer = `{"reviews":[${page.join(',')}],"filter":${JSON.stringify(filter)}}`
    return fault === 'cut json' ? answer.slice(0, Math.floor(answer.length * chance.next())) : answer
  }

  const refusal = (code: number, message: string): string =>
    // Services have been seen to repeat what they were sent, and what they hold.
    JSON.stringify({ status: { code, message: `${message}: ${issuedTokens.at(-1)}, ${words.at(-1)}`, type: 'ERROR' } })
  const answer = (path: string, token: string, body: string): { status: number; body: string; headers?: object } => {
    if (path === tokenPath) {
      if (!body.includes(applicationSecret)) return { status: 401, body: refusal(401, 'wrong application') }
      const seconds = traits.tokenSeconds ?? 3600
      return { status: 200, body: JSON.stringify({ accessToken: issueToken(seconds), expiresIn: seconds }) }
    }
    const fault = armed.shift()
    if (fault === 'token expired' && staticToken === undefined) tokens.delete(token)
    if ((tokens.get(token) ?? 0) <= now()) return { status: 401, body: refusal(401, 'the token is not valid') }
    sendTimes = sendTimes.filter((time) => time > now() - 60_000)
    if (traits.requestsPerMinute !== undefined && sendTimes.length >= traits.requestsPerMinute) {
      const wait = Math.ceil(((sendTimes[0] ?? 0) + 60_000 - now()) / 1000)
      return { status: 429, body: refusal(429, 'too many'), headers: { 'Retry-After': String(wait) } }
    }
    sendTimes.push(now())
    const wait = fault === 'long wait' ? 900 : chance.pick([1, 7, 90, 500])
    switch (fault) {
      case '401':
      case '500':
      case '502':
        return { status: Number(fault), body: refusal(Number(fault), 'not now') }
      case '429':
      case '503':
        return {
          status: Number(fault),
          body: refusal(Number(fault), 'later'),
          headers: { 'Retry-After': String(wait) },
        }
      case '429 date': {
        const date = new Date(Math.floor((now() + traits.clockSkew) / 1000) * 1000 + wait * 1000).toUTCString()
        return { status: 429, body: refusal(429, 'later'), headers: { 'Retry-After': date } }
      }
      case 'html':
        return { status: 200, body: '<html>Maintenance</html>' }
      case 'application error':
        return { status: 200, body: refusal(500, 'internal') }
      default:
        return path === exportPath || path === deletedPath
          ? { status: 200, body: exportPage(path, body, fault) }
          : { status: 404, body: refusal(404, 'no such operation') }
    }
  }

  return {
    handle: (request, response) => {
      const parts: Buffer[] = []
      request.on('data', (part: Buffer) => parts.push(part))
      request.on('error', () => undefined)
      response.on('error', () => undefined)
      request.on('end', () => {
        const token = String(request.headers.accesstoken ?? '')
        const { status, body, headers = {} } = answer(request.url ?? '', token, Buffer.concat(parts).toString())
        response.writeHead(status, {
          Date: new Date(now() + traits.clockSkew).toUTCString(),
          'Content-Type': 'application/json',
          'Content-Length': Buffer.byteLength(body),
          ...headers,
        })
        response.end(body)
      })
    },
    arm: (fault, times) => void armed.push(...Array.from({ length: times }, () => fault)),
    armed: () => armed.length,
    calm: () => {
      armed = []
      isCalm = true
    },
    change,
    allowChurn: (pages) => {
      churnLeft = pages
    },
    truth: () => ({
      reviews: reviews
        .filter((review) => !newest(review).isDeleted)
        .map((review) => [String(review.id), newest(review).modified]),
      deleted: deletions.map(({ id, modified }) => `${id} ${modified}`),
    }),
    words: () => words,
    secrets: () => [applicationSecret, ...issuedTokens],
    credentials:
      staticToken === undefined
        ? { auth_type: 'application', application_id: 'app', application_secret: applicationSecret }
        : { auth_type: 'access_token', access_token: staticToken },
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
