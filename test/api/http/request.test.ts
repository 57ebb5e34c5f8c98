import * as E from 'fp-ts/Either'
import { afterAll, describe, expect, test } from 'vitest'
import { parseHeaderDate } from '../../../connector/api/http/retry-after'
import { checkRedisUrl, checkUrl } from '../../../connector/api/http/url'

test.each([
  ['https://feedback.example.com', false],
  ['https://feedback.example.com:8443/root/', false],
  [' https://feedback.example.com\n', false],
  ['http://localhost:8080', false],
  ['http://api.localhost', false],
  ['http://127.0.0.1:8080/x', false],
  ['http://127.1.2.3', false],
  ['http://[::1]:80', false],
  ['http://feedback.internal', true],
])('%o is accepted (allow_http: %s)', (url, allowHttp) => {
  expect(E.isRight(checkUrl('base_url', url, allowHttp))).toBe(true)
})

test.each([
  ['', /^base_url is not a URL/],
  ['feedback.example.com', /^base_url is not a URL/],
  ['http://feedback.example.com', /^base_url is http.*allow_http/],
  ['http://127.0.0.1.example.com', /^base_url is http/],
  ['http://localhost.example.com', /^base_url is http/],
  ['http://10.0.0.1', /^base_url is http/],
  ['ftp://feedback.example.com', /^base_url starts with ftp:/],
  ['file:///etc/passwd', /^base_url starts with file:/],
  ['https://ann:hunter2@feedback.example.com', /^base_url holds a user name or a password/],
  ['https://feedback.example.com/#part', /^base_url ends in "#part"/],
  ['https://feedback.example.com/gateway?tenant=a', /^base_url has a query/],
])('%o is refused with a message that says what to do', (url, message) => {
  const result = checkUrl('base_url', url, false)
  expect(result).toMatchObject({ left: { _tag: 'Config', message: expect.stringMatching(message) } })
  expect(JSON.stringify(result)).not.toContain('hunter2')
})

test('allow_http allows http and no other scheme', () => {
  expect(E.isLeft(checkUrl('token_url', 'ftp://feedback.internal', true))).toBe(true)
})

test('a Redis URL starts with redis: or rediss:, and no message repeats it', () => {
  for (const url of ['redis://127.0.0.1:6379', 'rediss://:hunter2@cache.internal:6380/1'])
    expect(checkRedisUrl(url)).toEqual(E.right(url))
  for (const url of ['hunter2@cache', 'http://:hunter2@cache'])
    expect(checkRedisUrl(url)).toMatchObject({
      left: { _tag: 'Config', message: expect.not.stringContaining('hunter2') },
    })
})

describe('a date in a header is in GMT where it names no zone, whatever the zone of the machine', () => {
  const zone = process.env.TZ
  afterAll(() => {
    if (zone === undefined) delete process.env.TZ
    else process.env.TZ = zone
  })
  for (const machine of ['UTC', 'America/New_York', 'Asia/Kolkata'])
    test.each([
      'Sun, 06 Nov 1994 08:49:37 GMT',
      'Sunday, 06-Nov-94 08:49:37 GMT',
      'Sun Nov  6 08:49:37 1994',
      'Sun, 06 Nov 1994 08:49:37',
      '1994-11-06T08:49:37Z',
      '1994-11-06T08:49:37',
      '1994-11-06 08:49:37',
      '1994-11-06T03:49:37-05:00',
    ])(`${machine}: %s`, (text) => {
      process.env.TZ = machine
      expect(parseHeaderDate(text)).toBe(Date.UTC(1994, 10, 6, 8, 49, 37))
    })
  test.each([undefined, '', 'soon'])('%j is none', (text) => expect(parseHeaderDate(text)).toBeNaN())
})
