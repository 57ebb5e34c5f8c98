import { describe, expect, it } from 'vitest'
import type { Sandbox } from '../../../connector/sandbox/start'
import { operationPaths, postJson, readJsonAnswer, startSmallSandbox } from '../../support/sandbox'

const visit = (more: object = {}) => ({
  name: 'Ada Example',
  email: 'ada@example.org',
  locationCode: 'LOC-1001',
  npi: '1234567893',
  visitRecordId: 'V1',
  ...more,
})
const visits = (sandbox: Sandbox, records: ReadonlyArray<object>) =>
  readJsonAnswer<{ records: Record<string, string>; status: { code: number } }>(
    postJson(sandbox, operationPaths.createVisitRecords, records),
  )
const sync = (sandbox: Sandbox, items: ReadonlyArray<object>) =>
  readJsonAnswer<Record<string, unknown>>(postJson(sandbox, operationPaths.syncLocations, items))

describe('visit records', () => {
  it('are reported one by one', async () => {
    const sandbox = await startSmallSandbox()
    const { records, status } = await visits(sandbox, [
      visit({ visitRecordId: 'good' }),
      visit({ visitRecordId: 'parts', name: undefined, firstName: 'Ada', lastName: 'Example' }),
      visit({ visitRecordId: 'nameless', name: undefined }),
      visit({ visitRecordId: 'no e-mail', email: undefined }),
      visit({ visitRecordId: 'no address', email: 'ada' }),
      visit({ visitRecordId: 'nowhere', locationCode: 'LOC-0' }),
      visit({ visitRecordId: 'nobody', npi: '' }),
      visit({ visitRecordId: 'never', visitTime: 'yesterday' }),
      visit({ visitRecordId: 'null', phone: null }),
    ])
    expect(status.code).toBe(200)
    expect(records).toEqual({
      good: 'Success',
      parts: 'Success',
      nameless: 'Error',
      'no e-mail': 'Error',
      'no address': 'Error',
      nowhere: 'Error',
      nobody: 'Error',
      never: 'Error',
      null: 'Success',
    })
    expect((await sandbox.truth()).visits.map(({ id }) => id)).toEqual(['good', 'null', 'parts'])
  })

  it('count once however often they are sent', async () => {
    const sandbox = await startSmallSandbox()
    for (const batch of [[visit()], [visit(), visit()], [visit({ name: 'Another' })]])
      expect((await visits(sandbox, batch)).records).toEqual({ V1: 'Success' })
    expect((await sandbox.truth()).visits).toHaveLength(1)
    const { records } = await visits(sandbox, [visit({ visitRecordId: undefined }), visit({ visitRecordId: '' })])
    expect(Object.values(records)).toEqual(['Success', 'Success'])
    expect((await sandbox.truth()).visits).toHaveLength(3)
  })

  it('bring a survey review with their id some time later', async () => {
    const sandbox = await startSmallSandbox()
    await visits(
      sandbox,
      Array.from({ length: 40 }, (_, n) => visit({ visitRecordId: `V${n}` })),
    )
    await sandbox.churn({ add: 40 })
    const { reviews, visits: held } = await sandbox.truth()
    const brought = reviews
      .map(({ json }) => JSON.parse(json))
      .filter(({ visitRecordId }) => /^V\d/.test(visitRecordId))
    expect(brought.length).toBeGreaterThan(5)
    expect(brought.length).toBeLessThan(40)
    expect(brought.map(({ visitRecordId }) => visitRecordId).sort()).toEqual(
      held.flatMap(({ id, reviewed }) => (reviewed ? [id] : [])),
    )
    for (const review of brought)
      expect(review).toMatchObject({
        location: { id: 1001 },
        provider: { npi: '1234567893' },
        source: { name: 'Survey' },
        surveyBarCode: expect.any(String),
      })
  })
})

