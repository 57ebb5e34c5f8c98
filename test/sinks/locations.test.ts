import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { describe, expect, it } from 'vitest'
import type { Location, LocationSyncResult } from '../../connector/api/model/location'
import {
  checkDeactivations,
  decodeLedger,
  formatLocationKey,
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
    ['refuses an unknown status', { status: 'FAILURE' }, 'refused'],
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
    ['keeps locations of one code and two types apart', [keyOf('A', 'x')], [listed('A', 'y')], 'A', '', 'A'],
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
    const deactivations = Array.from({ length: count }, (_, n) => keyOf(String(n)))
    expect(E.isRight(checkDeactivations({ creates: [], updates: [], deactivations }, activeCount, percent))).toBe(
      isAllowed,
    )
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
    ['is refused in another file', 'id,name\n', 'no ledger'],
    ['is refused in another file of one incomplete line', '{"a":1}', 'no ledger'],
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

  it('does not overwrite another file', async () => {
    const path = join(folder, 'list.csv')
    writeFileSync(path, 'code\nA\n')
    expect(await openLedger(path, url)()).toMatchObject(E.left({ _tag: 'Config' }))
    expect(readFileSync(path, 'utf8')).toBe('code\nA\n')
  })
})

describe('reconciling with a list', () => {
  const reconcile = async (
    active: ReadonlyArray<LocationKey>,
    records: ReadonlyArray<unknown>,
    isWhole: boolean,
    percent = 50,
  ) => {
    const appended: Array<string> = []
    const target: SinkTarget = createTestTarget({
      ledger: O.some({
        active: byKey(...active),
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
      },
    })
    const sink = await openSink(locationSink, target)
    const items = records
      .map((record) => prepareRecord(sink, stream, record))
      .filter((item) => typeof item !== 'string')
    await sink.write(items, false)()
    const final = sink.finish(isWhole)
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
    const { deactivated, notes, appended } = await reconcile(active, [...list, { code: 'D' }], true)
    expect(deactivated).toEqual([{ code: 'C', codeType: 'x', active: false }])
    expect(notes).toContain('locations: 1 created, 2 updated, 1 to deactivate.')
    expect(notes).toContain('locations: deactivate C (x)')
    expect(appended).toEqual(['A true', 'B true', 'D true'])
  })

  it('deactivates nothing if the list is not complete', async () => {
    expect(await reconcile(active, list, false)).toMatchObject({
      deactivated: [],
      notes: [expect.stringContaining('no complete list')],
    })
  })

  it('deactivates no location whose record is wrong or refused by the service', async () => {
    const wrong = { code: 'C', codeType: 'x', active: 'perhaps' }
    expect((await reconcile(active, [...list, wrong], true)).deactivated).toEqual([])
    const refused = await reconcile(
      [...active, keyOf('NO')],
      [...list, { code: 'C', codeType: 'x' }, { code: 'NO' }],
      true,
    )
    expect(refused.deactivated).toEqual([])
    expect(refused.appended).not.toContain('NO true')
  })

  it('deactivates nothing if a record may be of any location', async () => {
    expect(await reconcile(active, [...list, { name: 'C' }], true)).toMatchObject({
      deactivated: [],
      notes: [expect.stringContaining('1 records')],
    })
  })

  it('fails rather than deactivate more than the maximal percentage', async () => {
    expect((await reconcile(active, [], true, 50)).deactivated).toContain('max_deactivations_percent (50)')
  })
})
