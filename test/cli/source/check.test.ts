import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Failure } from '../../../connector/cdk/failure'
import { checkCommand } from '../../../connector/cli/check'
import { sourceCheckCommand } from '../../../connector/cli/feedback-source'
import { awaitOrTimeOut, withCheckTimeouts } from '../../../connector/runtime/check'
import { writeTempFile } from '../../support/files'
import { type ReceivedRequest, sendJson, startServer } from '../../support/listen'
import { runCommand } from '../../support/run-command'
import { startTestSandbox } from '../../support/sandbox'

const settings = (base_url: string, more: object = {}) => ({
  base_url,
  credentials: { auth_type: 'access_token', access_token: 'not-for-anybody' },
  start_date: '2024-01-01T00:00:00Z',
  timeouts: { connect_seconds: 1, response_seconds: 1 },
  ...more,
})

const checking = async (config: object) => {
  const failures: Array<Failure> = []
  const ran = await runCommand(sourceCheckCommand, ['--config', writeTempFile(config)], {
    fail: async (_io, failure) => {
      failures.push(failure)
      return 1
    },
  })
  return { ...ran, failure: failures[0] }
}

type Asked = { readonly modifiedTimeFrom: string; readonly offset: number }
const ofDeleted = ({ url }: ReceivedRequest) => url.includes('deleted')
const empty = ({ body }: ReceivedRequest) => ({ reviews: [], filter: JSON.parse(body) })
const review = (id: number, modifiedTime: string) => ({ id, modifiedTime, mentionTime: modifiedTime })
const page = ({ body }: ReceivedRequest, rows: (asked: Asked) => ReadonlyArray<unknown>) => ({
  reviews: rows(JSON.parse(body)),
  filter: JSON.parse(body),
})
const status = (message: string) => ({ status: { code: 'X', message } })

type Reply = (seen: ReceivedRequest, response: ServerResponse) => void

/** A service whose exports are empty, and whose other operations give this reply. */
const beside = (reply: Reply) => (seen: ReceivedRequest, to: ServerResponse) =>
  seen.url.startsWith('/api/reputation/v1/reviews') || ofDeleted(seen)
    ? sendJson(to, 200, empty(seen))
    : reply(seen, to)

const entities = { person_ids: ['500057'], location_ids: ['7'] }
const feedback = { status: { code: 200, message: 'success' }, data: { client: 'us', entities: [] } }
const lookups = { sources: { path: '/find', records_path: 'sources', primary_key: 'id' } }

describe('check', () => {
  it('accepts that a service refuses an offset beyond the last row', async () => {
    const { url } = await startServer((seen, to) => {
      const { offset, modifiedTimeFrom }: Asked = JSON.parse(seen.body)
      if (offset > 0) return sendJson(to, 400, status('offset'))
      return sendJson(
        to,
        200,
        page(seen, () => (modifiedTimeFrom > '2025' ? [] : [review(1, '2024-05-01T00:00:00.000Z')])),
      )
    })
    const { failure, stdout } = await checking(settings(url))
    expect([failure, stdout]).toEqual([undefined, expect.stringContaining('SUCCEEDED')])
  })
})

describe('check asks for a row that it knows', () => {
  const hour = 3_600_000
  const now = Date.now()
  const at = (time: number) => new Date(time).toISOString()
  const rows = Array.from({ length: 30 }, (_, n) => review(n + 1, at(now - (40 - n) * 24 * hour)))
  /** Serves the changes after the filter, which it reads the given milliseconds later, in the order of the rows. */
  const serve = (zone: number, all = rows) =>
    startServer((seen, to) => {
      const from = at(Date.parse(JSON.parse(seen.body).modifiedTimeFrom) + zone)
      const { offset } = JSON.parse(seen.body)
      const listed = ofDeleted(seen) ? [] : all.filter(({ modifiedTime }) => modifiedTime > from)
      sendJson(
        to,
        200,
        page(seen, () => listed.slice(offset, offset + 10)),
      )
    })

  it.each([
    ['oldest first', rows],
    ['newest first', [...rows].reverse()],
    ['few', rows.slice(0, 3)],
  ])('and fails where the filter is read in another time zone: %s', async (_, all) => {
    const { url } = await serve(5 * hour, all)
    const { failure } = await checking(settings(url))
    expect(failure?.message).toMatch(/^export reviews: .* leaves out a row .* time zone.* lookback_minutes .*1440/)
    const covered = await checking(settings(url, { lookback_minutes: 1440 }))
    expect([covered.failure, covered.stdout]).toEqual([undefined, expect.stringContaining('SUCCEEDED')])
    expect(covered.stderr + covered.stdout).toContain('lookback_minutes covers it')
  })

  it('and accepts the filter as it is sent, any order, and rows that changed meanwhile', async () => {
    for (const all of [rows, [...rows].reverse(), rows.slice(0, 1)]) {
      const { url } = await serve(0, all)
      const { failure, stdout } = await checking(settings(url))
      expect([failure, stdout]).toEqual([undefined, expect.stringContaining('SUCCEEDED')])
      expect(stdout).not.toContain('time zone')
    }
    let requests = 0
    const shuffled = await startServer((seen, to) => {
      requests += 1
      const { offset, modifiedTimeFrom }: Asked = JSON.parse(seen.body)
      const listed = ofDeleted(seen) ? [] : rows.filter((row) => row.modifiedTime > modifiedTimeFrom)
      const turned = [...listed.slice((requests * 7) % 30), ...listed.slice(0, (requests * 7) % 30)]
      sendJson(
        to,
        200,
        page(seen, () => turned.slice(offset, offset + 10)),
      )
    })
    expect(await checking(settings(shuffled.url))).toMatchObject({ failure: undefined })
  })

  it("and warns where rows are dated after the service's own time", async () => {
    const ahead = [...rows, ...[1, 2].map((n) => review(100 + n, at(now + n * hour)))]
    const { url } = await serve(0, ahead)
    const { failure, stdout, stderr } = await checking(settings(url))
    expect(failure).toBeUndefined()
    expect(stdout + stderr).toContain('dated more than lookback_minutes (10) after the Date of the answers')
    const one = await serve(0, ahead.slice(0, -1))
    const fine = await checking(settings(one.url))
    expect(fine.stdout + fine.stderr).not.toContain('dated more than')
  })
})

