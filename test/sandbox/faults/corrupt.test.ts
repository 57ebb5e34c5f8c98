import net from 'node:net'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { decodeFaultPlan, type FaultRule, parseFaultList, scheduleFaults } from '../../../connector/sandbox/faults/plan'
import { createLatency } from '../../../connector/sandbox/server/server'
import { epochTime, getPath, operationPaths, postJson, readJsonAnswer, startSmallSandbox } from '../../support/sandbox'

const decodePlan = (...rules: ReadonlyArray<object>): ReadonlyArray<FaultRule> => {
  const read = decodeFaultPlan(rules)
  if (E.isLeft(read)) throw new Error(read.left)
  return read.right
}

type Page = {
  readonly reviews: ReadonlyArray<Record<string, unknown>>
  readonly filter: { readonly offset: number; readonly limit: number }
}
const page = { modifiedTimeFrom: epochTime, offset: 0, limit: 3 }

/** Starts a sandbox whose first request has the fault. */
const startWithFault = async (rule: object) => {
  const now = () => Date.parse('2026-07-01T00:00:00Z')
  const sandbox = await startSmallSandbox({ faults: decodePlan({ requests: [1], ...rule }), now })
  return { sandbox, requestPage: (body: object = page) => postJson(sandbox, operationPaths.exportReviews, body) }
}

