import { describe, expect, it } from 'vitest'
import type { Sandbox } from '../../../connector/sandbox/start'
import { operationPaths, postJson, readJsonAnswer, startSmallSandbox } from '../../support/sandbox'

const createVisit = (more: object = {}) => ({
  name: 'Ada Example',
  email: 'ada@example.org',
  locationCode: 'LOC-1001',
  npi: '1234567893',
  visitRecordId: 'V1',
  ...more,
})
const sendVisits = (sandbox: Sandbox, records: ReadonlyArray<object>) =>
  readJsonAnswer<{ records: Record<string, string>; status: { code: number } }>(
    postJson(sandbox, operationPaths.createVisitRecords, records),
  )
const syncLocations = (sandbox: Sandbox, items: ReadonlyArray<object>) =>
  readJsonAnswer<Record<string, unknown>>(postJson(sandbox, operationPaths.syncLocations, items))

describe('visit records', () => {
  it('are each reported as Success or Error', async () => {
    const sandbox = await startSmallSandbox()
    const { records, status } = await sendVisits(sandbox, [
      createVisit({ visitRecordId: 'good' }),
      createVisit({ visitRecordId: 'parts', name: undefined, firstName: 'Ada', lastName: 'Example' }),
      createVisit({ visitRecordId: 'nameless', name: undefined }),
      createVisit({ visitRecordId: 'no e-mail', email: undefined }),
      createVisit({ visitRecordId: 'no address', email: 'ada' }),
      createVisit({ visitRecordId: 'nowhere', locationCode: 'LOC-0' }),
      createVisit({ visitRecordId: 'no npi', npi: '' }),
      createVisit({ visitRecordId: 'never', visitTime: 'yesterday' }),
      createVisit({ visitRecordId: 'null', phone: null }),
    ])
    expect(status.code).toBe(200)
    expect(records).toEqual({
      good: 'Success',
      parts: 'Success',
      nameless: 'Error',
      'no e-mail': 'Error',
      'no address': 'Error',
      nowhere: 'Error',
      'no npi': 'Error',
      never: 'Error',
      null: 'Success',
    })
    expect((await sandbox.truth()).visits.map(({ id }) => id)).toEqual(['good', 'null', 'parts'])
  })

  it('are stored once, however often they are sent', async () => {
    const sandbox = await startSmallSandbox()
    for (const batch of [[createVisit()], [createVisit(), createVisit()], [createVisit({ name: 'Another' })]])
      expect((await sendVisits(sandbox, batch)).records).toEqual({ V1: 'Success' })
    expect((await sandbox.truth()).visits).toHaveLength(1)
    const { records } = await sendVisits(sandbox, [
      createVisit({ visitRecordId: undefined }),
      createVisit({ visitRecordId: '' }),
    ])
    expect(Object.values(records)).toEqual(['Success', 'Success'])
    expect((await sandbox.truth()).visits).toHaveLength(3)
  })

  it('can get a survey review with their id later', async () => {
    const sandbox = await startSmallSandbox()
    await sendVisits(
      sandbox,
      Array.from({ length: 40 }, (_, n) => createVisit({ visitRecordId: `V${n}` })),
    )
    await sandbox.churn({ add: 40 })
    const { reviews, visits } = await sandbox.truth()
    const visitReviews = reviews
      .map(({ json }) => JSON.parse(json))
      .filter(({ visitRecordId }) => /^V\d/.test(visitRecordId))
    expect(visitReviews.length).toBeGreaterThan(5)
    expect(visitReviews.length).toBeLessThan(40)
    expect(visitReviews.map(({ visitRecordId }) => visitRecordId).sort()).toEqual(
      visits.flatMap(({ id, reviewed }) => (reviewed ? [id] : [])),
    )
    for (const review of visitReviews)
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
    const created = await syncLocations(sandbox, [
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
    const reviewsAt = async (name: string) =>
      (await sandbox.truth()).reviews.filter(({ json }) => JSON.parse(json).location.name === name)
    expect((await reviewsAt('New Clinic')).length).toBeGreaterThan(5)
    const answer = await readJsonAnswer<{ data: { entities: ReadonlyArray<object> } }>(
      postJson(sandbox, operationPaths.retrieveReviews, { locationId: 'NEW' }),
    )
    expect(answer.data.entities).toMatchObject([{ id: 'NEW', name: 'New Clinic' }])
    const before = await reviewsAt('New Clinic')
    await syncLocations(sandbox, [{ code: 'NEW', codeType: 'NPI', active: true, name: 'Newer Clinic' }])
    const after = await reviewsAt('Newer Clinic')
    expect(after.map(({ id }) => id)).toEqual(before.map(({ id }) => id))
    expect(after.every(({ modifiedTime }, n) => modifiedTime >= (before[n]?.modifiedTime ?? ''))).toBe(true)
  })

  it('modify no review if their name stays', async () => {
    const sandbox = await startSmallSandbox({ locations: 1 })
    const before = await sandbox.truth()
    const name = before.locations[0]?.name
    await syncLocations(sandbox, [{ code: 'LOC-1001', codeType: 'INTERNAL', active: true, name, phone: '1' }])
    expect(await sandbox.truth()).toEqual(before)
  })

  it('get no new review and are not found after they are deactivated', async () => {
    const sandbox = await startSmallSandbox({ locations: 2 })
    expect(
      await syncLocations(sandbox, [
        { code: 'LOC-1001', active: false },
        { code: 'UNKNOWN', active: false },
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
    expect((await sendVisits(sandbox, [createVisit()])).records).toEqual({ V1: 'Error' })
  })

  it('that cannot be synced are listed in the answer', async () => {
    const sandbox = await startSmallSandbox()
    const [valid, unsyncable, withoutCode, withoutActive] = [
      { code: 'A', codeType: 'NPI', active: true, name: 'A' },
      { code: 'NOSYNC-1', codeType: 'NPI', active: true, name: 'B' },
      { codeType: 'NPI', active: true, name: 'C' },
      { code: 'D', codeType: 'NPI', name: 'D' },
    ]
    expect(await syncLocations(sandbox, [valid, unsyncable, withoutCode, withoutActive])).toMatchObject({
      status: 'PARTIAL_SUCCESS',
      nonSyncableList: [unsyncable, withoutCode, withoutActive],
      totalRequests: 4,
      successfulRequests: 1,
      failedRequests: 3,
    })
    expect((await sandbox.truth()).locations.some(({ code }) => code === 'A')).toBe(true)
  })

  it('that occur twice in one request get the last values', async () => {
    const sandbox = await startSmallSandbox()
    await syncLocations(sandbox, [
      { code: 'TWICE', active: true, name: 'First' },
      { code: 'TWICE', active: true, name: 'Second' },
    ])
    const { locations } = await sandbox.truth()
    expect(locations.filter(({ code }) => code === 'TWICE')).toMatchObject([{ name: 'Second', active: true }])
  })
})
