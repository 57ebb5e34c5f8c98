import { printJson } from './json-text'
import type { Route } from './route'

/** A request as it goes over the wire. */
export type Request = {
  readonly method: 'GET' | 'POST'
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer
}

/** Arrays as repeated keys; what is null or undefined is not sent. */
const pairs = (value: unknown): URLSearchParams =>
  new URLSearchParams(
    Object.entries(Object(value) as Record<string, unknown>).flatMap(([key, field]) =>
      (Array.isArray(field) ? field : [field])
        .filter((item) => item !== undefined && item !== null)
        .map((item): [string, string] => [key, String(item)]),
    ),
  )

export const jsonBody = (value: unknown): Required<Pick<Request, 'headers' | 'body'>> => ({
  headers: { 'Content-Type': 'application/json' },
  body: Buffer.from(printJson(value)),
})

export const formBody = (value: unknown): Required<Pick<Request, 'headers' | 'body'>> => ({
  headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
  body: Buffer.from(pairs(value).toString()),
})

/** The request of an operation; its path is appended to the path of `baseUrl`, whose host it can never leave. */
export const encodeRequest =
  (baseUrl: URL) =>
  <I, O>(route: Route<I, O>) =>
  (input: I): Request => {
    const url = new URL(baseUrl)
    url.pathname = `${baseUrl.pathname.replace(/\/+$/, '')}${route.path}`
    const value = route.request.encode(input)
    const { method } = route
    switch (route.send) {
      case 'json':
        return { method, url, ...jsonBody(value) }
      case 'form':
        return { method, url, ...formBody(value) }
      case 'query':
        url.search = pairs(value).toString()
        return { method, url, headers: {} }
    }
  }
