import net from 'node:net'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { decodeFaultPlan, type FaultRule, parseFaultList, scheduleFaults } from '../../../connector/sandbox/faults/plan'
import { createLatency } from '../../../connector/sandbox/server/server'
import { epochTime, getPath, operationPaths, postJson, readJsonAnswer, startSmallSandbox } from '../../support/sandbox'

const plan = (...rules: ReadonlyArray<object>): ReadonlyArray<FaultRule> => {
  const read = decodeFaultPlan(rules)
  if (E.isLeft(read)) throw new Error(read.left)
  return read.right
}

type Page = {
  readonly reviews: ReadonlyArray<Record<string, unknown>>
  readonly filter: { readonly offset: number; readonly limit: number }
}
const page = { modifiedTimeFrom: epochTime, offset: 0, limit: 3 }

/** The first request meets the fault. */
const struck = async (rule: object) => {
  const now = () => Date.parse('2026-07-01T00:00:00Z')
  const sandbox = await startSmallSandbox({ faults: plan({ requests: [1], ...rule }), now })
  return { sandbox, ask: (body: object = page) => postJson(sandbox, operationPaths.exportReviews, body) }
}

describe('a fault strikes once and is gone:', () => {
  it.each(['400', '401', '403', '413', '429'])('%s', async (kind) => {
    const { ask } = await struck({ kind, retry_after: 7 })
    const answer = await ask()
    expect([answer.status, answer.headers.get('Retry-After')]).toEqual([Number(kind), '7'])
    expect(await readJsonAnswer(answer)).toMatchObject({ status: { code: Number(kind) } })
    expect((await ask()).status).toBe(200)
  })

  it.each(['500', '502', '503', '504'])('%s, a page in HTML', async (kind) => {
    const { ask } = await struck({ kind })
    const answer = await ask()
    expect([answer.status, answer.headers.get('Content-Type')]).toEqual([Number(kind), 'text/html;charset=UTF-8'])
    expect(await answer.text()).toMatch(/^<!doctype html>/)
    expect((await ask()).status).toBe(200)
  })

  it('Retry-After as a date', async () => {
    const { ask } = await struck({ kind: '429', retry_after: 60, retry_after_date: true })
    const { headers } = await ask()
    const wait = Date.parse(headers.get('Retry-After') ?? '') - Date.parse(headers.get('Date') ?? '')
    expect(wait).toBeGreaterThanOrEqual(60_000)
    expect(wait).toBeLessThan(70_000)
  })

  it('reset', async () => {
    const { ask } = await struck({ kind: 'reset' })
    await expect(ask()).rejects.toThrow()
    expect((await ask()).status).toBe(200)
  })

  it('truncated', async () => {
    const { ask } = await struck({ kind: 'truncated' })
    const answer = await ask()
    expect(answer.status).toBe(200)
    await expect(answer.text()).rejects.toThrow()
    expect((await ask()).status).toBe(200)
  })

  it('cutjson', async () => {
    const { ask } = await struck({ kind: 'cutjson' })
    const text = await (await ask()).text()
    expect(() => JSON.parse(text)).toThrow(SyntaxError)
    expect((await (await ask()).text()).startsWith(text)).toBe(true)
  })

  it('drip', async () => {
    const { sandbox } = await struck({ kind: 'drip', delay_ms: 1 })
    const { hostname, port } = new URL(sandbox.url)
    const socket = net.connect(Number(port), hostname)
    const body = JSON.stringify(page)
    socket.write(
      `POST ${operationPaths.exportReviews} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\naccessToken: ${sandbox.accessToken}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    let pieces = 0
    for await (const _ of socket) if (++pieces === 5) break
    expect(pieces).toBe(5)
  })

  it('revoke: the token is refused for good', async () => {
    const { ask } = await struck({ kind: 'revoke' })
    expect([(await ask()).status, (await ask()).status]).toEqual([401, 401])
  })

  it('html in a 200', async () => {
    const { ask } = await struck({ kind: 'html' })
    const answer = await ask()
    expect([answer.status, (await answer.text()).slice(0, 15)]).toEqual([200, '<!doctype html>'])
  })

  it('contenttype', async () => {
    const { ask } = await struck({ kind: 'contenttype' })
    const answer = await ask()
    expect(answer.headers.get('Content-Type')).toBe('text/plain')
    expect(await answer.text()).toBe(await (await ask()).text())
  })

  it('application', async () => {
    const { sandbox } = await struck({ kind: 'application' })
    const comments = await getPath(sandbox, `${operationPaths.comments}?locationId=1001`)
    expect([comments.status, await readJsonAnswer(comments)]).toMatchObject([200, { status: { code: 'INTERNAL' } }])
  })

  it('stale and duplicate', async () => {
    const { ask } = await struck({ kind: 'stale', requests: [2] })
    const [first, stale] = [await readJsonAnswer<Page>(ask()), await readJsonAnswer<Page>(ask({ ...page, offset: 3 }))]
    expect(stale).toEqual(first)
    const other = await struck({ kind: 'duplicate', requests: [2] })
    await other.ask()
    const doubled = await readJsonAnswer<Page>(other.ask({ ...page, offset: 3 }))
    expect(doubled.reviews).toEqual(first.reviews.map(() => expect.anything()))
    expect(doubled.reviews.map(({ id }) => id)).toEqual(
      (await readJsonAnswer<Page>(other.ask())).reviews.map(({ id }) => id),
    )
    expect(doubled.filter.offset).toBe(3)
  })

  it('clamp', async () => {
    const { ask } = await struck({ kind: 'clamp', limit: 2 })
    const clamped = await readJsonAnswer<Page>(ask())
    expect([clamped.reviews.length, clamped.filter.limit]).toEqual([2, 2])
    expect((await readJsonAnswer<Page>(ask())).reviews).toHaveLength(3)
  })

  it('unknown', async () => {
    const { ask } = await struck({ kind: 'unknown' })
    const [strange, plain] = [await readJsonAnswer<Page>(ask()), await readJsonAnswer<Page>(ask())]
    expect(strange.reviews.every((review) => 'sandboxAttribute' in review)).toBe(true)
    expect(JSON.stringify(strange)).toContain('"location":{"sandboxAttribute"')
    const without = JSON.parse(JSON.stringify(strange), (key, value) =>
      key === 'sandboxAttribute' ? undefined : value,
    )
    expect(without.reviews).toEqual(plain.reviews)
  })

  it('nulls', async () => {
    const { ask, sandbox } = await struck({ kind: 'nulls' })
    const [empty, full] = [await readJsonAnswer<Page>(ask()), await readJsonAnswer<Page>(ask())]
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

describe('a plan', () => {
  it('counts the requests of the operations of a rule', () => {
    const strike = scheduleFaults(
      plan(
        { kind: '429', operation: 'exports', requests: [2] },
        { kind: '500', operation: ['syncLocations'], from: 2, to: 3 },
        { kind: '503', operation: 'exportReviews', times: 1, from: 3 },
      ),
      7,
    )
    const kinds = (
      ['exportReviews', 'exportDeletedReviews', 'exportReviews', 'exportReviews', 'exportReviews'] as const
    ).map((operation) => strike(operation)?.kind)
    expect(kinds).toEqual([undefined, '429', undefined, '503', undefined])
    expect([1, 2, 3, 4].map(() => strike('syncLocations')?.kind)).toEqual([undefined, '500', '500', undefined])
  })

  it('strikes a share of requests, the same for the same seed', () => {
    const hits = (seed: number) => {
      const strike = scheduleFaults(plan({ kind: '503', share: 0.2 }), seed)
      return Array.from({ length: 2000 }, () => strike('exportReviews') !== undefined)
    }
    const struckOnes = hits(1).filter((hit) => hit).length
    expect(struckOnes).toBeGreaterThan(320)
    expect(struckOnes).toBeLessThan(480)
    expect(hits(1)).toEqual(hits(1))
    expect(hits(1)).not.toEqual(hits(2))
  })

  it.each([
    [{}, 'a plan is a list'],
    [[{}], 'rule 1: $.kind'],
    [[{ kind: '500' }, { kind: 'burn' }], 'rule 2: kind "burn" is not one of'],
    [[{ kind: '500', operation: 'everything' }], 'operation "everything" is not one of exports'],
    [[{ kind: '500', often: true }], '"often" is not one of'],
    [[{ kind: '500', share: 2 }], 'share: expected 0 to 1'],
    [[{ kind: '500', requests: [0] }], 'requests: expected'],
  ])('says what is wrong with %j', (value, message) => {
    expect(decodeFaultPlan(value)).toEqual(E.left(expect.stringContaining(message)))
  })

  it('is read from N=KIND,… too', () => {
    expect(parseFaultList('3=429, 5=reset')).toEqual(
      E.right([
        expect.objectContaining({ kind: '429', requests: [3], operations: ['exportReviews', 'exportDeletedReviews'] }),
        expect.objectContaining({ kind: 'reset', requests: [5] }),
      ]),
    )
  })
})

describe('latency', () => {
  it('is between two numbers, the same for the same seed', () => {
    const waits = Array.from({ length: 500 }, (_, n) => createLatency({ minMs: 50, maxMs: 60 }, 3)(n))
    expect([Math.min(...waits), Math.max(...waits)]).toEqual([50, 60])
    expect(waits).toEqual(Array.from({ length: 500 }, (_, n) => createLatency({ minMs: 50, maxMs: 60 }, 3)(n)))
  })
})
