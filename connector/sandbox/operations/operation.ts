import { type Api, type ApiError, type IssuedToken, routes, type TokenRequest } from '../../api'

export type OperationName = keyof Api

/** The operations by name, as plans, grants, the log and the counts call them. */
export const operationNames = Object.keys(routes) as ReadonlyArray<OperationName>

export const isOperationName = (name: string): name is OperationName => operationNames.some((known) => known === name)

/** What `exports` stands for in a plan. */
export const exportOperations: ReadonlyArray<OperationName> = ['exportReviews', 'exportDeletedReviews']

/** The request is wrong (Errors, 400). */
export const badRequestError = (message: string): ApiError => ({ _tag: 'Http', status: 400, message })

/** No token, or one that is not valid: 400 on location sync, 401 elsewhere (Authentication 4). */
export const missingTokenError = (operation: OperationName, header: string): ApiError => ({
  _tag: 'Http',
  status: operation === 'syncLocations' ? 400 : 401,
  message: `the header ${header} holds no valid access token`,
})

/** The token does not permit the operation (Errors, 403). */
export const permissionError: ApiError = {
  _tag: 'Http',
  status: 403,
  message: 'the token lacks permission for this data',
}

/** Too many requests (Errors, 429); milliseconds to wait. */
export const rateLimitError = (retryAfter: number): ApiError => ({
  _tag: 'Http',
  status: 429,
  message: 'request rate limit exceeded',
  retryAfter,
})

/** The body is longer than anything we read. */
export const bodySizeError = (limit: number): ApiError => ({
  _tag: 'Http',
  status: 413,
  message: `the body is longer than ${limit} bytes`,
})

/** The application is unknown, or its secret is wrong. */
export const credentialsError: ApiError = {
  _tag: 'Http',
  status: 401,
  message: 'unknown application, or a wrong secret',
}

/** More identifiers than the gateway lets pass (Errors, 413). */
export const identifierLimitError = (limit: number): ApiError => ({
  _tag: 'Http',
  status: 413,
  message: `more than ${limit} identifiers`,
})

/** Nothing of what was asked for exists: an application error inside a 200; its code is not shown anywhere. */
export const entityNotFoundError: ApiError = {
  _tag: 'Application',
  code: 'ENTITY_NOT_FOUND',
  message: 'Entity not found',
}

/** Who may have a token, and what tokens may be used for. */
export type TokenRegistry = {
  /** Valid until the service ends, unless revoked. */
  readonly accessToken: string
  readonly applicationId: string
  readonly applicationSecret: string
  /** The operations a token may call; undefined: it is not valid. */
  readonly grantedOperations: (token: string | undefined) => ReadonlyArray<OperationName> | undefined
  readonly revoke: (token: string | undefined) => void
  /** The answer to an exchange; undefined if the pair is wrong. */
  readonly issueToken: (pair: TokenRequest) => IssuedToken | undefined
}

export type TokenRegistryOptions = {
  /** Makes a text that nobody can guess. */
  readonly createText: () => string
  readonly now: () => number
  /** Seconds that an exchanged token lives. */
  readonly lifetimeSeconds: number
  /** Operations that the tokens of the application may not call. */
  readonly denied: ReadonlyArray<OperationName>
  /** Further tokens, with the operations they may call. */
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
  const own = operationNames.filter((operation) => !denied.includes(operation))
  const endless = new Map([...granted, [accessToken, own] as const])
  const issued = new Map<string, number>()
  return {
    accessToken,
    applicationId,
    applicationSecret,
    grantedOperations: (token = '') => endless.get(token) ?? ((issued.get(token) ?? 0) > now() ? own : undefined),
    revoke: (token = '') => {
      endless.delete(token)
      issued.delete(token)
    },
    issueToken: (pair) => {
      if (pair.applicationId !== applicationId || pair.applicationSecret !== applicationSecret) return undefined
      const token = createText()
      issued.set(token, now() + 1000 * lifetimeSeconds)
      return { accessToken: token, expiresIn: lifetimeSeconds }
    },
  }
}