describe('check asks the operations that the config uses', () => {
  it('which are those of feedback for the first entity and the lookups, then all entities, each once', async () => {
    const { url, seen } = await startServer(
      beside(({ url }, to) => sendJson(to, 200, url === '/find' ? { sources: [{ id: 1 }] } : feedback)),
    )
    const { failure, stdout } = await checking(settings(url, { entities, lookups }))
    expect([failure, stdout]).toEqual([undefined, expect.stringContaining('SUCCEEDED')])
    const asked = seen
      .map(({ method, url, body }) => `${method} ${url} ${body}`)
      .filter((line) => !line.includes('/v1/'))
    expect(asked.sort()).toEqual([
      expect.stringMatching(/^GET \/api\/bsr\/comments\?minRatingCount=-1&.*showComments=false.*&locationId=7 /),
      expect.stringMatching(/^GET \/api\/bsr\/comments\?minRatingCount=-1&.*showComments=false.*&personId=500057 /),
      expect.stringMatching(/^GET \/api\/bsr\/comments\?personId=500057&.*showComments=false/),
      'GET /find ',
      expect.stringMatching(/^POST \/api\/external\/bsr\/v2\/reviews .*"personId":"500057".*"showReviews":false/),
    ])
  })

  it('and no others if it names neither an entity nor a lookup', async () => {
    const { url, seen } = await startServer(beside((_, to) => sendJson(to, 500, '')))
    expect((await checking(settings(url, { entities: { from_reviews: { locations: true } } }))).failure).toBeUndefined()
    expect(seen.every(({ url }) => url.startsWith('/api/reputation/v1/'))).toBe(true)
  })

  it.each<[string, Reply, RegExp]>([
    [
      'comments are not permitted',
      (seen, to) => (seen.method === 'GET' ? sendJson(to, 403, status('no')) : sendJson(to, 200, feedback)),
      /^retrieve comments: The token lacks permission .*\(403\)\.$/,
    ],
    [
      'public reviews are not permitted',
      (seen, to) => (seen.method === 'GET' ? sendJson(to, 200, feedback) : sendJson(to, 403, status('no'))),
      /^retrieve reviews: The token lacks permission .*\(403\)\.$/,
    ],
  ])('reports that %s', async (_, reply, says) => {
    const { url } = await startServer(beside(reply))
    const { failure } = await checking(settings(url, { entities }))
    expect(failure).toMatchObject({ _tag: 'Config', message: expect.stringMatching(says) })
  })

  it('reports that a lookup does not fit its settings', async () => {
    const { url } = await startServer(beside((_, to) => sendJson(to, 200, { data: [{ id: 1 }] })))
    const { failure } = await checking(settings(url, { lookups }))
    expect(failure).toMatchObject({
      _tag: 'Config',
      message: expect.stringMatching(/^lookups\.sources\.records_path: .* at data\.$/),
    })
  })

  it('warns of an entity that the service does not know', async () => {
    const { url } = await startServer(beside((_, to) => sendJson(to, 404, status('who?'))))
    const { failure, stdout, stderr } = await checking(settings(url, { entities }))
    expect([failure, stdout]).toEqual([undefined, expect.stringContaining('SUCCEEDED')])
    expect(stderr).toContain('entities.person_ids: the service does not know 500057 (status 404). Correct it')
    expect(stderr).not.toContain('the first of entities')
  })
})

