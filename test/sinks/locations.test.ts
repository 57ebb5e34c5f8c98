import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { describe, expect, it, vi } from 'vitest'
import type { ApiError } from '../../connector/api/error'
import type { Location, LocationSyncResult } from '../../connector/api/model/written'
import type { InputExtent } from '../../connector/cdk/sink'
import {
  checkDeactivations,
  decodeLedger,
  formatLocationKey,
  type LedgerLocation,
  type LocationKey,
  openLedger,
  planReconcile,
  readLedger,
} from '../../connector/sinks/ledger'
import { locationSink, toLocationAnswer } from '../../connector/sinks/locations'
import type { SinkTarget } from '../../connector/sinks/target'
import { createTestStream, createTestTarget, openSink, prepareRecord } from '../support/sink-target'

const stream = createTestStream('locations')

describe('a location', () => {
  it.each<[string, object, object]>([
    ['active unless its record says otherwise', { code: 'W1' }, { code: 'W1', active: true }],
    ['inactive if its record says so, even as text', { code: 1, active: 'false' }, { code: '1', active: false }],
    [
      'inactive if its row was deleted',
      { code: 'W1', active: true, _ab_cdc_deleted_at: '2026' },
      { code: 'W1', active: false },
    ],
    ['active if the column of deletion is null', { code: 'W1', _sdc_deleted_at: null }, { code: 'W1', active: true }],
    [
      'sent with the values that JSON texts hold',
      { code: 'W1', labels: '["a"]', profiles: [{ id: 'x' }] },
      { code: 'W1', active: true, labels: ['a'], profiles: [{ id: 'x' }] },
    ],
  ])('is %s', async (_, record, item) => {
    expect(prepareRecord(await openSink(locationSink, createTestTarget()), stream, record)).toEqual(item)
  })

  it('is inactive if its stream is of deletions', async () => {
    const sink = await openSink(locationSink, createTestTarget())
    expect(prepareRecord(sink, createTestStream('locations', { isDeletion: true }), { code: 'W1' })).toEqual({
      code: 'W1',
      active: false,
    })
  })

  it.each([
    [{ name: 'Clinic' }, 'code is missing'],
    [{ code: 'W1', active: 'perhaps' }, 'active must be true or false'],
    [{ code: 'W1', profiles: [{ url: 5 }] }, 'profiles.0.url'],
  ])('is rejected with its reason: %j', async (record, reason) => {
    expect(prepareRecord(await openSink(locationSink, createTestTarget()), stream, record)).toContain(reason)
  })
})

const items: ReadonlyArray<Location> = [
  { code: 'A', codeType: 'x', active: true },
  { code: 'A', codeType: 'y', active: true },
  { code: 'B', active: true },
]
const result = (more: Partial<LocationSyncResult>): LocationSyncResult => ({ status: 'PARTIAL_SUCCESS', ...more })

