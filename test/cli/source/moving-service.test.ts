import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exportOrders } from '../../../connector/sandbox/operations/exports'
import { type Sandbox, startSandbox } from '../../../connector/sandbox/start'
import { destination } from '../../support/destination'
import { writeTempFile } from '../../support/files'
import { runProgram, startProgram } from '../../support/program'
import { random } from '../../support/random'

/** A service that changes under every page; its clock is ours, so that no test has to wait. */
const moving = async (order: (typeof exportOrders)[number], reviews: number) => {
  let clock = Date.now()
  const sandbox = await startSandbox({
    order,
    reviews,
    churn: { change: 3, delete: 1, add: 1 },
    until: clock - 60_000,
    now: () => {
      clock += 7
      return clock
    },
  })
  return {
    sandbox,
    /** The last seconds of changes have become the past, and nothing moves any more. */
    calm: () => {
      sandbox.setChurn({})
      clock += 60_000
    },
    stir: () => sandbox.setChurn({ change: 3, delete: 1, add: 1 }),
  }
}

const configFor = (sandbox: Sandbox) =>
  writeTempFile({
    base_url: sandbox.url,
    credentials: { auth_type: 'access_token', access_token: sandbox.accessToken },
    start_date: '2010-01-01T00:00:00Z',
    page_size: 50,
  })

const truth = async (sandbox: Sandbox) =>
  (await sandbox.truth()).reviews.map(({ id, modifiedTime }) => `${id} ${modifiedTime}`).sort()

const catalogOf = async (config: string) =>
  writeTempFile(
    (await runProgram('feedback', ['catalog', '--config', config, '--select', 'reviews,deleted_reviews'])).stdout,
  )

describe.each(exportOrders)('a service in the order %s that changes after every page', (order) => {
  let service: Awaited<ReturnType<typeof moving>>
  beforeAll(async () => {
    service = await moving(order, order === 'ties' ? 100 : 250)
  })
  afterAll(() => service.sandbox.close())

  it('equals the destination after a second run without changes, and a third run reads nothing', {
    timeout: 120_000,
  }, async () => {
    const config = configFor(service.sandbox)
    const catalog = await catalogOf(config)
    const held = destination()
    const read = async () => {
      const { status, stdout } = await runProgram('source-feedback', [
        ...['read', '--config', config, '--catalog', catalog],
        ...['--state', writeTempFile(held.state())],
      ])
      expect(status, stdout.slice(-2000)).toBe(0)
      held.load(stdout)
      return stdout
    }
    await read()
    service.calm()
    await read()
    expect(held.alive()).toEqual(await truth(service.sandbox))
    expect(await read()).not.toContain('"type":"RECORD"')
  })

  it('equals it also if every run is killed at some point', { timeout: 120_000 }, async () => {
    const config = configFor(service.sandbox)
    const catalog = await catalogOf(config)
    const held = destination()
    const chance = random(exportOrders.indexOf(order) + 1)
    const read = () =>
      startProgram('source-feedback', [
        'read',
        '--config',
        config,
        '--catalog',
        catalog,
        '--state',
        writeTempFile(held.state()),
      ])
    service.stir()
    for (let killed = 0; killed < 4; killed += 1) {
      const running = read()
      const at = Math.floor(chance() * (order === 'ties' ? 400_000 : 1_000_000))
      running.onOutput((bytes) => {
        if (bytes > at) running.kill('SIGKILL')
      })
      held.load((await running.ended).stdout)
    }
    service.calm()
    const { status, stdout } = await read().ended
    expect(status).toBe(0)
    held.load(stdout)
    expect(held.alive()).toEqual(await truth(service.sandbox))
  })
})
