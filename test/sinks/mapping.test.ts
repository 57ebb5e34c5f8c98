import { describe, expect, it } from 'vitest'
import { locationSink } from '../../connector/sinks/locations'
import type { ColumnMapping, SinkTarget } from '../../connector/sinks/target'
import { visitRecordSink } from '../../connector/sinks/visit-records'
import { createTestStream, createTestTarget, openSink, prepareRecord } from '../support/sink-target'

const visit = { id: 1, mail: 'a@example.com', name: 'Ada', locationCode: 'W1', npi: '1234567893', visitRecordId: 'v' }
const sent = { email: 'a@example.com', name: 'Ada', locationCode: 'W1', npi: '1234567893', visitRecordId: 'v' }

/** The visit that is made of a record, and what was said. */
const prepareVisit = async (
  record: object,
  mapping: ColumnMapping,
  more: Partial<SinkTarget> = {},
): Promise<{
  readonly item: unknown
  readonly warnings: ReadonlyArray<string>
  readonly notes: ReadonlyArray<string>
}> => {
  const [warnings, notes]: [string[], string[]] = [[], []]
  const target = createTestTarget({
    mapping: { visit_records: mapping, locations: {} },
    warn: (message) => warnings.push(message),
    inform: (message) => notes.push(message),
    ...more,
  })
  const item = prepareRecord(await openSink(visitRecordSink, target), createTestStream('users'), record)
  return { item, warnings, notes }
}

describe('the attributes of a record', () => {
  it('are sent beside a mapping only if it names them, or a visit needs them', async () => {
    const { item, warnings } = await prepareVisit({ ...visit, phone: '1', AGE: 5, visitTime: null }, { email: 'mail' })
    expect(item).toEqual(sent)
    expect(warnings).toEqual([expect.stringMatching(/^users: the columns phone, age .* set map_by_name to true\.$/)])
  })

  it('are sent by name if the config says so', async () => {
    const { item, warnings } = await prepareVisit(
      { ...visit, phone: '1', AGE: 5 },
      { email: 'mail' },
      { mapByName: true },
    )
    expect([item, warnings]).toEqual([{ ...sent, phone: '1', age: 5 }, []])
  })

  it('are sent by name without a mapping', async () => {
    const { item, warnings } = await prepareVisit({ ...visit, email: visit.mail, phone: '1' }, {})
    expect([item, warnings]).toEqual([{ ...sent, phone: '1' }, []])
  })

  it.each([true, false])('are not sent if their column is null, whatever map_by_name is: %s', async (mapByName) => {
    const mapping = { email: 'mail', phone: null, visitRecordId: null, age: 'phone' }
    const { item, warnings } = await prepareVisit({ ...visit, phone: '17' }, mapping, { mapByName })
    expect(item).toMatchObject({
      email: 'a@example.com',
      age: 17,
      visitRecordId: expect.stringMatching(/^[\da-f]{32}$/),
    })
    expect([item, warnings]).toEqual([expect.not.objectContaining({ phone: expect.anything() }), []])
  })

  it('are withheld by null alone, which is no mapping of the others', async () => {
    const { item } = await prepareVisit({ ...visit, email: visit.mail, phone: '1', age: 5 }, { phone: null })
    expect(item).toEqual({ ...sent, age: 5 })
  })

  it('are listed by a dry run: names of columns but no values', async () => {
    const { notes } = await prepareVisit({ ...visit, phone: '555' }, { email: 'mail' }, { dryRun: true })
    expect(notes).toEqual(['users: sends name, email (column mail), visitRecordId, locationCode, npi.'])
  })
})

describe('a column of another shape', () => {
  it.each([
    ['phone', { work: '1' }],
    ['phone', ['1']],
    ['age', [5]],
    ['address', [{ street: 'x' }]],
    ['languageValue', {}],
  ])('is left out of a visit with one warning: %s %j', async (attribute, value) => {
    const { item, warnings } = await prepareVisit({ ...visit, email: visit.mail, [attribute]: value }, {})
    expect(item).toEqual(sent)
    expect(warnings).toEqual([expect.stringContaining(`users: ${attribute} must be`)])
  })

  it('is left out where it is mapped too, and the warning names the column', async () => {
    const { item, warnings } = await prepareVisit(
      { ...visit, contact: { tel: 1 } },
      { email: 'mail', phone: 'contact' },
    )
    expect(item).toEqual(sent)
    expect(warnings).toEqual([expect.stringContaining('phone (column contact) must be text')])
  })

  it.each([
    ['email', ['a@example.com'], 'email must be text'],
    ['npi', {}, 'npi must be text'],
    ['visitTime', {}, 'visitTime must be an ISO 8601 time'],
  ])('rejects a record that needs it: %s', async (attribute, value, problem) => {
    const { item } = await prepareVisit({ ...visit, email: visit.mail, [attribute]: value }, {})
    expect(item).toContain(problem)
  })

  it('rejects a record whose value alone is wrong', async () => {
    expect((await prepareVisit({ ...visit, email: visit.mail, age: 'x' }, {})).item).toContain('age must be an integer')
  })

  it.each([
    ['labels', 'north'],
    ['labels', { a: 1 }],
    ['profiles', 5],
    ['additionalAttributes', 'x'],
    ['additionalAttributes', [1]],
    ['city', { name: 'London' }],
  ])('is left out of a location: %s %j', async (attribute, value) => {
    const warnings: Array<string> = []
    const sink = await openSink(locationSink, createTestTarget({ warn: (message) => warnings.push(message) }))
    const item = prepareRecord(sink, createTestStream('locations'), { code: 'W1', [attribute]: value })
    expect(item).toEqual({ code: 'W1', active: true })
    expect(warnings).toHaveLength(1)
  })
})