describe('the answer to locations', () => {
  it.each<[string, LocationSyncResult, string]>([
    ['accepts all on success', { status: 'SUCCESS' }, 'aaa'],
    ['accepts all on success with counts', { status: 'success', failedRequests: 0, nonSyncableList: [] }, 'aaa'],
    ['rejects by code', result({ nonSyncableList: [{ code: 'B' }], failedRequests: 1 }), 'aar'],
    ['rejects by code and type', result({ nonSyncableList: [{ code: 'A', codeType: 'y' }], failedRequests: 1 }), 'ara'],
    ['rejects by a bare code', result({ nonSyncableList: ['B'], failedRequests: 1 }), 'aar'],
    [
      'refuses if one of two types of a code failed',
      result({ nonSyncableList: [{ code: 'A' }], failedRequests: 1 }),
      'refused',
    ],
    [
      'rejects both types of a code if both failed',
      result({ nonSyncableList: [{ code: 'A' }], failedRequests: 2 }),
      'rra',
    ],
    [
      'refuses if an item matches nothing',
      result({ nonSyncableList: [{ error: 'no' }], failedRequests: 1 }),
      'refused',
    ],
    ['refuses a count without a list', result({ failedRequests: 2 }), 'refused'],
    [
      'refuses more failures than the list names',
      result({ nonSyncableList: [{ code: 'B' }], failedRequests: 2 }),
      'refused',
    ],
    ...['FAILURE', 'FAILED', 'ERROR', 'error', '', 'SUCCESSFUL?', 'UNSUCCESS'].map(
      (status): [string, LocationSyncResult, string] => [`refuses the status "${status}"`, { status }, 'refused'],
    ),
    [
      'refuses an error though it counts no failure',
      { status: 'FAILED', failedRequests: 0, nonSyncableList: [] },
      'refused',
    ],
    ['refuses an error though it counts successes', { status: 'ERROR', successfulRequests: 3 }, 'refused'],
    ['refuses an error that lists only some', { status: 'FAILED', nonSyncableList: ['B'] }, 'refused'],
    ['rejects all that an error lists', { status: 'FAILED', nonSyncableList: ['A', 'B'], failedRequests: 3 }, 'rrr'],
    ['refuses fewer successes than items', { status: 'SUCCESS', successfulRequests: 2 }, 'refused'],
    ['refuses no success', { status: 'SUCCESS', successfulRequests: 0, failedRequests: 0 }, 'refused'],
    ['refuses fewer items than were sent', { status: 'SUCCESS', totalRequests: 2 }, 'refused'],
    [
      'refuses a list that explains only some of the missing successes',
      result({ nonSyncableList: ['B'], failedRequests: 1, successfulRequests: 1 }),
      'refused',
    ],
    ['accepts right counts', { status: 'SUCCESS', totalRequests: 3, successfulRequests: 3, failedRequests: 0 }, 'aaa'],
    ['refuses a partial success without a list', result({}), 'refused'],
    ['refuses a partial success with an empty list and no count', result({ nonSyncableList: [] }), 'refused'],
    ['refuses a partial success without a list that counts no failure', result({ failedRequests: 0 }), 'refused'],
    [
      'accepts a partial success that counts and lists no failure',
      result({ failedRequests: 0, nonSyncableList: [] }),
      'aaa',
    ],
    ['rejects what a list without counts names', result({ nonSyncableList: [{ code: 'B' }] }), 'aar'],
    [
      'rejects a failure despite the status success',
      { status: 'SUCCESS', failedRequests: 1, nonSyncableList: [{ code: 'B' }] },
      'aar',
    ],
  ])('%s', (_, given, expected) => {
    const answer = toLocationAnswer(items, given)
    expect(
      answer._tag === 'Verdicts'
        ? answer.verdicts.map(({ _tag }) => (_tag === 'Accepted' ? 'a' : 'r')).join('')
        : answer._tag.toLowerCase(),
    ).toBe(expected)
  })
})

const keyOf = (code: string, codeType: string | null = null): LocationKey => ({ code, codeType })
const byKey = <Key extends LocationKey>(...keys: ReadonlyArray<Key>): ReadonlyMap<string, Key> =>
  new Map(keys.map((key) => [formatLocationKey(key), key]))
const listed = (code: string, codeType: string | null = null, active = true) => ({ code, codeType, active })

