import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { describe, expect, it } from 'vitest'
import type { ApiError } from '../../connector/api/error'
import { resendPolicy, resendUnanswered } from '../../connector/sinks/target'

const policy = resendPolicy({ maxAttempts: 3, maxWait: 60_000 }, () => 0.5)
const network = (code: string): ApiError => ({ _tag: 'Network', code, message: '' })
const http = (status: number): ApiError => ({ _tag: 'Http', status, message: '' })

describe('the resend policy', () => {
  it.each<[ApiError, boolean]>([
    [network('ECONNRESET'), true],
    [network('ETIMEDOUT'), true],
    [network('ECONNREFUSED'), false],
    [network('ABORTED'), false],
    [http(500), true],
    [http(503), true],
    [http(408), true],
    [http(501), false],
    [http(429), false],
    [http(400), false],
    [http(401), false],
    [{ _tag: 'Decode', path: '$', message: 'not JSON' }, true],
    [{ _tag: 'Application', code: 'E1', message: '' }, true],
    [{ _tag: 'Application', code: '429', message: '' }, true],
    [{ _tag: 'Application', code: '503', message: '' }, true],
    [{ _tag: 'Application', code: '401', message: '' }, false],
    [{ _tag: 'TooLarge', bytes: 2, limit: 1 }, false],
  ])('retries after %j: %s', (error, isRetried) => {
    expect(O.isSome(policy(error, []))).toBe(isRetried)
  })

  it('sends a request as often as the policy allows, then returns its error', async () => {
    let sentCount = 0
    const waits: Array<number> = []
    const request: TE.TaskEither<ApiError, never> = async () => {
      sentCount += 1
      return E.left(http(502))
    }
    const resend = resendUnanswered(policy, (millis) => {
      waits.push(millis)
      return TE.right(undefined)
    })
    expect(await resend(request)()).toEqual(E.left(http(502)))
    expect(sentCount).toBe(3)
    expect(waits).toEqual([375, 750])
  })
})