describe('locations', () => {
  it('are created and updated, and appear in reviews and transparency answers', async () => {
    const sandbox = await startSmallSandbox({ locations: 1 })
    const created = await sync(sandbox, [
      { code: 'NEW', codeType: 'NPI', active: true, name: 'New Clinic', city: 'Oak Hill' },
    ])
    expect(created).toMatchObject({
      status: 'SUCCESS',
      nonSyncableList: [],
      totalRequests: 1,
      successfulRequests: 1,
      failedRequests: 0,
    })
    await sandbox.churn({ add: 30 })
    const named = async (name: string) =>
      (await sandbox.truth()).reviews.filter(({ json }) => JSON.parse(json).location.name === name)
    expect((await named('New Clinic')).length).toBeGreaterThan(5)
    const asked = await readJsonAnswer<{ data: { entities: ReadonlyArray<object> } }>(
      postJson(sandbox, operationPaths.retrieveReviews, { locationId: 'NEW' }),
    )
    expect(asked.data.entities).toMatchObject([{ id: 'NEW', name: 'New Clinic' }])
    const before = await named('New Clinic')
    await sync(sandbox, [{ code: 'NEW', codeType: 'NPI', active: true, name: 'Newer Clinic' }])
    const after = await named('Newer Clinic')
    expect(after.map(({ id }) => id)).toEqual(before.map(({ id }) => id))
    expect(after.every(({ modifiedTime }, n) => modifiedTime >= (before[n]?.modifiedTime ?? ''))).toBe(true)
  })

  it('change no review where nothing changes', async () => {
    const sandbox = await startSmallSandbox({ locations: 1 })
    const before = await sandbox.truth()
    const name = before.locations[0]?.name
    await sync(sandbox, [{ code: 'LOC-1001', codeType: 'INTERNAL', active: true, name, phone: '1' }])
    expect(await sandbox.truth()).toEqual(before)
  })

  it('are deactivated: no review arrives there, nobody finds them', async () => {
    const sandbox = await startSmallSandbox({ locations: 2 })
    expect(
      await sync(sandbox, [
        { code: 'LOC-1001', active: false },
        { code: 'GONE', active: false },
      ]),
    ).toMatchObject({
      status: 'SUCCESS',
      successfulRequests: 2,
    })
    const before = new Set((await sandbox.truth()).reviews.map(({ id }) => id))
    await sandbox.churn({ add: 20 })
    const { reviews, locations } = await sandbox.truth()
    expect(locations.map(({ code, active }) => [code, active])).toEqual([
      ['LOC-1001', false],
      ['LOC-1002', true],
    ])
    const arrived = reviews.filter(({ id }) => !before.has(id)).map(({ json }) => JSON.parse(json).location.id)
    expect(new Set(arrived)).toEqual(new Set([1002]))
    expect(
      await readJsonAnswer(postJson(sandbox, operationPaths.retrieveReviews, { locationId: '1001' })),
    ).toMatchObject({
      status: { code: 'ENTITY_NOT_FOUND' },
    })
    expect((await visits(sandbox, [visit()])).records).toEqual({ V1: 'Error' })
  })

  it('that cannot be synced are told apart', async () => {
    const sandbox = await startSmallSandbox()
    const [good, closed, nameless, unclear] = [
      { code: 'A', codeType: 'NPI', active: true, name: 'A' },
      { code: 'NOSYNC-1', codeType: 'NPI', active: true, name: 'B' },
      { codeType: 'NPI', active: true, name: 'C' },
      { code: 'D', codeType: 'NPI', name: 'D' },
    ]
    expect(await sync(sandbox, [good, closed, nameless, unclear])).toMatchObject({
      status: 'PARTIAL_SUCCESS',
      nonSyncableList: [closed, nameless, unclear],
      totalRequests: 4,
      successfulRequests: 1,
      failedRequests: 3,
    })
    expect((await sandbox.truth()).locations.some(({ code }) => code === 'A')).toBe(true)
  })

  it('may come twice in one request: the last counts', async () => {
    const sandbox = await startSmallSandbox()
    await sync(sandbox, [
      { code: 'TWICE', active: true, name: 'First' },
      { code: 'TWICE', active: true, name: 'Second' },
    ])
    const { locations } = await sandbox.truth()
    expect(locations.filter(({ code }) => code === 'TWICE')).toMatchObject([{ name: 'Second', active: true }])
  })
})