describe('the plan', () => {
  it.each<[string, ReadonlyArray<LocationKey>, ReadonlyArray<ReturnType<typeof listed>>, string, string, string]>([
    ['creates the locations of the list for an empty ledger', [], [listed('A')], 'A', '', ''],
    ['updates a location that is on the list', [keyOf('A')], [listed('A')], '', 'A', ''],
    ['deactivates a location that is not on the list', [keyOf('A'), keyOf('B')], [listed('A')], '', 'A', 'B'],
    ['has nothing to do for a location listed as inactive', [keyOf('A')], [listed('A', null, false)], '', '', ''],
    ['deactivates no location that is listed with another type', [keyOf('A', 'x')], [listed('A', 'y')], 'A', '', ''],
    ['nor one that is listed without its type', [keyOf('A', 'x')], [listed('A')], 'A', '', ''],
    ['nor one that is listed with a type now', [keyOf('A')], [listed('A', 'y')], 'A', '', ''],
    ['nor one of two types', [keyOf('A', 'x'), keyOf('A', 'y')], [listed('A', 'y')], '', 'A', ''],
    ['deactivates all types of a code that is gone', [keyOf('A', 'x'), keyOf('A', 'y')], [], '', '', 'A,A'],
    [
      'deactivates one whose other type is listed as inactive',
      [keyOf('A', 'x')],
      [listed('A', 'y', false)],
      '',
      '',
      'A',
    ],
    ['deactivates all for an empty list', [keyOf('A')], [], '', '', 'A'],
  ])('%s', (_, active, list, creates, updates, deactivations) => {
    const plan = planReconcile(byKey(...active), byKey(...list))
    const codesOf = (keys: ReadonlyArray<LocationKey>) => keys.map(({ code }) => code).join()
    expect([codesOf(plan.creates), codesOf(plan.updates), codesOf(plan.deactivations)]).toEqual([
      creates,
      updates,
      deactivations,
    ])
  })

  it.each([
    [0, 0, 10, true],
    [1, 10, 10, true],
    [2, 10, 10, false],
    [1, 9, 10, false],
    [9, 9, 100, true],
    [1, 100, 0, false],
  ])('may deactivate %i of %i with at most %i percent: %s', (count, activeCount, percent, isAllowed) => {
    expect(E.isRight(checkDeactivations(count, activeCount, percent))).toBe(isAllowed)
  })
})

const folder = mkdtempSync(join(tmpdir(), 'ledger-'))
const url = 'https://feedback.example.com'
const text = (...entries: ReadonlyArray<unknown>) =>
  [{ base_url: url }, ...entries].map((line) => `${JSON.stringify(line)}\n`).join('')

