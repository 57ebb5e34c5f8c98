import { expect, it } from 'vitest'
import { createConditionVariable } from '../../../connector/cdk/write/condition-variable'

it('waits for a condition until it holds, and checks it again only where it is notified', async () => {
  const { notify, waitFor } = createConditionVariable()
  let checks = 0
  const reached = waitFor(() => {
    checks += 1
    return checks > 2
  })
  expect(checks).toBe(1)
  notify()
  await Promise.resolve()
  expect(checks).toBe(2)
  notify()
  await reached
  expect(checks).toBe(3)
})
