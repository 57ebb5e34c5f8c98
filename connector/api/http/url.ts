import * as E from 'fp-ts/Either'
import { configFailure, type Failure } from '../../cdk'

/** Whether a host is this machine: localhost, 127.0.0.0/8 or ::1. */
export const isLoopback = (hostname: string): boolean =>
  hostname === 'localhost' ||
  hostname.endsWith('.localhost') ||
  hostname === '[::1]' ||
  /^127\.\d+\.\d+\.\d+$/.test(hostname)

/** The URL under the config key `name`: https, unless its host is loopback or `allow_http` is set; without user or password. */
export const checkUrl = (name: string, url: string, allowHttp: boolean): E.Either<Failure, URL> => {
  const parsed = URL.canParse(url.trim()) ? new URL(url.trim()) : undefined
  const wrong = (what: string) => E.left(configFailure(`${name} ${what}`))
  if (parsed === undefined) return wrong('is not a URL. Give one such as https://feedback.example.com.')
  if (parsed.username !== '' || parsed.password !== '')
    return wrong('holds a user name or a password. Take them out and use credentials.')
  if (parsed.hash !== '') return wrong(`ends in "${parsed.hash}". Take everything from # on out.`)
  if (parsed.protocol === 'https:') return E.right(parsed)
  if (parsed.protocol !== 'http:') return wrong(`starts with ${parsed.protocol}//. Use https://.`)
  return allowHttp || isLoopback(parsed.hostname)
    ? E.right(parsed)
    : wrong(
        `is http, which would send the token readable to everyone between. Use https://${parsed.host}, or set allow_http to true for a service inside your own network.`,
      )
}

/** The URL under `rate_limit.redis_url`; it may hold a password, so no message repeats it. */
export const checkRedisUrl = (url: string): E.Either<Failure, string> =>
  URL.canParse(url) && ['redis:', 'rediss:'].includes(new URL(url).protocol)
    ? E.right(url)
    : E.left(configFailure('rate_limit.redis_url is no Redis URL. Give one such as redis://:password@host:6379.'))
