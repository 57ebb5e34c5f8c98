import { expect, it, test } from 'vitest'
import { type ApiError, isRefusalInBody, maskMessage, outageKind, toFailure } from '../../connector/api/error'
import { configFailure, transientFailure } from '../../connector/cdk/failure'

it.each([
  ['limit must be between 1 and 1000', 'limit must be between 1 and 1000'],
  [
    "modifiedTimeFrom: expected the pattern yyyy-MM-dd'T'HH:mm:ss.SSS'Z'",
    "modifiedTimeFrom: expected the pattern yyyy-MM-dd'***'HH:mm:ss.SSS'***'",
  ],
  ['npi is missing in record 17', 'npi is missing in record 17'],
  ['Rosalind Quickwater wrote: "The nurse forgot me twice"', '***: "The ***"'],
  ['no such user rosalind.quickwater@example.org', 'no *** user ***'],
  ['call +1 415 555 2671, born 1950, id 9007199254740993', 'call +*** 1950, id ***'],
  ['Anna\nMüller-Lüdenscheidt\u0000 (Anna)', '***)'],
])('the message %j is masked to %j', (text, masked) => {
  expect(maskMessage(text)).toBe(masked)
})

it('a masked message has at most 200 characters', () => {
  expect(maskMessage('the limit '.repeat(100_000)).length).toBeLessThanOrEqual(200)
  expect(maskMessage('x '.repeat(100_000))).toBe('***')
})

it('a secret made of known words is masked', () => {
  expect(maskMessage('the token secret value is invalid', ['secret value'])).toBe('the token *** is invalid')
})

test.each<[string, string, 'limit' | 'outage' | undefined]>([
  ['429', 'no', 'limit'],
  ['RATE_LIMITED', 'no', 'limit'],
  ['7', 'Too *** requests', 'limit'],
  ['none', 'Request rate limit exceeded', 'limit'],
  ['503', 'no', 'outage'],
  ['HTTP_504', 'no', 'outage'],
  ['gateway-timeout', 'no', 'outage'],
  ['1', 'The service is temporarily unavailable.', 'outage'],
  ['5030', 'offset 503 is too deep', undefined],
  ['500', 'no such location', undefined],
  ['1', 'corporate limit', undefined],
])('an error inside a 200 with the code %s and the message %j: %s', (code, message, kind) => {
  const error: ApiError = { _tag: 'Application', code, message }
  expect([outageKind(error), isRefusalInBody(error)]).toEqual([kind, kind === undefined])
})

const network = (code: string): ApiError => ({ _tag: 'Network', code, message: 'm' })
const http = (status: number): ApiError => ({ _tag: 'Http', status, message: 'm' })
const application = (code: string): ApiError & { _tag: 'Application' } => ({ _tag: 'Application', code, message: 'm' })

test.each<[string, ApiError, 'Config' | 'Transient', RegExp]>([
  ['an unknown host', network('ENOTFOUND'), 'Transient', /\(ENOTFOUND\)\. Check base_url/],
  ['a reset', network('ECONNRESET'), 'Transient', /\(ECONNRESET\)\. Run again later/],
  ['a certificate', network('SELF_SIGNED_CERT_IN_CHAIN'), 'Config', /NODE_EXTRA_CA_CERTS/],
  [
    'http where the config says https',
    network('EPROTO'),
    'Config',
    /may be one for http, or .* only support TLS 1\.1 or older/,
  ],
  ['an old version of TLS', network('ERR_SSL_UNSUPPORTED_PROTOCOL'), 'Config', /only support TLS 1\.1 or older/],
  ['https where the config says http', network('HPE_INVALID_CONSTANT'), 'Config', /other than HTTP.*one for https/],
  ['too many headers', network('HPE_HEADER_OVERFLOW'), 'Config', /answered with more headers .*NODE_OPTIONS=/],
  ['broken gzip', network('Z_DATA_ERROR'), 'Transient', /answered with something that cannot be decompressed/],
  ['an answer too slow', network('ETIMEDOUT'), 'Transient', /did not answer completely in time \(ETIMEDOUT\)/],
  ['an answer cut short', network('ECUTSHORT'), 'Transient', /cut its answer short/],
  ['a proxy', { _tag: 'Proxy', code: '403', cause: configFailure('the proxy p:1') }, 'Config', /: the proxy p:1$/],
  [
    'a 200 without its rows',
    { ...application('200'), missing: '$.reviews' },
    'Transient',
    /answer reports success \(code 200\), but it has no \$\.reviews\./,
  ],
  ['a 200 with a message', application('200'), 'Transient', /but its status\.message is not "success"\./],
  ['another code', { ...application('E7'), missing: '$.reviews' }, 'Transient', /an application error \(code E7\)\./],
  ['a redirect', { ...http(301), message: 'base_url redirects to https://x' } as ApiError, 'Config', /redirects.*301/],
  ['a redirect to nowhere', { ...http(304), isStray: true } as ApiError, 'Transient', /answered 304\. Run again/],
  ['400', http(400), 'Config', /filters/],
  ['401', http(401), 'Config', /credentials/],
  ['403', http(403), 'Config', /permission/],
  ['404', http(404), 'Config', /base_url, which has no path \(404\)/],
  ['404 below a path', { ...http(404), basePath: '/a' } as ApiError, 'Config', /base_url, whose path is \/a \(404\)/],
  ['408', http(408), 'Transient', /408/],
  ['413', http(413), 'Transient', /413/],
  ['429', http(429), 'Transient', /429/],
  ['500', http(500), 'Transient', /500/],
  ['a wait too long', { _tag: 'Wait', wait: 900_000, limit: 600_000 }, 'Transient', /900 s.*max_wait_seconds \(600\)/],
  ['too large', { _tag: 'TooLarge', bytes: 65e6, limit: 64e6 }, 'Transient', /64 MB.*max_response_mb/],
  ['no token', { _tag: 'Token', cause: configFailure('check it') }, 'Config', /^check it$/],
  ['no shared limit', { _tag: 'RateLimiter', cause: transientFailure('start it') }, 'Transient', /^start it$/],
])('the failure for %s says who must act and what to do', (_, error, tag, message) => {
  const failure = toFailure('export reviews', error)
  expect(failure._tag).toBe(tag)
  expect(failure.message).toMatch(message)
  if (error._tag === 'Network' && /^(HPE_|Z_)/.test(error.code))
    expect(failure.message).not.toMatch(/did not answer|again/)
  if (error._tag !== 'Token' && error._tag !== 'RateLimiter') expect(failure.message).toMatch(/^export reviews: /)
})
