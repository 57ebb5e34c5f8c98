import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { describe, expect, it } from 'vitest'
import type { ApiError } from '../../connector/api/error'
import type { VisitRecordResult } from '../../connector/api/model/visit-record'
import { toVisitAnswer, visitRecordSink } from '../../connector/sinks/visit-records'
import { createTestInlet, createTestTarget, openSink, prepareRecord } from '../support/sink-target'

const right = {
  visitRecordId: 'v1',
  name: 'Ada Byron',
  email: 'ada@example.com',
  locationCode: 'W1',
  npi: '1234567890',
}
const without = (record: Readonly<Record<string, unknown>>, ...keys: ReadonlyArray<string>) =>
  Object.fromEntries(Object.entries(record).filter(([key]) => !keys.includes(key)))

const inlet = createTestInlet('visit_records')
const visit = async (record: unknown, target = createTestTarget(), more: Parameters<typeof createTestInlet>[1] = {}) =>
  prepareRecord(await openSink(visitRecordSink, target), createTestInlet('visit_records', more), record)

describe('a visit', () => {
  it.each<[string, object, object]>([
    ['as it is', {}, right],
    ['numbers as text where text is wanted', { npi: 1234567890, zipCode: 1234 }, { ...right, zipCode: '1234' }],
    ['text as numbers where numbers are wanted', { age: '42', dataFeedId: 7 }, { ...right, age: 42, dataFeedId: 7 }],
    ['no blanks and no nulls', { phone: '', address: null, age: ' ' }, right],
    ['no columns that mean nothing', { colour: 'red' }, right],
    ['times in UTC', { visitTime: '2026-06-10 09:00:00+02:00' }, { ...right, visitTime: '2026-06-10T07:00:00.000Z' }],
    [
      'the parts of a name rather than the whole',
      { firstName: 'Ada', middleName: 'K', lastName: 'Byron' },
      { ...without(right, 'name'), firstName: 'Ada', middleName: 'K', lastName: 'Byron' },
    ],
    ['the whole name where a part is missing', { firstName: 'Ada' }, right],
    [
      'a part where there is no more',
      { name: null, lastName: 'Byron' },
      { ...without(right, 'name'), lastName: 'Byron' },
    ],
    [
      'medicalRecordId before customerUniqueId',
      { medicalRecordId: 'm', customerUniqueId: 'c' },
      { ...right, medicalRecordId: 'm' },
    ],
    ['customerUniqueId where it is alone', { customerUniqueId: 'c' }, { ...right, customerUniqueId: 'c' }],
    [
      'columns whose case was folded',
      { visitrecordid: undefined, VISITTIME: '2026-06-15' },
      { ...right, visitTime: '2026-06-15T00:00:00.000Z' },
    ],
    ['any age where no time is given', { visitTime: null }, right],
    [
      'a visit of 30 days ago',
      { visitTime: '2026-05-16T12:00:00Z' },
      { ...right, visitTime: '2026-05-16T12:00:00.000Z' },
    ],
  ])('sends %s', async (_, given, sent) => {
    expect(await visit({ ...right, ...given })).toEqual(sent)
  })

  it.each<[string, unknown, string]>([
    ['no e-mail', { ...right, email: '' }, 'email is missing'],
    ['no name at all', without(right, 'name'), 'name is missing'],
    ['several missing', without(right, 'npi', 'locationCode'), 'locationCode is missing; npi is missing'],
    ['an age that is none', { ...right, age: 'forty' }, 'age must be an integer'],
    ['a time that is none', { ...right, visitTime: 'soon' }, 'visitTime must be an ISO 8601 time'],
    ['an object for a text', { ...right, email: { at: 'x' } }, 'email must be a text'],
    [
      'an old visit',
      { ...right, visitTime: '2026-05-16T11:59:59Z' },
      'visitTime is older than max_visit_age_days (30)',
    ],
    ['a deleted row', { ...right, _ab_cdc_deleted_at: '2026-01-01T00:00:00Z' }, 'deleted'],
    ['a row deleted in Singer', { ...right, _sdc_deleted_at: '2026-01-01T00:00:00Z' }, 'deleted'],
  ])('is rejected for %s, and no value is quoted', async (_, record, reason) => {
    const said = await visit(record)
    expect(said).toContain(reason)
    expect(said).not.toMatch(/forty|soon|ada@/)
  })

  it('takes attributes from the columns that the mapping names, and says the column that is wrong', async () => {
    const target = createTestTarget({
      mapping: { visit_records: { email: 'mail', age: 'years', npi: 'doctor.npi' }, locations: {} },
    })
    const record = { ...without(right, 'email', 'npi'), mail: 'a@b.c', doctor: { npi: 5 }, age: 7 }
    expect(await visit(record, target)).toEqual({ ...right, email: 'a@b.c', npi: '5' })
    expect(await visit({ ...record, years: 'x' }, target)).toBe('age (column years) must be an integer')
  })

  it('refuses a mapping to a column that the stream does not have', async () => {
    const target = createTestTarget({ mapping: { visit_records: { email: 'mail', npi: 'NPI' }, locations: {} } })
    const columns = O.some(new Set(['npi', 'e_mail']))
    expect(await visit(right, target, { columns })).toMatch(
      /mapping\.visit_records\.email names the column mail.*npi, e_mail/,
    )
  })

  it('warns once of a language that needs a mapping', async () => {
    const warnings: Array<string> = []
    const open = await openSink(visitRecordSink, createTestTarget({ warn: (message) => warnings.push(message) }))
    const prepare = open.prepare(inlet)
    for (const languageValue of ['en', 'tlh', 'tlh', 'vi'])
      if (E.isRight(prepare)) prepare.right({ ...right, languageValue })
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toContain('tlh')
  })
})

