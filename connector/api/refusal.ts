import type { ApiError } from './error'
import { quotable } from './quotable'
import { retryAfter } from './retry-after'
import type { Response } from './transport'

/** Every text inside a value. */
export const texts = (value: unknown): ReadonlyArray<string> =>
  typeof value === 'string'
    ? [value]
    : typeof value === 'object' && value !== null
      ? Object.values(value).flatMap(texts)
      : []

/** What the documented error body says (Errors). */
const said = (body: Buffer, hidden: ReadonlyArray<string>): string => {
  try {
    const { status } = JSON.parse(body.subarray(0, 100_000).toString('utf8'))
    const text = [status.message, status.code].find((part) => typeof part === 'string' || typeof part === 'number')
    return quotable(String(text ?? ''), hidden)
  } catch {
    return ''
  }
}

/** An answer with an error status, or a redirect, as an error; `hidden`: secrets, and the texts we sent, which it may echo. */
export const refusal = (
  { status, headers, body }: Response,
  url: URL,
  now: number,
  hidden: ReadonlyArray<string>,
): ApiError & { _tag: 'Http' } => {
  if (status < 400) {
    const target = headers.location ?? ''
    const host = URL.canParse(target, url.href) ? new URL(target, url).origin : 'another address'
    return { _tag: 'Http', status, message: `base_url redirects to ${host}. Configure the address it redirects to` }
  }
  const wait = retryAfter(status, headers, now)
  const message = said(body, hidden) || `the service answered ${status}`
  return { _tag: 'Http', status, message, ...(wait === undefined ? {} : { retryAfter: wait }) }
}
