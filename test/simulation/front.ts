import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Chance } from './random'

/** How every simulated service treats requests; times in milliseconds. */
export type FrontTraits = {
  /** How far `Date` is ahead of the clock that stamps rows; undefined: the header is missing. */
  readonly clockSkew: number | undefined
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
/** `rows unnamed`: an answer to written records that leaves some out. */
export type ServiceFault =
  | (typeof serviceFaults)[number]
  | '401 in 200'
  | 'endless wait'
  | 'empty page'
  | 'empty page with an error'
  | 'rows unnamed'

export type ServiceRequest = { readonly method: string; readonly path: string; readonly body: string }
export type ServiceAnswer = { readonly status: number; readonly body: string; readonly headers?: object }

/** The part of a service that all its operations share: tokens, the rate, and what goes wrong. */
export type ServiceFront = {
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void
  /** Answers so the next few times. */
  readonly arm: (fault: ServiceFault, times: number) => void
  /** How many answers are still to be wrong, and how many were. */
  readonly armed: () => number
  readonly faults: () => number
  /** Answers as it should from now on. */
  readonly calm: () => void
  readonly isCalm: () => boolean
  readonly secrets: () => ReadonlyArray<string>
  readonly credentials: object
  /** The body of a refusal. */
  readonly refuse: (code: number, message: string) => string
}

const tokenPath = '/api/service/v1/token/create'

/**
 * `respond` answers an operation; undefined: the operation does not exist. `fault`: a fault that the operation itself
 * must show. `takeUnanswered` receives a request before another answer replaces its own, since it may have taken
 * effect.
 */
export const createFront = (
  traits: FrontTraits,
  now: () => number,
  chance: Chance,
  {
    words,
    respond,
    takeUnanswered = () => undefined,
  }: {
    /** Texts of patients; refusals quote the last. */
    readonly words: ReadonlyArray<string>
    readonly respond: (request: ServiceRequest, fault: ServiceFault | undefined) => ServiceAnswer | undefined
    readonly takeUnanswered?: (request: ServiceRequest) => void
  },
): ServiceFront => {
  const applicationSecret = `secret-${chance.next()}`
  const tokens = new Map<string, number>()
  const issuedTokens: string[] = []
  let armed: ServiceFault[] = []
  let sendTimes: number[] = []
  let faults = 0
  let isCalm = false

  const issueToken = (seconds: number): string => {
    const token = `token-${chance.next()}`
    tokens.set(token, now() + seconds * 1000)
    issuedTokens.push(token)
    return token
  }
  const staticToken = traits.tokenSeconds === undefined ? issueToken(1e9) : undefined

  const refuse = (code: number, message: string): string =>
    // Services have been seen to repeat what they were sent, and what they hold.
    JSON.stringify({ status: { code, message: `${message}: ${issuedTokens.at(-1)}, ${words.at(-1)}`, type: 'ERROR' } })
  const refusal = (status: number, message: string, headers: object = {}): ServiceAnswer => ({
    status,
    body: refuse(status, message),
    headers,
  })
  const cut = (text: string): string => text.slice(0, Math.floor(text.length * chance.next()))
  const answer = (request: ServiceRequest, token: string): ServiceAnswer => {
    if (request.path === tokenPath) {
      if (!request.body.includes(applicationSecret)) return refusal(401, 'wrong application')
      const seconds = traits.tokenSeconds ?? 3600
      return { status: 200, body: JSON.stringify({ accessToken: issueToken(seconds), expiresIn: seconds }) }
    }
    const drawn = armed.shift()
    if (drawn !== undefined) faults += 1
    const fault = drawn === '429 date' && traits.clockSkew === undefined ? '429' : drawn
    if (fault === 'token expired' && staticToken === undefined) tokens.delete(token)
    if ((tokens.get(token) ?? 0) <= now()) return refusal(401, 'the token is not valid')
    sendTimes = sendTimes.filter((time) => time > now() - 60_000)
    if (traits.requestsPerMinute !== undefined && sendTimes.length >= traits.requestsPerMinute) {
      const wait = Math.ceil(((sendTimes[0] ?? 0) + 60_000 - now()) / 1000)
      return refusal(429, 'too many', { 'Retry-After': String(wait) })
    }
    sendTimes.push(now())
    const later = (status: number, retryAfter: string): ServiceAnswer =>
      refusal(status, 'later', { 'Retry-After': retryAfter })
    const wait = chance.pick([1, 7, 90, 500])
    switch (fault) {
      case '500':
      case '502':
      case '401':
        // Refused for its token, a request has no effect.
        if (fault !== '401') takeUnanswered(request)
        return refusal(Number(fault), 'not now')
      case '401 in 200':
        return { status: 200, body: refuse(401, 'UNAUTHORIZED') }
      case '429':
      case '503':
        return later(Number(fault), String(wait))
      case '429 date': {
        const time = Math.floor((now() + (traits.clockSkew ?? 0)) / 1000) * 1000 + wait * 1000
        return later(429, new Date(time).toUTCString())
      }
      case 'long wait':
        return later(429, '900')
      case 'endless wait':
        return later(429, chance.pick(['Infinity', '99999999999', 'Fri, 31 Dec 9999 23:59:59 GMT']))
      case 'html':
        takeUnanswered(request)
        return { status: 200, body: '<html>Maintenance</html>' }
      case 'application error':
        takeUnanswered(request)
        return { status: 200, body: refuse(500, 'internal') }
      default: {
        const right = respond(request, fault) ?? refusal(404, 'no such operation')
        return fault === 'cut json' && right.status === 200 ? { ...right, body: cut(right.body) } : right
      }
    }
  }

  return {
    handle: (request, response) => {
      const parts: Buffer[] = []
      request.on('data', (part: Buffer) => parts.push(part))
      request.on('error', () => undefined)
      response.on('error', () => undefined)
      request.on('end', () => {
        const { accesstoken, 'access-token': other } = request.headers
        const { status, body, headers } = answer(
          { method: request.method ?? '', path: request.url ?? '', body: Buffer.concat(parts).toString() },
          String(accesstoken ?? other ?? ''),
        )
        response.sendDate = false
        response.writeHead(status, {
          ...(traits.clockSkew === undefined ? {} : { Date: new Date(now() + traits.clockSkew).toUTCString() }),
          'Content-Type': 'application/json',
          'Content-Length': Buffer.byteLength(body),
          ...headers,
        })
        response.end(body)
      })
    },
    arm: (fault, times) => void armed.push(...Array.from({ length: times }, () => fault)),
    armed: () => armed.length,
    faults: () => faults,
    calm: () => {
      armed = []
      isCalm = true
    },
    isCalm: () => isCalm,
    secrets: () => [applicationSecret, ...issuedTokens],
    credentials:
      staticToken === undefined
        ? { auth_type: 'application', application_id: 'app', application_secret: applicationSecret }
        : { auth_type: 'access_token', access_token: staticToken },
    refuse,
  }
}
