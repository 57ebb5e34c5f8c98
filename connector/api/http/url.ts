import * as E from 'fp-ts/Either'
import { configFailure, type Failure } from '../../cdk'

/** True if a host is this machine: localhost or a name below it, 127.0.0.0/8 or ::1. */
export const isLoopback = (hostname: string): boolean =>
  hostname === 'localhost' ||
  hostname.endsWith('.localhost') ||
  hostname === '[::1]' ||
  /^127\.\d+\.\d+\.\d+$/.test(hostname)

/**
 * The URL in the config key `name`. It must use https, unless its host is this machine or `allow_http` is set, and must
 * not contain a user name or password.
 */
export const checkUrl = (name: string, url: string, allowHttp: boolean): E.Either<Failure, URL> => {
  const parsed = URL.canParse(url.trim()) ? new URL(url.trim()) : undefined
  const invalid = (problem: string) => E.left(configFailure(`${name} ${problem}`))
  if (parsed === undefined) return invalid('is not a URL. Give one such as https://feedback.example.com.')
  if (parsed.username !== '' || parsed.password !== '')
    return invalid('holds a user name or a password. Remove them and use credentials.')
  if (parsed.hash !== '') return invalid(`ends in "${parsed.hash}". Remove everything from # on.`)
  if (parsed.search !== '' && name === 'base_url')
    return invalid('has a query. Remove everything from ? on: each operation has its own path and query.')
  if (parsed.protocol === 'https:') return E.right(parsed)
  if (parsed.protocol !== 'http:') return invalid(`starts with ${parsed.protocol}//. Use https://.`)
  return allowHttp || isLoopback(parsed.hostname)
    ? E.right(parsed)
    : invalid(
        `is http, which sends the token unencrypted. Use https://${parsed.host}, ` +
          'or set allow_http to true for a service inside your own network.',
      )
}

/** The URL in the config key `rate_limit.redis_url`. Messages do not repeat it, because it may hold a password. */
export const checkRedisUrl = (url: string): E.Either<Failure, string> =>
  URL.canParse(url) && ['redis:', 'rediss:'].includes(new URL(url).protocol)
    ? E.right(url)
    : E.left(configFailure('rate_limit.redis_url is no Redis URL. Give one such as redis://:password@host:6379.'))