describe('a fault of the first request', () => {
  it.each(['400', '401', '403', '413', '429'])('%s is answered once with Retry-After', async (kind) => {
    const { requestPage } = await startWithFault({ kind, retry_after: 7 })
    const answer = await requestPage()
    expect([answer.status, answer.headers.get('Retry-After')]).toEqual([Number(kind), '7'])
    expect(await readJsonAnswer(answer)).toMatchObject({ status: { code: Number(kind) } })
    expect((await requestPage()).status).toBe(200)
  })

  it.each(['500', '502', '503', '504'])('%s is answered once with an HTML page', async (kind) => {
    const { requestPage } = await startWithFault({ kind })
    const answer = await requestPage()
    expect([answer.status, answer.headers.get('Content-Type')]).toEqual([Number(kind), 'text/html;charset=UTF-8'])
    expect(await answer.text()).toMatch(/^<!doctype html>/)
    expect((await requestPage()).status).toBe(200)
  })

  it('429 can have Retry-After as a date', async () => {
    const { requestPage } = await startWithFault({ kind: '429', retry_after: 60, retry_after_date: true })
    const { headers } = await requestPage()
    const wait = Date.parse(headers.get('Retry-After') ?? '') - Date.parse(headers.get('Date') ?? '')
    expect(wait).toBeGreaterThanOrEqual(60_000)
    expect(wait).toBeLessThan(70_000)
  })

  it('reset breaks the connection', async () => {
    const { requestPage } = await startWithFault({ kind: 'reset' })
    await expect(requestPage()).rejects.toThrow()
    expect((await requestPage()).status).toBe(200)
  })

  it('truncated breaks the connection in the body', async () => {
    const { requestPage } = await startWithFault({ kind: 'truncated' })
    const answer = await requestPage()
    expect(answer.status).toBe(200)
    await expect(answer.text()).rejects.toThrow()
    expect((await requestPage()).status).toBe(200)
  })

  it('cutjson ends the JSON too early', async () => {
    const { requestPage } = await startWithFault({ kind: 'cutjson' })
    const text = await (await requestPage()).text()
    expect(() => JSON.parse(text)).toThrow(SyntaxError)
    expect((await (await requestPage()).text()).startsWith(text)).toBe(true)
  })

  it('drip sends the answer in single bytes', async () => {
    const { sandbox } = await startWithFault({ kind: 'drip', delay_ms: 1 })
    const { hostname, port } = new URL(sandbox.url)
    const socket = net.connect(Number(port), hostname)
    const body = JSON.stringify(page)
    socket.write(
      `POST ${operationPaths.exportReviews} HTTP/1.1\r\nHost: x\r\nContent-Type: ` +
        `application/json\r\naccessToken: ${sandbox.accessToken}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    let pieces = 0
    for await (const _ of socket) if (++pieces === 5) break
    expect(pieces).toBe(5)
  })

  it('revoke makes the token invalid for all later requests', async () => {
    const { requestPage } = await startWithFault({ kind: 'revoke' })
    expect([(await requestPage()).status, (await requestPage()).status]).toEqual([401, 401])
  })

  it('html answers an HTML page with status 200', async () => {
    const { requestPage } = await startWithFault({ kind: 'html' })
    const answer = await requestPage()
    expect([answer.status, (await answer.text()).slice(0, 15)]).toEqual([200, '<!doctype html>'])
  })

  it('contenttype answers the same body as text/plain', async () => {
    const { requestPage } = await startWithFault({ kind: 'contenttype' })
    const answer = await requestPage()
    expect(answer.headers.get('Content-Type')).toBe('text/plain')
    expect(await answer.text()).toBe(await (await requestPage()).text())
  })

  it('application answers an application error with status 200', async () => {
    const { sandbox } = await startWithFault({ kind: 'application' })
    const comments = await getPath(sandbox, `${operationPaths.comments}?locationId=1001`)
    expect([comments.status, await readJsonAnswer(comments)]).toMatchObject([200, { status: { code: 'INTERNAL' } }])
  })

  it('stale repeats the previous answer, duplicate only its rows', async () => {
    const { requestPage } = await startWithFault({ kind: 'stale', requests: [2] })
    const [first, stale] = [
      await readJsonAnswer<Page>(requestPage()),
      await readJsonAnswer<Page>(requestPage({ ...page, offset: 3 })),
    ]
    expect(stale).toEqual(first)
    const other = await startWithFault({ kind: 'duplicate', requests: [2] })
    await other.requestPage()
    const duplicate = await readJsonAnswer<Page>(other.requestPage({ ...page, offset: 3 }))
    expect(duplicate.reviews).toEqual(first.reviews.map(() => expect.anything()))
    expect(duplicate.reviews.map(({ id }) => id)).toEqual(
      (await readJsonAnswer<Page>(other.requestPage())).reviews.map(({ id }) => id),
    )
    expect(duplicate.filter.offset).toBe(3)
  })

  it('clamp reduces the limit once', async () => {
    const { requestPage } = await startWithFault({ kind: 'clamp', limit: 2 })
    const clamped = await readJsonAnswer<Page>(requestPage())
    expect([clamped.reviews.length, clamped.filter.limit]).toEqual([2, 2])
    expect((await readJsonAnswer<Page>(requestPage())).reviews).toHaveLength(3)
  })

  it('unknown adds attributes to every object of a review', async () => {
    const { requestPage } = await startWithFault({ kind: 'unknown' })
    const [extended, plain] = [await readJsonAnswer<Page>(requestPage()), await readJsonAnswer<Page>(requestPage())]
    expect(extended.reviews.every((review) => 'sandboxAttribute' in review)).toBe(true)
    expect(JSON.stringify(extended)).toContain('"location":{"sandboxAttribute"')
    const without = JSON.parse(JSON.stringify(extended), (key, value) =>
      key === 'sandboxAttribute' ? undefined : value,
    )
    expect(without.reviews).toEqual(plain.reviews)
  })

  it('nulls keeps only keys and times', async () => {
    const { requestPage, sandbox } = await startWithFault({ kind: 'nulls' })
    const [empty, full] = [await readJsonAnswer<Page>(requestPage()), await readJsonAnswer<Page>(requestPage())]
    expect(empty.filter).toMatchObject({ limit: 3 })
    expect(empty.reviews).toEqual(
      full.reviews.map((review) =>
        Object.fromEntries(
          Object.entries(review).map(([key, value]) => [
            key,
            /^(id|modifiedTime|mentionTime)$/.test(key) ? value : null,
          ]),
        ),
      ),
    )
    await sandbox.close()
  })
})

it('nulls keeps an answer that is a list one', async () => {
  const faults = decodePlan({ kind: 'nulls', operation: 'lookupSources' })
  const sandbox = await startSmallSandbox({ like: 'published', faults })
  const sources = await readJsonAnswer<ReadonlyArray<object>>(getPath(sandbox, '/api/reputation/v1/sources'))
  expect(sources[0]).toEqual({ id: expect.any(Number), name: null })
})

describe('a plan of faults', () => {
  it('counts the requests of each rule by its operations', () => {
    const nextFault = scheduleFaults(
      decodePlan(
        { kind: '429', operation: 'exports', requests: [2] },
        { kind: '500', operation: ['syncLocations'], from: 2, to: 3 },
        { kind: '503', operation: 'exportReviews', times: 1, from: 3 },
      ),
      7,
    )
    const kinds = (
      ['exportReviews', 'exportDeletedReviews', 'exportReviews', 'exportReviews', 'exportReviews'] as const
    ).map((operation) => nextFault(operation)?.kind)
    expect(kinds).toEqual([undefined, '429', undefined, '503', undefined])
    expect([1, 2, 3, 4].map(() => nextFault('syncLocations')?.kind)).toEqual([undefined, '500', '500', undefined])
  })

  it('fails a share of the requests, the same for the same seed', () => {
    const failures = (seed: number) => {
      const nextFault = scheduleFaults(decodePlan({ kind: '503', share: 0.2 }), seed)
      return Array.from({ length: 2000 }, () => nextFault('exportReviews') !== undefined)
    }
    const count = failures(1).filter((failed) => failed).length
    expect(count).toBeGreaterThan(320)
    expect(count).toBeLessThan(480)
    expect(failures(1)).toEqual(failures(1))
    expect(failures(1)).not.toEqual(failures(2))
  })

  it.each([
    [{}, 'a plan is a list'],
    [[{}], 'rule 1: $.kind'],
    [[{ kind: '500' }, { kind: 'burn' }], 'rule 2: kind "burn" is not one of'],
    [[{ kind: '500', operation: 'everything' }], 'operation "everything" is not one of exports'],
    [[{ kind: '500', often: true }], '"often" is not one of'],
    [[{ kind: '500', share: 2 }], 'share: expected 0 to 1'],
    [[{ kind: '500', requests: [0] }], 'requests: expected'],
  ])('is refused with the reason if it is %j', (value, message) => {
    expect(decodeFaultPlan(value)).toEqual(E.left(expect.stringContaining(message)))
  })

  it('is also parsed from N=KIND,…', () => {
    expect(parseFaultList('3=429, 5=reset')).toEqual(
      E.right([
        expect.objectContaining({ kind: '429', requests: [3], operations: ['exportReviews', 'exportDeletedReviews'] }),
        expect.objectContaining({ kind: 'reset', requests: [5] }),
      ]),
    )
  })
})

describe('the latency', () => {
  it('is in its range, and the same for the same seed', () => {
    const waits = Array.from({ length: 500 }, (_, n) => createLatency({ minMs: 50, maxMs: 60 }, 3)(n))
    expect([Math.min(...waits), Math.max(...waits)]).toEqual([50, 60])
    expect(waits).toEqual(Array.from({ length: 500 }, (_, n) => createLatency({ minMs: 50, maxMs: 60 }, 3)(n)))
  })
})
