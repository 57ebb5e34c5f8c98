import * as E from 'fp-ts/Either'
import { configFailure, type Failure } from '../../cdk'

/** Whether a host is this machine: localhost or a name under it, 127.0.0.0/8 or ::1. */
export const isLoopback = (hostname: string): boolean =>
  hostname === 'localhost' ||
  hostname.endsWith('.localhost') ||
  hostname === '[::1]' ||
  /^127\.\d+\.\d+\.\d+$/.test(hostname)

/**
 * The URL of the config key `name`. It must be https, unless its host is this machine or `allow_http` is set, and
 * without user name and password.
 */
export const checkUrl = (name: string, url: string, allowHttp: boolean): E.Either<Failure, URL> => {
  const parsed = URL.canParse(url.trim()) ? new URL(url.trim()) : undefined
  const invalid = (problem: string) => E.left(configFailure(`${name} ${problem}`))
  if (parsed === undefined) return invalid('is not a URL. Give one such as https://feedback.example.com.')
  if (parsed.username !== '' || parsed.password !== '')
    return invalid('holds a user name or a password. Take them out and use credentials.')
  if (parsed.hash !== '') return invalid(`ends in "${parsed.hash}". Take everything from # on out.`)
  if (parsed.search !== '' && name === 'base_url')
    return invalid('has a query. Take everything from ? on out: an operation has a path and a query of its own.')
  if (parsed.protocol === 'https:') return E.right(parsed)
  if (parsed.protocol !== 'http:') return invalid(`starts with ${parsed.protocol}//. Use https://.`)
  return allowHttp || isLoopback(parsed.hostname)
    ? E.right(parsed)
    : invalid(
        `is http, which sends the token unencrypted. Use https://${parsed.host}, ` +
          'or set allow_http to true for a service inside your own network.',
      )
}

/** The URL of the config key `rate_limit.redis_url`. No message repeats it, since it may hold a password. */
export const checkRedisUrl = (url: string): E.Either<Failure, string> =>
  URL.canParse(url) && ['redis:', 'rediss:'].includes(new URL(url).protocol)
    ? E.right(url)
    : E.left(configFailure('rate_limit.redis_url is no Redis URL. Give one such as redis://:password@host:6379.'))