describe('an id that is derived', () => {
  const bare = without(right, 'visitRecordId')
  const idOf = async (record: unknown, more: Parameters<typeof createTestInlet>[1] = {}) =>
    ((await visit(record, createTestTarget(), more)) as { visitRecordId: string }).visitRecordId

  it('is the same for the same key, whatever else the record says', async () => {
    const first = await idOf({ ...bare, id: 1 })
    expect(first).toMatch(/^[0-9a-f]{32}$/)
    expect(await idOf({ ...bare, id: 1, name: 'Ada Lovelace' })).toBe(first)
    expect(await idOf({ ...bare, id: 2 })).not.toBe(first)
    expect(await idOf({ ...bare, id: '1' })).not.toBe(first)
    expect(await idOf({ ...bare, id: 1 }, { id: 'other' })).not.toBe(first)
  })

  it('keeps keys beyond 2^53 apart', async () => {
    const text = (id: string) => JSON.stringify(bare).replace('{', `{"id":${id},`)
    expect(await idOf(text('9007199254740993'))).not.toBe(await idOf(text('9007199254740992')))
  })

  it('is of the whole record where there is no key, less what platforms add', async () => {
    const keyless = { key: [] }
    const first = await idOf({ ...bare, a: 1, b: 2 }, keyless)
    expect(await idOf({ b: 2, a: 1, ...bare, _sdc_extracted_at: 'x', _airbyte_raw_id: 'y' }, keyless)).toBe(first)
    expect(await idOf({ ...bare, a: 1, b: 3 }, keyless)).not.toBe(first)
    expect(await idOf({ ...bare, a: 1, b: 2, id: null })).not.toBe(await idOf({ ...bare, a: 1, b: 3, id: null }))
  })
})

const accepted = { _tag: 'Accepted' }
const unknown = { _tag: 'Unknown' }
const error = { _tag: 'Rejected', reason: 'the service reports Error' }

describe('an answer to visits', () => {
  it.each<[string, ReadonlyArray<string>, Record<string, string>, unknown]>([
    ['success', ['a', 'b'], { a: 'Success', b: 'Success' }, [accepted, accepted]],
    ['both', ['a', 'b'], { b: 'Success', a: 'Error' }, [error, accepted]],
    ['any case', ['a', 'b'], { a: 'SUCCESS', b: 'error' }, [accepted, error]],
    ['less than was asked', ['a', 'b'], { a: 'Success' }, [accepted, unknown]],
    ['more than was asked', ['a'], { a: 'Success', z: 'Error' }, [accepted]],
    ['nothing', ['a'], {}, [unknown]],
    ['one visit under another id, alone', ['a'], { A: 'Success' }, [accepted]],
    ['ids in another case', ['a', 'b'], { A: 'Success', ' B ': 'Error' }, [accepted, error]],
    ['ids in another case, and one less', ['a', 'b'], { A: 'Success' }, [accepted, unknown]],
    ['two ids that differ in case alone', ['a', 'A'], { a: 'Success', x: 'Success' }, 'Refused'],
    ['other ids', ['a', 'b'], { x: 'Success', y: 'Error' }, 'Refused'],
    [
      'a word that nobody knows',
      ['a'],
      { a: 'Ada Byron' },
      [{ _tag: 'Rejected', reason: 'the service reports neither Success nor Error' }],
    ],
    ['an id that objects have', ['toString'], {}, [unknown]],
  ])('tells %s', (_, ids, records, said) => {
    const answer = toVisitAnswer(ids, { records })
    expect(answer._tag === 'Verdicts' ? answer.verdicts : answer._tag).toEqual(said)
  })
})

