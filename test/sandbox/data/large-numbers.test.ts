import * as E from 'fp-ts/Either'
import { expect, it, onTestFinished } from 'vitest'
import { seedDatabase } from '../../../connector/sandbox/data/generate'
import { orderClause } from '../../../connector/sandbox/operations/exports'
import { applyChurn } from '../../../connector/sandbox/operations/writes'
import { startSandbox } from '../../../connector/sandbox/start'
import { openDatabase } from '../../../connector/snapshot/store/database'

const data = { reviews: 60, seed: 7, locations: 5, providers: 5, batch: 40, years: 3, until: Date.now() - 60_000 }

it('changes and ordering work for request numbers whose products exceed 32 bits', async () => {
  const opened = await openDatabase(':memory:')()
  if (E.isLeft(opened)) throw new Error(opened.left.message)
  const database = opened.right
  onTestFinished(() => database.close())
  await seedDatabase(database, data)
  for (const nonce of [1, 1_000_000, 2 ** 40]) {
    await applyChurn(database, { change: 2, delete: 2, add: 2, restore: 1 }, nonce, Date.now())
    const rows = await database.query(`SELECT id FROM review ORDER BY ${orderClause('ties', nonce)}`)
    expect(rows.length).toBeGreaterThan(50)
  }
})

it('a sandbox starts with the largest seed', async () => {
  const sandbox = await startSandbox({ ...data, seed: 1_000_000 })
  onTestFinished(sandbox.close)
  expect((await sandbox.truth()).reviews).toHaveLength(60)
})
