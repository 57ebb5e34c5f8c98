import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { describe, expect, it } from 'vitest'
import type { ApiError } from '../../connector/api/error'
import type { VisitRecordResult } from '../../connector/api/model/written'
import { toVisitAnswer, visitRecordSink } from '../../connector/sinks/visit-records'
import { createTestStream, createTestTarget, openSink, prepareRecord } from '../support/sink-target'

const validVisit = {
  visitRecordId: 'v1',
  name: 'Ada Byron',
  email: 'ada@example.com',
  locationCode: 'W1',
  npi: '1234567890',
}
const without = (record: Readonly<Record<string, unknown>>, ...keys: ReadonlyArray<string>) =>
  Object.fromEntries(Object.entries(record).filter(([key]) => !keys.includes(key)))

const stream = createTestStream('visit_records')
const prepareVisit = async (
  record: unknown,
  target = createTestTarget(),
  more: Parameters<typeof createTestStream>[1] = {},
) => prepareRecord(await openSink(visitRecordSink, target), createTestStream('visit_records', more), record)

describe('a visit', () => {
  describe.each([false, true])('with dryRun %s', (dryRun) => {
    it.each(['ada', 'ada at example.org', '@', 'ada@ example.org'])('is rejected for the e-mail %s', async (email) => {
      const record = { ...validVisit, email }
      expect(await prepareVisit(record, createTestTarget({ dryRun }))).toBe('email must be an e-mail address')
    })

    it.each(['ada@example.com', ' ada@example.com ', 'ada@localhost', 'zoë@exämple.org'])(
      'is sent for the e-mail %j as it is',
      async (email) => {
        const record = { ...validVisit, email }
        expect(await prepareVisit(record, createTestTarget({ dryRun }))).toEqual(record)
      },
    )

    it('is sent if its npi does not have ten digits, with one warning that does not quote it', async () => {
      const warnings: string[] = []
      const target = createTestTarget({ dryRun, warn: (text) => warnings.push(text) })
      const prepare = (await openSink(visitRecordSink, target)).prepare(stream)
      if (E.isLeft(prepare)) throw new Error(prepare.left.message)
      for (const npi of ['123', 'none', '1234567890'])
        expect(prepare.right({ ...validVisit, npi })).toMatchObject(E.right({ item: { ...validVisit, npi } }))
      expect(warnings).toEqual([expect.stringMatching(/npi.*ten digits.*sent as/)])
      expect(warnings.join()).not.toMatch(/123|none/)
    })
  })

  it.each<[string, object, object]>([
    ['a valid visit unchanged', {}, validVisit],
    ['numbers as text in attributes of text', { npi: 1234567890, zipCode: 1234 }, { ...validVisit, zipCode: '1234' }],
    [
      'text as numbers in attributes of numbers',
      { age: '42', dataFeedId: 7 },
      { ...validVisit, age: 42, dataFeedId: 7 },
    ],
    ['no blanks and no nulls', { phone: '', address: null, age: ' ' }, validVisit],
    ['no unknown columns', { colour: 'red' }, validVisit],
    [
      'times in UTC',
      { visitTime: '2026-06-10 09:00:00+02:00' },
      { ...validVisit, visitTime: '2026-06-10T07:00:00.000Z' },
    ],
    [
      'the parts of a name rather than the full name',
      { firstName: 'Ada', middleName: 'K', lastName: 'Byron' },
      { ...without(validVisit, 'name'), firstName: 'Ada', middleName: 'K', lastName: 'Byron' },
    ],
    ['the full name if a part is missing', { firstName: 'Ada' }, validVisit],
    [
      'one part of a name if there is nothing else',
      { name: null, lastName: 'Byron' },
      { ...without(validVisit, 'name'), lastName: 'Byron' },
    ],
    [
      'medicalRecordId before customerUniqueId',
      { medicalRecordId: 'm', customerUniqueId: 'c' },
      { ...validVisit, medicalRecordId: 'm' },
    ],
    ['customerUniqueId if it is the only id', { customerUniqueId: 'c' }, { ...validVisit, customerUniqueId: 'c' }],
    [
      'columns whose names have another case',
      { visitrecordid: undefined, VISITTIME: '2026-06-15' },
      { ...validVisit, visitTime: '2026-06-15T00:00:00.000Z' },
    ],
    ['a visit without a time, however old it may be', { visitTime: null }, validVisit],
    [
      'a visit of 30 days ago',
      { visitTime: '2026-05-16T12:00:00Z' },
      { ...validVisit, visitTime: '2026-05-16T12:00:00.000Z' },
    ],
  ])('is sent with %s', async (_, columns, item) => {
    expect(await prepareVisit({ ...validVisit, ...columns })).toEqual(item)
  })

  it.each<[string, unknown, string]>([
    ['a blank e-mail', { ...validVisit, email: '' }, 'email is missing'],
    ['no name at all', without(validVisit, 'name'), 'name is missing'],
    [
      'several missing attributes',
      without(validVisit, 'npi', 'locationCode'),
      'locationCode is missing; npi is missing',
    ],
    ['an age that is no integer', { ...validVisit, age: 'forty' }, 'age must be an integer'],
    ['a time that is none of ISO 8601', { ...validVisit, visitTime: 'soon' }, 'visitTime must be an ISO 8601 time'],
    ['an object in an attribute of text', { ...validVisit, email: { at: 'x' } }, 'email must be text'],
    [
      'an old visit',
      { ...validVisit, visitTime: '2026-05-16T11:59:59Z' },
      'visitTime is older than max_visit_age_days (30)',
    ],
    ['a deleted row of Airbyte', { ...validVisit, _ab_cdc_deleted_at: '2026-01-01T00:00:00Z' }, 'deleted'],
    ['a deleted row of Singer', { ...validVisit, _sdc_deleted_at: '2026-01-01T00:00:00Z' }, 'deleted'],
  ])('is rejected for %s, and the reason quotes no value', async (_, record, reason) => {
    const rejection = await prepareVisit(record)
    expect(rejection).toContain(reason)
    expect(rejection).not.toMatch(/forty|soon|ada@/)
  })

  it('takes attributes from the columns that the mapping names, and the reason names a wrong column', async () => {
    const target = createTestTarget({
      mapping: { visit_records: { email: 'mail', age: 'years', npi: 'doctor.npi' }, locations: {} },
    })
    const record = { ...without(validVisit, 'email', 'npi'), mail: 'a@b.c', doctor: { npi: 5 }, age: 7 }
    expect(await prepareVisit(record, target)).toEqual({ ...validVisit, email: 'a@b.c', npi: '5' })
    expect(await prepareVisit({ ...record, years: 'x' }, target)).toBe('age (column years) must be an integer')
  })

  it('fails for a mapping to a column that the stream does not have', async () => {
    const target = createTestTarget({ mapping: { visit_records: { email: 'mail', npi: 'NPI' }, locations: {} } })
    const columns = O.some(new Set(['npi', 'e_mail']))
    expect(await prepareVisit(validVisit, target, { columns })).toMatch(
      /mapping\.visit_records\.email names the column mail.*npi, e_mail/,
    )
  })

  it('leads to one warning for each language that needs a mapping', async () => {
    const warnings: Array<string> = []
    const sink = await openSink(visitRecordSink, createTestTarget({ warn: (message) => warnings.push(message) }))
    const prepare = sink.prepare(stream)
    for (const languageValue of ['en', 'tlh', 'tlh', 'vi'])
      if (E.isRight(prepare)) prepare.right({ ...validVisit, languageValue })
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toContain('tlh')
  })

  it('is not logged if its language is none, as with a wrong mapping', async () => {
    const warnings: Array<string> = []
    const target = createTestTarget({
      mapping: { visit_records: { languageValue: 'who' }, locations: {} },
      warn: (message) => warnings.push(message),
    })
    const prepare = (await openSink(visitRecordSink, target)).prepare(stream)
    for (const who of ['Ada', 'ada lovelace', 'ada@example.com', 'A7', 'zzq', '+1 555 0100', 'ru'])
      if (E.isRight(prepare)) prepare.right({ ...validVisit, who })
    expect(warnings).toHaveLength(2)
    expect(warnings[0]).toContain('languageValue (column who) holds values that are not language codes')
    expect(warnings[1]).toContain('the language ru')
    expect(warnings.join()).not.toMatch(/ada|A7|zzq|555/i)
  })
})

