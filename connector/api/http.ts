import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { Option } from 'fp-ts/Option'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import type { Send } from './api'
import type { Clock } from './clock'
import { encodeRequest, type Request } from './encode'
import type { ApiError } from './error'
import { quotable } from './quotable'
import { refusal, texts } from './refusal'
import { isLimit, type Patience, retrying, retryPolicy, type Tried } from './retry'
import type { Answer, Route } from './route'
import type { Throttle } from './throttle'
import type { TokenSource } from './token'
import type { Response, Transport } from './transport'

/** What a run may want to tell about its requests. */
export type Observer = {
  /** An answer came; `millis` from sending to its last byte. */
  readonly onRequest?: (request: {
    readonly operation: string
    readonly status: number
    readonly millis: number
  }) => void
  /** A request will be sent again after `delay` milliseconds. */
  readonly onRetry?: (retry: { readonly operation: string; readonly error: ApiError; readonly delay: number }) => void
  /** The service makes us wait; `until` in milliseconds since 1970. */
  readonly onWait?: (until: number) => void
}

export type HttpDeps = {
  readonly baseUrl: URL
  readonly token: TokenSource
  readonly throttle: Throttle
  readonly transport: Transport
  readonly patience: Patience
  readonly clock: Clock
  /** Never to be seen in an error. */
  readonly secrets: ReadonlyArray<string>
  readonly observer: Observer
}

/** The service's clock when it began to answer: its Date less the time the answer took; unknown for a cached answer. */
const servedAt = ({ headers, millis }: Response): number | undefined => {
  const date = Date.parse(headers.date ?? '')
  return Number.isNaN(date) || Number(headers.age ?? 0) > 0 ? undefined : date - Math.ceil(millis)
}

const toAnswer = (response: Response): Answer => {
  const at = servedAt(response)
  const { body, release } = response
  return { body, ...(release === undefined ? {} : { release }), ...(at === undefined ? {} : { servedAt: at }) }
}

/**
 * Whether an answer may mean that the token expired: a 401 on the transparency operations (Authentication 4); what the
 * others answer then is not shown, so there any refusal does: a 401, and a 400 or 403 of a token that is no longer new.
 */
const isExpiry = (header: string, error: ApiError): boolean =>
  error._tag === 'Http' && (header === 'Access-Token' ? error.status === 401 : [400, 401, 403].includes(error.status))

/** A 401 speaks of the token alone, whatever its age. */
const minAge = (error: ApiError): number => (error._tag === 'Http' && error.status === 401 ? 0 : 60_000)

/** The service asked for more patience than we may have. */
const impatient =
  (limit: number) =>
  (error: ApiError): ApiError =>
    'retryAfter' in error && error.retryAfter !== undefined && error.retryAfter > limit
      ? { _tag: 'Wait', wait: error.retryAfter, limit }
      : error

/** An application error may repeat what we sent. */
const masked =
  (hidden: () => ReadonlyArray<string>) =>
  (error: ApiError): ApiError =>
    error._tag === 'Application' ? { ...error, message: quotable(error.message, hidden()) } : error

/** `Send` over HTTP: each try waits for the budget, is signed then, and is sent again as the policy has it. */
export const httpSend = (deps: HttpDeps): Send => {
  const { baseUrl, token, throttle, transport, patience, clock, secrets, observer } = deps
  const policy = retryPolicy(patience, clock.random)

  return <I, O>(route: Route<I, O>) => {
    const pause = ({ error, delay }: Tried): TaskEither<never, void> =>
      TE.fromTask(() => {
        observer.onRetry?.({ operation: route.name, error, delay })
        if (isLimit(error)) observer.onWait?.(clock.now() + delay)
        return clock.wait(delay)()
      })

    /** `hidden`: what an error may not repeat. */
    const exchange = (request: Request, hidden: () => ReadonlyArray<string>): TaskEither<ApiError, O> =>
      pipe(
        transport.exchange(request),
        TE.chainEitherK((response) => {
          const { status, millis } = response
          observer.onRequest?.({ operation: route.name, status, millis })
          return status >= 200 && status < 300
            ? E.mapLeft(masked(hidden))(route.response.decode(toAnswer(response)))
            : E.left(refusal(response, request.url, clock.now(), hidden()))
        }),
      )

    return (input: I) => {
      const request = encodeRequest(baseUrl)(route)(input)
      const sent = () => texts(route.request.encode(input)).filter((text) => text.length > 2)

      /** None: the token was refused, and a fresh one can be had. */
      const signed = (header: string, renewable: boolean): TaskEither<ApiError, Option<O>> =>
        pipe(
          token.get,
          TE.chain((value) =>
            pipe(
              exchange({ ...request, headers: { ...request.headers, [header]: value } }, () => [
                ...secrets,
                value,
                ...sent(),
              ]),
              TE.map(O.some),
              TE.orElse((error) =>
                renewable && isExpiry(header, error) && token.refused(value, minAge(error))
                  ? TE.right(O.none)
                  : TE.left(error),
              ),
            ),
          ),
        )

      const attempt = (renewable: boolean): TaskEither<ApiError, O> => {
        const header = route.token
        if (header === undefined) return throttle.through(exchange(request, sent))
        return pipe(
          TE.Do,
          TE.chainW(() => (token.ready() ? TE.right('') : throttle.through(token.get))),
          TE.chain(() => throttle.through(signed(header, renewable))),
          TE.chain(O.match(() => attempt(false), TE.right)),
        )
      }

      return pipe(attempt(true), TE.mapLeft(impatient(patience.maxWait)), retrying(policy(route.idempotent), pause))
    }
  }
}