describe('sending visits', () => {
  const sending = async (answer: E.Either<ApiError, VisitRecordResult>) => {
    const target = createTestTarget({
      api: { createVisitRecords: () => TE.fromEither(answer), syncLocations: () => TE.left(unsent) },
    })
    return (await openSink(visitRecordSink, target)).write([{ ...right }], false)()
  }
  const unsent: ApiError = { _tag: 'Network', code: 'ECONNREFUSED', message: '' }
  const http = (status: number): E.Either<ApiError, never> => E.left({ _tag: 'Http', status, message: 'said so' })

  it.each([400, 409, 413, 415, 422])('takes a %i for a matter of the batch', async (status) => {
    expect(await sending(http(status))).toEqual(
      E.right({ _tag: 'Refused', reason: `the service answered ${status}: said so`, tooLarge: status === 413 }),
    )
  })

  it.each([
    [401, 'Config'],
    [403, 'Config'],
    [404, 'Config'],
    [429, 'Transient'],
  ])('ends the run with a %i', async (status, tag) => {
    expect(await sending(http(status))).toMatchObject(E.left({ _tag: tag }))
  })

  it.each<[ApiError, string]>([
    [{ _tag: 'Http', status: 503, message: 'Ada' }, '503'],
    [{ _tag: 'Network', code: 'ECONNRESET', message: 'Ada' }, 'ECONNRESET'],
    [{ _tag: 'Decode', path: '$', message: 'Ada' }, 'something else'],
    [{ _tag: 'Application', code: '7', message: 'Ada' }, 'something else'],
  ])('leaves open whether %j is for an item', async (error, named) => {
    const reason = expect.stringContaining(named)
    const answer = await sending(E.left(error))
    expect(answer).toMatchObject(E.right({ _tag: 'Unanswered', reason, failure: { _tag: 'Transient' } }))
    expect(JSON.stringify(E.isRight(answer) && 'reason' in answer.right && answer.right.reason)).not.toContain('Ada')
  })

  it.each<[string, VisitRecordResult, string]>([
    ['an error code', { status: { code: '5001', message: 'later' }, records: {} }, 'Unanswered'],
    [
      'an error code, but outcomes',
      { status: { code: 207, message: 'mixed' }, records: { v1: 'Success' } },
      'Verdicts',
    ],
    ['success', { status: { code: 0, message: 'SUCCESS' }, records: {} }, 'Verdicts'],
    ['nothing', { records: {} }, 'Verdicts'],
  ])('takes an answer for an application error that names no visit and reports %s', async (_, result, tag) => {
    expect(await sending(E.right(result))).toMatchObject(E.right({ _tag: tag }))
  })

  it.each<[string, E.Either<ApiError, VisitRecordResult>, boolean]>([
    ['takes an empty batch', E.right({ records: {} }), true],
    ['refuses one', http(400), true],
    ['answers one in another form', E.left({ _tag: 'Decode', path: '$', message: '' }), true],
    ['fails on one too', http(500), false],
    ['is not reached', E.left({ _tag: 'Network', code: 'ECONNREFUSED', message: '' }), false],
    ['denies it', http(403), false],
  ])('knows whether a service is there that %s', async (_, answer, there) => {
    const target = createTestTarget({
      api: { createVisitRecords: () => TE.fromEither(answer), syncLocations: () => TE.left(unsent) },
    })
    expect(await (await openSink(visitRecordSink, target)).isReachable()).toBe(there)
  })
})
