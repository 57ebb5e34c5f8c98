import { printExactJson } from '../../cdk'
import type { Route } from '../route'

/** A request with its URL, headers and body. */
export type HttpRequest = {
  readonly method: 'GET' | 'POST'
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer
}

/** Response headers by lower-case name. */
export type ResponseHeaders = Readonly<Record<string, string | undefined>>

/** A list becomes a repeated key; null and undefined are left out. */
const encodePairs = (value: unknown): URLSearchParams =>
  new URLSearchParams(
    Object.entries(Object(value) as Record<string, unknown>).flatMap(([key, member]) =>
      (Array.isArray(member) ? member : [member])
        .filter((item) => item !== undefined && item !== null)
        .map((item): [string, string] => [key, String(item)]),
    ),
  )

export const encodeJson = (value: unknown): Required<Pick<HttpRequest, 'headers' | 'body'>> => ({
  headers: { 'Content-Type': 'application/json' },
  body: Buffer.from(printExactJson(value)),
})

export const encodeForm = (value: unknown): Required<Pick<HttpRequest, 'headers' | 'body'>> => ({
  headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
  body: Buffer.from(encodePairs(value).toString()),
})

/**
 * The request of an operation. The operation's path is appended to that of `baseUrl`, so it cannot name another host.
 */
export const encodeRequest =
  (baseUrl: URL) =>
  <I, O>(route: Route<I, O>) =>
  (input: I): HttpRequest => {
    const url = new URL(baseUrl)
    url.pathname = `${baseUrl.pathname.replace(/\/+$/, '')}${route.path}`
    const value = route.request.encode(input)
    const { method } = route
    switch (route.encoding) {
      case 'json':
        return { method, url, ...encodeJson(value) }
      case 'form':
        return { method, url, ...encodeForm(value) }
      case 'query':
        url.search = encodePairs(value).toString()
        return { method, url, headers: {} }
    }
  }
