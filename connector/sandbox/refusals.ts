import type { ApiError } from '../api/error'
import type { OperationName } from './operations'

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