describe('a derived visit id', () => {
  const visitWithoutId = without(validVisit, 'visitRecordId')
  const idOf = async (record: unknown, more: Parameters<typeof createTestStream>[1] = {}) =>
    ((await prepareVisit(record, createTestTarget(), more)) as { visitRecordId: string }).visitRecordId

  it('is the same for the same stream and key, whatever the other columns hold', async () => {
    const first = await idOf({ ...visitWithoutId, id: 1 })
    expect(first).toMatch(/^[0-9a-f]{32}$/)
    expect(await idOf({ ...visitWithoutId, id: 1, name: 'Ada Lovelace' })).toBe(first)
    expect(await idOf({ ...visitWithoutId, id: 2 })).not.toBe(first)
    expect(await idOf({ ...visitWithoutId, id: '1' })).not.toBe(first)
    expect(await idOf({ ...visitWithoutId, id: 1 }, { id: 'other' })).not.toBe(first)
  })

  it('differs for keys beyond 2^53 that differ by one', async () => {
    const text = (id: string) => JSON.stringify(visitWithoutId).replace('{', `{"id":${id},`)
    expect(await idOf(text('9007199254740993'))).not.toBe(await idOf(text('9007199254740992')))
  })

  it('depends on the whole record if there is no key, except for the columns of platforms', async () => {
    const keyless = { key: [] }
    const first = await idOf({ ...visitWithoutId, a: 1, b: 2 }, keyless)
    expect(await idOf({ b: 2, a: 1, ...visitWithoutId, _sdc_extracted_at: 'x', _airbyte_raw_id: 'y' }, keyless)).toBe(
      first,
    )
    expect(await idOf({ ...visitWithoutId, a: 1, b: 3 }, keyless)).not.toBe(first)
    expect(await idOf({ ...visitWithoutId, a: 1, b: 2, id: null })).not.toBe(
      await idOf({ ...visitWithoutId, a: 1, b: 3, id: null }),
    )
  })
})

