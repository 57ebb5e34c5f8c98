import type { ApiError } from '../api/error'

/** The request is wrong (Errors, 400). */
export const badRequest = (message: string): ApiError => ({ _tag: 'Http', status: 400, message })
