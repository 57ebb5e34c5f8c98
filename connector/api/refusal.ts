import type { ApiError } from './error'
import { maskMessage } from './quotable'
import { parseRetryAfter } from './retry-after'
import type { HttpResponse } from './transport'

/** Every text inside a value. */
export const collectTexts = (value: unknown): ReadonlyArray<string> =>
  typeof value === 'string'
    ? [value]
    : typeof value === 'object' && value !== null
      ? Object.values(value).flatMap(collectTexts)
      : []

/** What the documented error body says (Errors). */
const readErrorMessage = (body: Buffer, hidden: ReadonlyArray<string>): string => {
  try {
    const { status } = JSON.parse(body.subarray(0, 100_000).toString('utf8'))
    const text = [status.message, status.code].find((part) => typeof part === 'string' || typeof part === 'number')
    return maskMessage(String(text ?? ''), hidden)
  } catch {
    return ''
  }
}

/** An answer with an error status, or a redirect, as an error; `hidden`: secrets, and the texts we sent, which it may echo. */
export const toHttpError = (
  { status, headers, body }: HttpResponse,
  url: URL,
  now: number,
  hidden: ReadonlyArray<string>,
): ApiError & { _tag: 'Http' } => {
  if (status < 400) {
    const target = headers.location ?? ''
    const host = URL.canParse(target, url.href) ? new URL(target, url).origin : 'another address'
    return { _tag: 'Http', status, message: `base_url redirects to ${host}. Configure the address it redirects to` }
  }
  const wait = parseRetryAfter(status, headers, now)
  const message = readErrorMessage(body, hidden) || `the service answered ${status}`
  return { _tag: 'Http', status, message, ...(wait === undefined ? {} : { retryAfter: wait }) }
}
