import { type Api, type ApiError, type IssuedToken, routes, type TokenRequest } from '../../api'

/** An operation of the `Api`, or the list of entities that published deployments also have. */
export type OperationName = keyof Api | 'listEntities'

/** The names of the operations, as fault plans, grants and the request log use them. */
export const operationNames: ReadonlyArray<OperationName> = [
  ...(Object.keys(routes) as ReadonlyArray<keyof Api>),
  'listEntities',
]

export const isOperationName = (name: string): name is OperationName => operationNames.some((known) => known === name)

/** The operations that `exports` stands for in a fault plan. */
export const exportOperations: ReadonlyArray<OperationName> = ['exportReviews', 'exportDeletedReviews']

/** The request is invalid. */
export const badRequestError = (message: string): ApiError => ({ _tag: 'Http', status: 400, message })

/**
 * The token is missing or invalid: according to the specification, 400 for location sync and 401 for other operations.
 */
export const missingTokenError = (operation: OperationName, header: string): ApiError => ({
  _tag: 'Http',
  status: operation === 'syncLocations' ? 400 : 401,
  message: `the header ${header} holds no valid access token`,
})

/** The token does not permit the operation. */
export const permissionError: ApiError = {
  _tag: 'Http',
  status: 403,
  message: 'the token lacks permission for this data',
}

/** Too many requests; `retryAfter` is the wait in milliseconds. */
export const rateLimitError = (retryAfter: number): ApiError => ({
  _tag: 'Http',
  status: 429,
  message: 'request rate limit exceeded',
  retryAfter,
})

/** The body has more than `limit` bytes. */
export const bodySizeError = (limit: number): ApiError => ({
  _tag: 'Http',
  status: 413,
  message: `the body is longer than ${limit} bytes`,
})

/** The application id is unknown or its secret is wrong. */
export const credentialsError: ApiError = {
  _tag: 'Http',
  status: 401,
  message: 'unknown application, or a wrong secret',
}

/** The token has expired, reported the way published deployments do: an application error with status 200. */
export const expiredTokenError: ApiError = { _tag: 'Application', code: '401', message: 'Access token has expired' }

/** The request has more identifiers than the gateway accepts. */
export const identifierLimitError = (limit: number): ApiError => ({
  _tag: 'Http',
  status: 413,
  message: `more than ${limit} identifiers`,
})

/**
 * None of the requested entities exists: an application error with status 200. The specification does not name its
 * code.
 */
export const entityNotFoundError: ApiError = {
  _tag: 'Application',
  code: 'ENTITY_NOT_FOUND',
  message: 'Entity not found',
}

/** Issues tokens and knows which operations each token may call. */
export type TokenRegistry = {
  /** Valid until the service ends or the token is revoked. */
  readonly accessToken: string
  readonly applicationId: string
  readonly applicationSecret: string
  /** The operations that a token may call; undefined if the token is invalid. */
  readonly grantedOperations: (token: string | undefined) => ReadonlyArray<OperationName> | undefined
  /** The token was valid once and has expired. */
  readonly isExpired: (token: string | undefined) => boolean
  readonly revoke: (token: string | undefined) => void
  /** A new token for an application id and secret; undefined if they are wrong. */
  readonly issueToken: (request: TokenRequest) => IssuedToken | undefined
}

type TokenRegistryOptions = {
  /** Makes a random text for tokens and secrets. */
  readonly createText: () => string
  /** The clock for the expiry of tokens, in milliseconds. */
  readonly now: () => number
  /** Lifetime of an exchanged token in seconds. */
  readonly lifetimeSeconds: number
  /** Operations that the application's tokens may not call. */
  readonly denied: ReadonlyArray<OperationName>
  /** More tokens, each with the operations that it may call. */
  readonly granted: ReadonlyMap<string, ReadonlyArray<OperationName>>
}

export const createTokenRegistry = ({
  createText,
  now,
  lifetimeSeconds,
  denied,
  granted,
}: TokenRegistryOptions): TokenRegistry => {
  const [accessToken, applicationId, applicationSecret] = [
    createText(),
    `app-${createText().slice(0, 8)}`,
    createText(),
  ]
  const applicationOperations = operationNames.filter((operation) => !denied.includes(operation))
  const permanentTokens = new Map([...granted, [accessToken, applicationOperations] as const])
  const expiryTimes = new Map<string, number>()
  return {
    accessToken,
    applicationId,
    applicationSecret,
    grantedOperations: (token = '') =>
      permanentTokens.get(token) ?? ((expiryTimes.get(token) ?? 0) > now() ? applicationOperations : undefined),
    isExpired: (token = '') => (expiryTimes.get(token) ?? Number.POSITIVE_INFINITY) <= now(),
    revoke: (token = '') => {
      permanentTokens.delete(token)
      expiryTimes.delete(token)
    },
    issueToken: ({ appId, appSecret }) => {
      if (appId !== applicationId || appSecret !== applicationSecret) return undefined
      const token = createText()
      expiryTimes.set(token, now() + 1000 * lifetimeSeconds)
      return { accessToken: token, expiresIn: lifetimeSeconds }
    },
  }
}
