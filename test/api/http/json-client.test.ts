import type { ServerResponse } from 'node:http'
import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createJsonClient, type JsonClientOptions } from '../../../connector/api/http/json-client'
import { Int64 } from '../../../connector/cdk/scalar'
import { type Reply, sendJson, startServer } from '../../support/listen'

const Page = t.type({ items: t.readonlyArray(t.type({ id: Int64 })) })

const startApi = async (reply: Reply, options: Partial<JsonClientOptions> = {}) => {
  const server = await startServer(reply)
  const client = createJsonClient({
    base_url: `${server.url}/api/`,
    headers: { Authorization: 'Bearer abcdef-123456 ' },
    ...options,
  })
  onTestFinished(client.close)
  return { ...server, client }
}

describe('createJsonClient', () => {
  it('sends the headers and the query, and keeps all digits of the answer', async () => {
    const { client, seen } = await startApi((_, response) =>
      sendJson(response, 200, '{"items":[{"id":9007199254740993}]}'),
    )
    const answer = await client.get('/items', { after: 'a&b', ids: [1, 2], none: null, missing: undefined }, Page)()
    expect(answer).toEqual(E.right({ items: [{ id: 9007199254740993n }] }))
    expect(seen).toMatchObject([
      {
        method: 'GET',
        url: '/api/items?after=a%26b&ids=1&ids=2',
        headers: { authorization: 'Bearer abcdef-123456', accept: 'application/json' },
      },
    ])
  })

  it('posts JSON; an answer without content is undefined', async () => {
    const { client, seen } = await startApi((_, response) => response.writeHead(204).end())
    expect(await client.post('items', { id: 9007199254740993n }, t.undefined)()).toEqual(E.right(undefined))
    expect(seen).toMatchObject([
      { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"id":9007199254740993}' },
    ])
  })

  it.each([429, 503])('sends a GET again after %s', async (status) => {
    const { client, seen } = await startApi((_, response, count) =>
      count === 1 ? sendJson(response, status, {}, { 'Retry-After': '0' }) : sendJson(response, 200, { items: [] }),
    )
    expect(await client.get('items', {}, Page)()).toEqual(E.right({ items: [] }))
    expect(seen).toHaveLength(2)
  })

  it('sends a POST again only if it is idempotent', async () => {
    const { client, seen } = await startApi((_, response, count) =>
      count < 3 ? sendJson(response, 503) : sendJson(response, 200, { items: [] }),
    )
    expect(await client.post('items', {}, Page)()).toMatchObject({ left: { _tag: 'Transient' } })
    expect(seen).toHaveLength(1)
    expect(await client.post('items', {}, Page, { idempotent: true })()).toEqual(E.right({ items: [] }))
    expect(seen).toHaveLength(3)
  })

  it.each([
    [400, 'Config', 'items: the API refuses the request (400). Check the config.'],
    [401, 'Config', 'items: the API refuses the credentials (401). Check them in the config.'],
    [403, 'Config', 'items: the API refuses access (403). Ask its operator for the permission.'],
    [404, 'Config', 'items: the API has no such address (404). Check base_url.'],
    [500, 'Transient', 'items: the service answered 500. Run again later.'],
  ])('says who must act after %s', async (status, _tag, message) => {
    const { client } = await startApi((_, response) => sendJson(response, status, 'Bearer abcdef-123456'), {
      attempts: 1,
    })
    const answer = await client.get('items', {}, Page)()
    expect(answer).toMatchObject({ _tag: 'Left', left: { _tag, message } })
    expect(JSON.stringify(answer)).not.toContain('abcdef-123456')
  })

  it('repeats no header that a server puts into its error', async () => {
    const { client } = await startApi((_, response) =>
      sendJson(response, 403, { status: { message: 'token abcdef-123456 is not allowed' } }),
    )
    expect(JSON.stringify(await client.get('items', {}, Page)())).not.toMatch(/abcdef|123456/)
  })

  it('names what is missing in an answer, after it has asked again', async () => {
    const { client, seen } = await startApi((_, response) => sendJson(response, 200, { items: [{ id: 'x' }] }))
    expect(await client.get('items', {}, Page)()).toMatchObject({
      left: { _tag: 'Transient', message: expect.stringContaining('$.items.0.id') },
    })
    expect(seen).toHaveLength(3)
  })

  it('refuses an answer that is too long', async () => {
    const { client } = await startApi((_, response) => sendJson(response, 200, `"${'x'.repeat(1_100_000)}"`), {
      max_response_mb: 1,
    })
    expect(await client.get('items', {}, t.string)()).toMatchObject({
      left: { message: expect.stringContaining('raise max_response_mb') },
    })
  })

  it('sends no more at once than max_concurrency says', async () => {
    let open: ServerResponse[] = []
    let most = 0
    const { client } = await startApi(
      (_, response) => {
        open.push(response)
        most = Math.max(most, open.length)
        if (open.length !== 2) return
        // Time for a third request, which the limit keeps back.
        setTimeout(() => {
          const answered = open
          open = []
          for (const each of answered) sendJson(each, 200, { items: [] })
        }, 50)
      },
      { rate_limit: { max_concurrency: 2 } },
    )
    const answers = await Promise.all(Array.from({ length: 10 }, () => client.get('items', {}, Page)()))
    expect(answers.filter(E.isRight)).toHaveLength(10)
    expect(most).toBe(2)
  })

  it('is closed by its signal', async () => {
    const stop = new AbortController()
    const { client } = await startApi(() => stop.abort(), { stop: stop.signal })
    expect(await client.get('items', {}, Page)()).toMatchObject({ _tag: 'Left' })
  })

  it.each<[string, Partial<JsonClientOptions>, string]>([
    ['an address without TLS', { base_url: 'http://api.example.com' }, 'base_url is http'],
    ['no address', { base_url: 'example' }, 'base_url is not a URL'],
    ['a header of two lines', { headers: { Authorization: 'Bearer a\nb' } }, 'The header Authorization'],
    ['an empty header', { headers: { 'X-Key': ' ' } }, 'The header X-Key'],
  ])('refuses %s with each request', async (_, options, message) => {
    const { client, seen } = await startApi((_, response) => sendJson(response, 200, {}), options)
    expect(await client.get('items', {}, Page)()).toMatchObject({
      left: { _tag: 'Config', message: expect.stringContaining(message) },
    })
    expect(seen).toEqual([])
  })
})