describe('check fails with a config error or a transient one if', () => {
  it.concurrent.each<[string, Reply, 'Config' | 'Transient', RegExp]>([
    [
      'the token is refused',
      (_, to) => sendJson(to, 401, status('no')),
      'Config',
      /^export reviews: The access token is missing, wrong or expired\. Check credentials \(401\)\.$/,
    ],
    [
      'one operation is not permitted',
      (seen, to) => (ofDeleted(seen) ? sendJson(to, 403, status('no')) : sendJson(to, 200, empty(seen))),
      'Config',
      /^export deleted reviews: The token lacks permission .*\(403\)\.$/,
    ],
    [
      'no operation is permitted',
      (_, to) => sendJson(to, 403, status('no')),
      'Config',
      /^export reviews and export deleted reviews: The token lacks .*\(403\)\.$/,
    ],
    [
      'the address is wrong',
      (_, to) => sendJson(to, 404, ''),
      'Config',
      new RegExp(
        '^export reviews and export deleted reviews: ' +
          String.raw`No such operation there\. Check base_url, which has no path \(404\)\.$`,
      ),
    ],
    [
      'a login page stands between',
      (_, to) => sendJson(to, 200, '<html>', { 'Content-Type': 'text/html' }),
      'Config',
      /the server at base_url is not the service .*login page/,
    ],
    [
      'the address has moved',
      (_, to) => sendJson(to, 302, '', { Location: 'https://elsewhere.example/' }),
      'Config',
      /redirects to https:\/\/elsewhere\.example/,
    ],
    [
      'modifiedTimeFrom is ignored',
      (seen, to) =>
        sendJson(
          to,
          200,
          page(seen, ({ offset }) => (offset > 0 ? [] : [review(1, '2024-05-01T00:00:00.000Z')])),
        ),
      'Config',
      /export reviews and export deleted reviews: the service ignores modifiedTimeFrom: .* future/,
    ],
    [
      'rows are older than start_date',
      (seen, to) =>
        sendJson(
          to,
          200,
          page(seen, ({ offset, modifiedTimeFrom }) =>
            offset > 0 || modifiedTimeFrom > '2025' ? [] : [review(1, '2020-05-01T00:00:00.000Z')],
          ),
        ),
      'Config',
      /ignores modifiedTimeFrom: .* before start_date/,
    ],
    [
      'offset is ignored',
      (seen, to) =>
        sendJson(
          to,
          200,
          page(seen, ({ modifiedTimeFrom }) =>
            modifiedTimeFrom > '2025' ? [] : [review(1, '2024-05-01T00:00:00.000Z')],
          ),
        ),
      'Config',
      /ignores offset/,
    ],
    [
      'no answer comes',
      () => undefined,
      'Transient',
      /no complete answer|did not answer completely in time \(ETIMEDOUT\)/,
    ],
    [
      'a response comes in byte by byte',
      (_, to) => void to.writeHead(200).write('{'),
      'Transient',
      /did not answer completely in time \(ETIMEDOUT\)/,
    ],
    ['the connection breaks', (_, to) => void to.destroy(), 'Transient', /did not answer \(ECONNRESET\)/],
    [
      'the rate is limited for an hour',
      (_, to) => sendJson(to, 429, status('slow'), { 'Retry-After': '3600' }),
      'Transient',
      /asks to wait 3600 s, longer than a check may last/,
    ],
    ['the service is out of order', (_, to) => sendJson(to, 503, status('down')), 'Transient', /answered 503/],
  ])('%s', async (_, reply, tag, says) => {
    const server = await startServer(reply)
    const { failure, stdout } = await checking(settings(server.url))
    expect(failure).toMatchObject({ _tag: tag, message: expect.stringMatching(says) })
    expect(stdout).toBe('')
  })

  it.each<[string, string, RegExp]>([
    ['no server listens at the address', 'http://127.0.0.1:1', /ECONNREFUSED.*Check base_url/],
    ['the host has no address', 'https://feedback.invalid', /(ENOTFOUND|EAI_AGAIN).*Check base_url/],
    ['http is not allowed', 'http://feedback.invalid', /base_url is http.*allow_http/],
  ])('%s', async (_, url, says) => {
    const { failure } = await checking(settings(url))
    expect(failure).toMatchObject({ _tag: 'Config', message: expect.stringMatching(says) })
  })

  it('the server does not speak TLS', async () => {
    const { url } = await startServer((_, to) => sendJson(to, 200, {}))
    const { failure } = await checking(settings(url.replace('http:', 'https:')))
    expect(failure).toMatchObject({
      _tag: 'Config',
      message: expect.stringMatching(/the service does not speak TLS with us \(EPROTO\)\. Check base_url/),
    })
  })

  it.each<[string, (url: string) => string, RegExp]>([
    [
      'the token exchange cannot be reached',
      () => 'http://127.0.0.1:1/token',
      /credentials\.token_url .*ECONNREFUSED.*Check base_url and credentials\.token_url/,
    ],
    [
      'the application is refused',
      (url) => `${url}/token`,
      /refused the application \(401\)\. Check credentials\.application_id/,
    ],
  ])('%s', async (_, tokenUrl, says) => {
    const { url } = await startServer((_seen, to) => sendJson(to, 401, status('no')))
    const credentials = {
      auth_type: 'application',
      application_id: 'a',
      application_secret: 'b',
      token_url: tokenUrl(url),
    }
    const { failure } = await checking(settings(url, { credentials }))
    expect(failure).toMatchObject({ _tag: 'Config', message: expect.stringMatching(says) })
  })
})