const accepted = { _tag: 'Accepted' }
const unknown = { _tag: 'Unknown' }
const error = { _tag: 'Rejected', reason: 'the service reports Error' }

describe('the answer to visits', () => {
  it.each<[string, ReadonlyArray<string>, Record<string, string>, unknown]>([
    ['accepts visits that succeeded', ['a', 'b'], { a: 'Success', b: 'Success' }, [accepted, accepted]],
    ['rejects visits with an error', ['a', 'b'], { b: 'Success', a: 'Error' }, [error, accepted]],
    ['accepts outcomes in any case', ['a', 'b'], { a: 'SUCCESS', b: 'error' }, [accepted, error]],
    ['leaves visits unknown that it does not name', ['a', 'b'], { a: 'Success' }, [accepted, unknown]],
    ['ignores other visits if it names all', ['a'], { a: 'Success', z: 'Error' }, [accepted]],
    ['leaves all visits unknown if it names none', ['a'], {}, [unknown]],
    ['assigns one outcome under another id to a single visit', ['a'], { A: 'Success' }, [accepted]],
    ['matches ids in another case', ['a', 'b'], { A: 'Success', ' B ': 'Error' }, [accepted, error]],
    ['matches ids in another case and leaves the others unknown', ['a', 'b'], { A: 'Success' }, [accepted, unknown]],
    [
      'refuses a batch whose ids differ only in case, if one is not named',
      ['a', 'A'],
      { a: 'Success', x: 'Success' },
      'Refused',
    ],
    ['refuses a batch if it names other ids', ['a', 'b'], { x: 'Success', y: 'Error' }, 'Refused'],
    [
      'rejects a visit with an unknown outcome',
      ['a'],
      { a: 'Ada Byron' },
      [{ _tag: 'Rejected', reason: 'the service reports neither Success nor Error' }],
    ],
    ['takes no member that every object has for an outcome', ['toString'], {}, [unknown]],
  ])('%s', (_, ids, records, expected) => {
    const answer = toVisitAnswer(ids, { records })
    expect(answer._tag === 'Verdicts' ? answer.verdicts : answer._tag).toEqual(expected)
  })
})

