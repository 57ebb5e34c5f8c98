import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { expect, it, onTestFinished } from 'vitest'
import { mergeStates } from '../../connector/streams/export-state'
import { streams } from '../../connector/streams/streams'
import { createSourceEnv, readAll } from '../support/in-process'
import { startChangingSandbox } from '../support/sandbox'

it('eight processes read a changing service without loss, and one continues from their merged state', async () => {
  const { sandbox, now, stopChanges } = await startChangingSandbox({
    reviews: 300,
    years: 1,
    churn: { change: 2, delete: 1, add: 1 },
  })
  onTestFinished(() => sandbox.close())
  const count = 8
  const selected = streams.filter(({ name }) => name === 'reviews' || name === 'deleted_reviews')
  const startDate = Date.now() - 400 * 86_400_000
  const source = (index?: number) =>
    createSourceEnv(sandbox.api, {
      pageSize: 50,
      startDate,
      now,
      partition: index === undefined ? O.none : O.some({ index, count }),
    })
  const outcomes = []
  for (let index = 0; index < count; index += 1) outcomes.push(await readAll(source(index), selected))
  expect(outcomes.flatMap(({ failures }) => Object.values(failures))).toEqual([])
  for (const { records } of outcomes) expect(records.reviews?.length).toBeLessThan(200)
  stopChanges(3_600_000)
  const merged = mergeStates(outcomes.map(({ state }) => state))
  if (E.isLeft(merged)) throw new Error(merged.left.message)
  const last = await readAll(source(), selected, merged.right)
  const runs = [...outcomes, last]
  const deletedIds = new Set(runs.flatMap(({ records }) => records.deleted_reviews ?? []).map(({ id }) => String(id)))
  const destination = new Map<string, string>()
  for (const row of runs.flatMap(({ records }) => records.reviews ?? [])) {
    const [id, time] = [String(row.id), String(row.modifiedTime)]
    if (!deletedIds.has(id) && time >= (destination.get(id) ?? '')) destination.set(id, time)
  }
  const truth = (await sandbox.truth()).reviews.map(({ id, modifiedTime }) => `${id} ${modifiedTime}`)
  expect([...destination].map((entry) => entry.join(' ')).sort()).toEqual(truth.sort())
})
