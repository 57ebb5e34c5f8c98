import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { startSandbox } from '../../connector/sandbox/start'

it('a sandbox that is closed waits for the answers that nobody reads any more', async () => {
  let asked = 0
  for (let round = 0; round < 10; round += 1) {
    const sandbox = await startSandbox({ reviews: 3000 })
    const requests = Array.from({ length: 8 }, async (_, n) => {
      asked += 1
      const response = await fetch(`${sandbox.url}/api/reputation/v1/reviews`, {
        method: 'POST',
        signal: AbortSignal.timeout(2 + 3 * n),
        headers: { 'content-type': 'application/json', accessToken: sandbox.accessToken },
        body: JSON.stringify({ modifiedTimeFrom: '2000-01-01T00:00:00.000Z', offset: 0, limit: 1000 }),
      })
      await response.arrayBuffer()
    })
    const answered = Promise.allSettled(requests)
    await sleep(8 + round)
    await sandbox.close()
    await answered
  }
  expect(asked).toBe(80)
})
