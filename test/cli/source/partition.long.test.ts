import { expect, it } from 'vitest'
import { destination } from '../../support/destination'
import { newTempPath, writeTempFile } from '../../support/files'
import { runProgram } from '../../support/program'
import { missingRedis, startRedis } from '../../support/redis'
import { startChangingSandbox } from '../../support/sandbox'

const count = 8
const perMinute = 1200

it.skipIf(missingRedis !== undefined)(
  'eight processes share a backfill and a rate limit while the service changes, and one connection continues',
  async () => {
    const redis = await startRedis()
    const { sandbox, now, stopChanges } = await startChangingSandbox({
      reviews: 400,
      years: 2,
      churn: { change: 2, delete: 1, add: 1 },
    })
    const config = (more: object) =>
      writeTempFile({
        base_url: sandbox.url,
        credentials: { auth_type: 'access_token', access_token: sandbox.accessToken },
        start_date: new Date(now() - 3 * 365 * 86_400_000).toISOString(),
        page_size: 50,
        rate_limit: { requests_per_minute: perMinute, redis_url: redis.url },
        ...more,
      })
    const select = ['--select', 'reviews,deleted_reviews']
    const catalog = writeTempFile((await runProgram('feedback', ['catalog', '--config', config({}), ...select])).stdout)
    const read = (config: string, state: string) =>
      runProgram('source-feedback', ['read', '--config', config, '--catalog', catalog, '--state', state])

    const held = destination()
    const begun = process.hrtime.bigint()
    const shares = await Promise.all(
      Array.from({ length: count }, (_, index) => read(config({ partition: { index, count } }), writeTempFile([]))),
    )
    const minutes = Number(process.hrtime.bigint() - begun) / 60e9
    const states = shares.map(({ status, stdout }) => {
      expect(status, stdout.slice(-2000)).toBe(0)
      held.load(stdout)
      return writeTempFile(
        stdout
          .split('\n')
          .filter((line) => line.includes('"type":"STATE"'))
          .join('\n'),
      )
    })
    const asked = sandbox.log().length
    expect(asked).toBeGreaterThan(count * 2)
    expect(asked).toBeLessThanOrEqual(Math.ceil(perMinute * minutes) + 1)
    for (const { stdout } of shares) expect(stdout.split('"stream":"reviews"').length).toBeLessThan(300)

    stopChanges(3_600_000)
    const merged = newTempPath('json')
    expect((await runProgram('feedback', ['state', 'merge', ...states, '--out', merged])).status).toBe(0)
    const last = await read(config({}), merged)
    expect(last.status, last.stdout.slice(-2000)).toBe(0)
    held.load(last.stdout)
    const truth = (await sandbox.truth()).reviews.map(({ id, modifiedTime }) => `${id} ${modifiedTime}`).sort()
    expect(held.alive()).toEqual(truth)
    const quiet = await read(config({}), writeTempFile(held.state()))
    expect(quiet.stdout).not.toContain('"type":"RECORD"')
    await sandbox.close()
  },
)