describe('sending visits', () => {
  const sendVisit = async (answer: E.Either<ApiError, VisitRecordResult>) => {
    const target = createTestTarget({
      api: { createVisitRecords: () => TE.fromEither(answer), syncLocations: () => TE.left(refusedConnection) },
    })
    return (await openSink(visitRecordSink, target)).write([{ ...validVisit }], false)()
  }
  const refusedConnection: ApiError = { _tag: 'Network', code: 'ECONNREFUSED', message: '' }
  const http = (status: number): E.Either<ApiError, never> => E.left({ _tag: 'Http', status, message: 'said so' })

  it.each([400, 409, 413, 415, 422])('takes a %i for a refused batch', async (status) => {
    expect(await sendVisit(http(status))).toEqual(
      E.right({ _tag: 'Refused', reason: `the service answered ${status}: said so`, tooLarge: status === 413 }),
    )
  })

  it.each([
    [401, 'Config'],
    [403, 'Config'],
    [404, 'Config'],
    [429, 'Transient'],
  ])('ends the run with a %i', async (status, tag) => {
    expect(await sendVisit(http(status))).toMatchObject(E.left({ _tag: tag }))
  })

  it.each<[ApiError, string]>([
    [{ _tag: 'Http', status: 503, message: 'Ada' }, '503'],
    [{ _tag: 'Network', code: 'ECONNRESET', message: 'Ada' }, 'ECONNRESET'],
    [{ _tag: 'Decode', path: '$', message: 'Ada' }, 'unexpected answer'],
    [{ _tag: 'Application', code: '7', message: 'Ada' }, 'unexpected answer'],
  ])('takes %j for an unanswered batch, and the reason quotes no message', async (error, excerpt) => {
    const reason = expect.stringContaining(excerpt)
    const answer = await sendVisit(E.left(error))
    expect(answer).toMatchObject(E.right({ _tag: 'Unanswered', reason, failure: { _tag: 'Transient' } }))
    expect(JSON.stringify(E.isRight(answer) && 'reason' in answer.right && answer.right.reason)).not.toContain('Ada')
  })

  it.each<[string, VisitRecordResult, string]>([
    [
      'is unanswered for an error code without outcomes',
      { status: { code: '5001', message: 'later' }, records: {} },
      'Unanswered',
    ],
    [
      'has verdicts for an error code with outcomes',
      { status: { code: 207, message: 'mixed' }, records: { v1: 'Success' } },
      'Verdicts',
    ],
    ['has verdicts for success without outcomes', { status: { code: 0, message: 'SUCCESS' }, records: {} }, 'Verdicts'],
    ['has verdicts for an empty answer', { records: {} }, 'Verdicts'],
  ])('%s', async (_, result, tag) => {
    expect(await sendVisit(E.right(result))).toMatchObject(E.right({ _tag: tag }))
  })

  it.each<[string, E.Either<ApiError, VisitRecordResult>, boolean]>([
    ['takes an empty batch', E.right({ records: {} }), true],
    ['refuses one', http(400), true],
    ['answers one in another form', E.left({ _tag: 'Decode', path: '$', message: '' }), true],
    ['fails on one too', http(500), false],
    ['is not reached', E.left({ _tag: 'Network', code: 'ECONNREFUSED', message: '' }), false],
    ['denies it', http(403), false],
  ])('finds out whether a service is reachable that %s', async (_, answer, isReachable) => {
    const target = createTestTarget({
      api: { createVisitRecords: () => TE.fromEither(answer), syncLocations: () => TE.left(refusedConnection) },
    })
    expect(await (await openSink(visitRecordSink, target)).isReachable()).toBe(isReachable)
  })
})