describe('check succeeds', () => {
  const successOf = async (config: object) => {
    const { status: exit, stdout } = await checking(config)
    expect(exit).toBe(0)
    expect(stdout.trim().split('\n')).toHaveLength(1)
    return JSON.parse(stdout).connectionStatus
  }
  const inSandbox = async (options: Parameters<typeof startTestSandbox>[0], more: object = {}) => {
    const sandbox = await startTestSandbox({ reviews: 50, ...options })
    try {
      const credentials = { auth_type: 'access_token', access_token: sandbox.accessToken }
      return await successOf(settings(sandbox.url, { credentials, ...more }))
    } finally {
      await sandbox.close()
    }
  }

  it('and reports what it found out, in one line', async () => {
    expect(await inSandbox({})).toEqual({
      status: 'SUCCEEDED',
      message: expect.stringMatching(
        /^Token: fixed .*\. Order: by modifiedTime.*\. Reviews: 48 since start_date\. .*\.$/,
      ),
    })
  })

  it('with a warning if the clocks differ', async () => {
    expect(await inSandbox({ clockSkew: 600_000 })).toMatchObject({
      status: 'SUCCEEDED',
      message: expect.stringMatching(/^The clock here is .* s behind the service's .*$/),
    })
  })

  it('at once if the rate limit of this process covers the whole check', async () => {
    expect(await inSandbox({}, { rate_limit: { requests_per_minute: 10 } })).toMatchObject({
      status: 'SUCCEEDED',
      message: expect.stringMatching(/Reviews: unknown: there was no time to check\..*Requests: 9 for this check\.$/),
    })
  })
})

describe('feedback check', () => {
  const run = (base_url: string) => runCommand(checkCommand, ['--config', writeTempFile(settings(base_url))])

  it('names the path of base_url where nothing is found, and says it once', async () => {
    const { url } = await startServer((_, to) => sendJson(to, 404, ''))
    const { status, stdout } = await run(`${url}/api/x/`)
    expect(status).toBe(78)
    expect(stdout.match(/No such operation there/g)).toHaveLength(1)
    expect(stdout).toMatch(
      new RegExp(
        String.raw`deleted_reviews +FAILED +export deleted reviews: .*whose path is /api/x/ \(404\)\.\n` +
          String.raw`reviews +FAILED +as above\n`,
      ),
    )
  })

  it('exits as docs/first-sync.md says where no service is found', async () => {
    const { server, url } = await startServer(() => undefined)
    await new Promise((resolve) => server.close(resolve))
    const { status, stdout } = await run(url)
    expect([status, stdout]).toEqual([78, expect.stringMatching(/service +FAILED +export reviews: .*\(ECONNREFUSED\)/)])
    const connection = await checking(settings(url))
    expect(connection.failure).toMatchObject({ _tag: 'Config' })
  })
})

describe('the time limit of check', () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  it('is longer than every time-out and wait', () => {
    const { timeouts, rate_limit } = withCheckTimeouts({
      base_url: 'https://feedback.example',
      allow_http: false,
      credentials: { auth_type: 'access_token', access_token: 'x' },
      rate_limit: { requests_per_minute: 3, max_concurrency: 2, redis_url: undefined },
      timeouts: { connect_seconds: 600, response_seconds: 3600, max_wait_seconds: 7200 },
    })
    expect(Math.max(...Object.values(timeouts))).toBeLessThan(14)
    expect(rate_limit.requests_per_minute).toBe(3)
  })

  it('ends the check after 12 s', async () => {
    vi.useFakeTimers()
    const outcome = awaitOrTimeOut(new Promise<string>(() => undefined), () => 'late')
    await vi.advanceTimersByTimeAsync(11_999)
    expect(await Promise.race([outcome, Promise.resolve('waiting')])).toBe('waiting')
    await vi.advanceTimersByTimeAsync(1)
    expect(await outcome).toBe('late')
  })
})