describe('a ledger', () => {
  it.each<[string, string, ReadonlyArray<string> | string]>([
    ['is empty for an empty file', '', []],
    [
      'holds what was accepted last',
      text({ ...keyOf('A'), active: true }, { ...keyOf('B'), active: true }, { ...keyOf('A'), active: false }),
      ['B'],
    ],
    ['ignores an incomplete last line', `${text({ ...keyOf('A'), active: true })}{"code":"B","co`, ['A']],
    ['is refused for another service', '{"base_url":"https://other.example.com"}\n', 'https://other.example.com'],
    ['is refused in another file', 'id,name\n', 'not a ledger'],
    ['is refused in another file of one incomplete line', '{"a":1}', 'not a ledger'],
    [
      'holds what may have been accepted',
      text(
        { ...keyOf('A'), active: 'unknown' },
        { ...keyOf('B'), active: 'unknown' },
        { ...keyOf('B'), active: false },
      ),
      ['A'],
    ],
    [
      'is refused with the line that is damaged',
      `${text('x')}${JSON.stringify({ ...keyOf('A'), active: true })}\n`,
      'line 2',
    ],
  ])('%s', (_, content, expected) => {
    const ledger = decodeLedger('ledger', url, content)
    if (E.isLeft(ledger)) expect(ledger.left.message).toContain(expected)
    else expect([...ledger.right.keys()]).toEqual(expected)
  })

  it('keeps its entries from run to run', async () => {
    const path = join(folder, 'kept')
    const first = await openLedger(path, url)()
    if (E.isLeft(first)) throw new Error(first.left.message)
    await first.right.append([
      { ...keyOf('A', 'x'), active: true },
      { ...keyOf('B'), active: true },
    ])
    await first.right.append([{ ...keyOf('B'), active: false }])
    const second = await openLedger(path, url)()
    expect(E.isRight(second) && [...second.right.active.values()]).toEqual([keyOf('A', 'x')])
    expect(readFileSync(path, 'utf8')).toBe(text({ ...keyOf('A', 'x'), active: true }))
  })

  it('keeps unknown ones unknown from run to run, and known ones known', async () => {
    const path = join(folder, 'unknown')
    const first = await openLedger(path, url)()
    if (E.isLeft(first)) throw new Error(first.left.message)
    await first.right.announce([keyOf('A'), keyOf('B'), keyOf('C')])
    await first.right.append([{ ...keyOf('B'), active: true }])
    await first.right.append([{ ...keyOf('C'), active: false }])
    const second = await openLedger(path, url)()
    expect(E.isRight(second) && [...second.right.active.values()]).toEqual([
      { ...keyOf('A'), isUnknown: true },
      keyOf('B'),
    ])
    expect(readFileSync(path, 'utf8')).toBe(text({ ...keyOf('A'), active: 'unknown' }, { ...keyOf('B'), active: true }))
  })

  it('is neither created nor changed by reading it', async () => {
    const missing = join(folder, 'missing')
    expect(await readLedger(missing, url)()).toMatchObject(E.right({ active: new Map() }))
    expect(existsSync(missing)).toBe(false)
    const path = join(folder, 'read')
    const incomplete = `${text({ ...keyOf('A'), active: true })}{"code":"B","co`
    writeFileSync(path, incomplete)
    const readAgain = await readLedger(path, url)()
    if (E.isRight(readAgain)) await readAgain.right.append([{ ...keyOf('C'), active: true }])
    expect(E.isRight(readAgain) && [...readAgain.right.active.keys()]).toEqual(['A'])
    expect(readFileSync(path, 'utf8')).toBe(incomplete)
  })

  it('takes no entry after one that could not be written whole', async () => {
    const path = join(folder, 'full')
    const ledger = await openLedger(path, url)()
    if (E.isLeft(ledger)) throw new Error(ledger.left.message)
    rmSync(path)
    mkdirSync(path)
    await expect(ledger.right.append([{ ...keyOf('A'), active: true }])).rejects.toThrow('EISDIR')
    rmdirSync(path)
    await expect(ledger.right.append([{ ...keyOf('B'), active: true }])).rejects.toThrow('EISDIR')
    expect(existsSync(path)).toBe(false)
  })

  it('takes no entry beside one that cannot be written whole', async () => {
    const path = join(folder, 'together')
    const ledger = await openLedger(path, url)()
    if (E.isLeft(ledger)) throw new Error(ledger.left.message)
    const appendFile = vi.spyOn(promises, 'appendFile').mockImplementationOnce(async (name, line) => {
      writeFileSync(name as string, String(line).slice(0, 10), { flag: 'a' })
      throw Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC' })
    })
    syncBuiltinESMExports()
    try {
      const writes = [
        ledger.right.append([{ ...keyOf('A'), active: true }]),
        ledger.right.append([{ ...keyOf('B'), active: true }]),
      ]
      for (const { status } of await Promise.allSettled(writes)) expect(status).toBe('rejected')
    } finally {
      appendFile.mockRestore()
      syncBuiltinESMExports()
    }
    expect(await readLedger(path, url)()).toMatchObject(E.right({ active: new Map() }))
    expect(readFileSync(path, 'utf8')).toBe(`${text()}{"code":"A`)
  })

  it('does not overwrite another file', async () => {
    const path = join(folder, 'list.csv')
    writeFileSync(path, 'code\nA\n')
    expect(await openLedger(path, url)()).toMatchObject(E.left({ _tag: 'Config' }))
    expect(readFileSync(path, 'utf8')).toBe('code\nA\n')
  })
})

