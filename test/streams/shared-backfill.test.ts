import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { expect, it } from 'vitest'
import { startSandbox } from '../../connector/sandbox/start'
import { mergeStates } from '../../connector/streams/export-state'
import { streams } from '../../connector/streams/streams'
import { readAll, sourceOf } from '../support/in-process'

it('is read whole by eight processes while it changes, and one connection goes on from their merged state', async () => {
  let clock = Date.now()
  const sandbox = await startSandbox({
    reviews: 300,
    years: 1,
    churn: { change: 2, delete: 1, add: 1 },
    until: clock - 60_000,
    now: () => {
      clock += 7
      return clock
    },
  })
  const count = 8
  const selected = streams.filter(({ name }) => name === 'reviews' || name === 'deleted_reviews')
  const startDate = Date.now() - 400 * 86_400_000
  const source = (index?: number) =>
    sourceOf(sandbox.api, {
      pageSize: 50,
      startDate,
      now: () => clock,
      partition: index === undefined ? O.none : O.some({ index, count }),
    })
  const shares = []
  for (let index = 0; index < count; index += 1) shares.push(await readAll(source(index), selected))
  expect(shares.flatMap(({ failures }) => Object.values(failures))).toEqual([])
  for (const { records } of shares) expect(records.reviews?.length).toBeLessThan(200)
  sandbox.setChurn({})
  clock += 3_600_000
  const merged = mergeStates(shares.map(({ state }) => state))
  const last = await readAll(source(), selected, E.isRight(merged) ? merged.right : {})
  const runs = [...shares, last]
  const gone = new Set(runs.flatMap(({ records }) => records.deleted_reviews ?? []).map(({ id }) => String(id)))
  const held = new Map<string, string>()
  for (const row of runs.flatMap(({ records }) => records.reviews ?? [])) {
    const [id, time] = [String(row.id), String(row.modifiedTime)]
    if (!gone.has(id) && time >= (held.get(id) ?? '')) held.set(id, time)
  }
  const truth = (await sandbox.truth()).reviews.map(({ id, modifiedTime }) => `${id} ${modifiedTime}`)
  expect([...held].map((entry) => entry.join(' ')).sort()).toEqual(truth.sort())
  await sandbox.close()
})
