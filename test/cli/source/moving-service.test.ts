import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exportOrders } from '../../../connector/sandbox/operations/exports'
import type { Sandbox } from '../../../connector/sandbox/start'
import { destination } from '../../support/destination'
import { drawCount } from '../../support/draws'
import { writeTempFile } from '../../support/files'
import { runProgram, startProgram } from '../../support/program'
import { random } from '../../support/random'
import { startChangingSandbox } from '../../support/sandbox'

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
  let service: Awaited<ReturnType<typeof startChangingSandbox>>
  beforeAll(async () => {
    service = await startChangingSandbox({
      order,
      reviews: order === 'ties' ? 100 : 250,
      churn: { change: 3, delete: 1, add: 1 },
    })
  })
  afterAll(() => service.sandbox.close())

  it('equals the destination after a second run without changes, and a third run reads nothing', async () => {
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
    service.stopChanges(60_000)
    await read()
    expect(held.alive()).toEqual(await truth(service.sandbox))
    expect(await read()).not.toContain('"type":"RECORD"')
  })

  it('equals it also if every run is killed at some point', async () => {
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
    const kills = drawCount(2)
    service.startChanges()
    for (let killed = 0; killed < kills; killed += 1) {
      const running = read()
      const at = Math.floor(chance() * (order === 'ties' ? 400_000 : 1_000_000))
      running.onOutput((bytes) => {
        if (bytes > at) running.kill('SIGKILL')
      })
      held.load((await running.ended).stdout)
    }
    service.stopChanges(60_000)
    const { status, stdout } = await read().ended
    expect(status).toBe(0)
    held.load(stdout)
    expect(held.alive()).toEqual(await truth(service.sandbox))
  })
})