describe('reconciling with a list', () => {
  const reconcile = async (
    active: ReadonlyArray<LedgerLocation>,
    records: ReadonlyArray<unknown>,
    extent: InputExtent,
    percent = 50,
    more: Partial<SinkTarget['api']> = {},
  ) => {
    const appended: Array<string> = []
    const target: SinkTarget = createTestTarget({
      ledger: O.some({
        active: byKey(...active),
        announce: async (locations) => {
          appended.push(...locations.map(({ code }) => `${code} unknown`))
        },
        append: async (entries) => {
          appended.push(...entries.map(({ code, active }) => `${code} ${active}`))
        },
      }),
      maxDeactivationsPercent: percent,
      api: {
        createVisitRecords: () => TE.right({ records: {} }),
        syncLocations: (sent) => {
          const nonSyncableList = sent.filter(({ code }) => code?.startsWith('NO') === true)
          return TE.right({ status: 'PARTIAL_SUCCESS', nonSyncableList, failedRequests: nonSyncableList.length })
        },
        ...more,
      },
    })
    const sink = await openSink(locationSink, target)
    const items = records
      .map((record) => prepareRecord(sink, stream, record))
      .filter((item) => typeof item !== 'string')
    await sink.write(items, false)()
    const final = sink.finish(extent)
    return {
      appended,
      deactivated: E.isLeft(final) ? final.left.message : final.right.items.map(({ item }) => item),
      notes: E.isLeft(final) ? [] : final.right.notes.map(({ message }) => message),
    }
  }
  const active = ['A', 'B', 'C'].map((code) => keyOf(code, 'x'))
  const list = [
    { code: 'A', codeType: 'x' },
    { code: 'B', codeType: 'x' },
  ]

  it('deactivates what is not on a complete list, and notes what it does', async () => {
    const { deactivated, notes, appended } = await reconcile(active, [...list, { code: 'D' }], 'whole')
    expect(deactivated).toEqual([{ code: 'C', codeType: 'x', active: false }])
    expect(notes).toContain('locations: 1 created, 2 updated, 1 to deactivate.')
    expect(notes).toContain('locations: deactivate C (x)')
    expect(appended).toEqual(['D unknown', 'A true', 'B true', 'D true'])
  })

  const unknown = (code: string): LedgerLocation => ({ ...keyOf(code), isUnknown: true })
  it('leaves new locations unknown whose answer is lost, whatever the error', async () => {
    for (const error of [
      { _tag: 'Network', code: 'ECONNRESET', message: 'x' },
      { _tag: 'Http', status: 500, message: 'x' },
      { _tag: 'Http', status: 429, message: 'x' },
    ] as ReadonlyArray<ApiError>) {
      const { appended } = await reconcile(active, [...list, { code: 'D' }], 'whole', 50, {
        syncLocations: () => TE.left(error),
      })
      expect(appended).toEqual(['D unknown'])
    }
  })

  it('keeps a location that is refused, and that an earlier run may have written', async () => {
    const refuse = { syncLocations: () => TE.left<ApiError>({ _tag: 'Http', status: 400, message: 'x' }) }
    expect((await reconcile([unknown('D')], [{ code: 'D' }], 'whole', 50, refuse)).appended).toEqual([])
  })

  it('announces a location again that a record deactivated, and forgets none accepted or unanswered', async () => {
    const appended: Array<string> = []
    const answers: Array<TE.TaskEither<ApiError, LocationSyncResult>> = []
    const target = createTestTarget({
      ledger: O.some({
        active: byKey(keyOf('A')),
        announce: async (locations) => void appended.push(...locations.map(({ code }) => `${code} unknown`)),
        append: async (entries) => void appended.push(...entries.map(({ code, active }) => `${code} ${active}`)),
      }),
      api: {
        createVisitRecords: () => TE.right({ records: {} }),
        syncLocations: () => answers.shift() ?? TE.right({ status: 'SUCCESS' }),
      },
    })
    const sink = await openSink(locationSink, target)
    const send = (code: string, active: boolean) => sink.write([{ code, active }], false)()
    for (const code of ['A', 'B']) {
      appended.length = 0
      if (code === 'B') await send(code, true)
      await send(code, false)
      answers.push(TE.left({ _tag: 'Network', code: 'ECONNRESET', message: 'x' }))
      await send(code, true)
      expect(appended).toEqual([...(code === 'B' ? ['B unknown', 'B true'] : []), `${code} false`, `${code} unknown`])
      answers.push(TE.left({ _tag: 'Http', status: 400, message: 'x' }))
      await send(code, true)
      expect(appended.at(-1)).toBe(`${code} unknown`)
    }
    await send('C', true)
    answers.push(TE.right({ status: 'FAILED', nonSyncableList: ['C'], failedRequests: 1 }))
    await send('C', true)
    expect(appended.slice(-2)).toEqual(['C unknown', 'C true'])
  })

  it('deactivates no location whose code is on the list in another case', async () => {
    const { deactivated, notes } = await reconcile([keyOf('w1')], [{ code: 'W1' }], 'whole', 100)
    expect(deactivated).toEqual([])
    expect(notes).toContainEqual(expect.stringContaining('w1 is not on the list, but its code is'))
  })

  it('forgets locations that are refused and were not known to be active', async () => {
    const refuse = { syncLocations: () => TE.left<ApiError>({ _tag: 'Http', status: 400, message: 'x' }) }
    expect((await reconcile(active, [{ code: 'D' }], 'whole', 50, refuse)).appended).toEqual(['D unknown', 'D false'])
    expect((await reconcile(active, list.slice(0, 1), 'whole', 50, refuse)).appended).toEqual([])
    expect((await reconcile([], [{ code: 'NO' }], 'whole')).appended).toEqual(['NO unknown', 'NO false'])
  })

  it('deactivates unknown ones that are not on the list, whatever the percentage, and creates the others', async () => {
    const { deactivated, notes } = await reconcile(
      [...active, unknown('D'), unknown('E')],
      [...list, { code: 'C', codeType: 'x' }, { code: 'E' }],
      'whole',
      0,
    )
    expect(deactivated).toEqual([{ code: 'D', active: false }])
    expect(notes).toContain('locations: 1 created, 3 updated, 1 to deactivate.')
  })

  it('says which locations keep their code under another type', async () => {
    const { deactivated, notes } = await reconcile(active, [...list, { code: 'C', codeType: 'new' }], 'whole')
    expect(deactivated).toEqual([])
    expect(notes).toContainEqual(expect.stringContaining('C (x) is not on the list, but its code is'))
  })

  it('deactivates nothing if the list is not complete', async () => {
    expect(await reconcile(active, list, 'changes')).toMatchObject({
      deactivated: [],
      notes: [expect.stringContaining('not a complete list')],
    })
    expect(await reconcile(active, list, 'unsaid')).toMatchObject({
      deactivated: [],
      notes: [expect.stringContaining('the catalog has no generation_id')],
    })
  })

  it('deactivates nothing for an empty list, whatever the percentage', async () => {
    expect(await reconcile(active, [], 'empty', 100)).toMatchObject({
      deactivated: [],
      notes: ['locations: no record came, and an empty list deactivates nothing.'],
    })
  })

  it('deactivates no location whose record is wrong or refused by the service', async () => {
    const wrong = { code: 'C', codeType: 'x', active: 'perhaps' }
    expect((await reconcile(active, [...list, wrong], 'whole')).deactivated).toEqual([])
    const refused = await reconcile(
      [...active, keyOf('NO')],
      [...list, { code: 'C', codeType: 'x' }, { code: 'NO' }],
      'whole',
    )
    expect(refused.deactivated).toEqual([])
    expect(refused.appended).not.toContain('NO true')
  })

  it('deactivates nothing if a record may be of any location', async () => {
    expect(await reconcile(active, [...list, { name: 'C' }], 'whole')).toMatchObject({
      deactivated: [],
      notes: [expect.stringContaining('1 records')],
    })
  })

  it('fails rather than deactivate more than the maximal percentage', async () => {
    expect((await reconcile(active, [], 'whole', 50)).deactivated).toContain('max_deactivations_percent (50)')
  })
})
