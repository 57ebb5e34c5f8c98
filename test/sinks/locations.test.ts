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
import { createTestInlet, createTestTarget, openSink, prepareRecord } from '../support/sink-target'

const inlet = createTestInlet('locations')

describe('a location', () => {
  it.each<[string, object, object]>([
    ['active unless it says otherwise', { code: 'W1' }, { code: 'W1', active: true }],
    ['inactive where it says so, even as text', { code: 1, active: 'false' }, { code: '1', active: false }],
    [
      'inactive where its row was deleted',
      { code: 'W1', active: true, _ab_cdc_deleted_at: '2026' },
      { code: 'W1', active: false },
    ],
    ['active where the mark of deletion is null', { code: 'W1', _sdc_deleted_at: null }, { code: 'W1', active: true }],
    [
      'JSON text as what it says',
      { code: 'W1', labels: '["a"]', profiles: [{ id: 'x' }] },
      { code: 'W1', active: true, labels: ['a'], profiles: [{ id: 'x' }] },
    ],
  ])('is %s', async (_, record, item) => {
    expect(prepareRecord(await openSink(locationSink, createTestTarget()), inlet, record)).toEqual(item)
  })

  it('is inactive in a stream of deletions', async () => {
    const open = await openSink(locationSink, createTestTarget())
    expect(prepareRecord(open, createTestInlet('locations', { isDeletion: true }), { code: 'W1' })).toEqual({
      code: 'W1',
      active: false,
    })
  })

  it.each([
    [{ name: 'Clinic' }, 'code is missing'],
    [{ code: 'W1', active: 'perhaps' }, 'active must be true or false'],
    [{ code: 'W1', profiles: [{ url: 5 }] }, 'profiles.0.url'],
  ])('is rejected: %j', async (record, reason) => {
    expect(prepareRecord(await openSink(locationSink, createTestTarget()), inlet, record)).toContain(reason)
  })
})

const items: ReadonlyArray<Location> = [
  { code: 'A', codeType: 'x', active: true },
  { code: 'A', codeType: 'y', active: true },
  { code: 'B', active: true },
]
const result = (more: Partial<LocationSyncResult>): LocationSyncResult => ({ status: 'PARTIAL_SUCCESS', ...more })

describe('an answer to locations', () => {
  it.each<[string, LocationSyncResult, string]>([
    ['success', { status: 'SUCCESS' }, 'aaa'],
    ['success with counts', { status: 'success', failedRequests: 0, nonSyncableList: [] }, 'aaa'],
    ['failures by code', result({ nonSyncableList: [{ code: 'B' }], failedRequests: 1 }), 'aar'],
    [
      'failures by code and type',
      result({ nonSyncableList: [{ code: 'A', codeType: 'y' }], failedRequests: 1 }),
      'ara',
    ],
    ['a bare code', result({ nonSyncableList: ['B'], failedRequests: 1 }), 'aar'],
    ['a code of two types, once failed', result({ nonSyncableList: [{ code: 'A' }], failedRequests: 1 }), 'refused'],
    ['a code of two types, both failed', result({ nonSyncableList: [{ code: 'A' }], failedRequests: 2 }), 'rra'],
    ['items that match nothing', result({ nonSyncableList: [{ error: 'no' }], failedRequests: 1 }), 'refused'],
    ['a count without a list', result({ failedRequests: 2 }), 'refused'],
    ['more failures than the list names', result({ nonSyncableList: [{ code: 'B' }], failedRequests: 2 }), 'refused'],
    ['a status that nobody knows', { status: 'FAILURE' }, 'refused'],
    ['failure with success', { status: 'SUCCESS', failedRequests: 1, nonSyncableList: [{ code: 'B' }] }, 'aar'],
  ])('tells %s', (_, given, said) => {
    const answer = toLocationAnswer(items, given)
    expect(
      answer._tag === 'Verdicts'
        ? answer.verdicts.map(({ _tag }) => (_tag === 'Accepted' ? 'a' : 'r')).join('')
        : answer._tag.toLowerCase(),
    ).toBe(said)
  })
})

const place = (code: string, codeType: string | null = null): LocationKey => ({ code, codeType })
const active = (...places: ReadonlyArray<LocationKey>) => new Map(places.map((one) => [formatLocationKey(one), one]))
const listed = (...places: ReadonlyArray<LocationKey & { readonly active: boolean }>) =>
  new Map(places.map((one) => [formatLocationKey(one), one]))

describe('a plan', () => {
  it.each<[string, ReadonlyMap<string, LocationKey>, ReturnType<typeof listed>, string, string, string]>([
    ['an empty ledger', active(), listed({ ...place('A'), active: true }), 'A', '', ''],
    ['a location that stays', active(place('A')), listed({ ...place('A'), active: true }), '', 'A', ''],
    ['one that is gone', active(place('A'), place('B')), listed({ ...place('A'), active: true }), '', 'A', 'B'],
    ['one that says it is inactive', active(place('A')), listed({ ...place('A'), active: false }), '', '', ''],
    ['one of another type', active(place('A', 'x')), listed({ ...place('A', 'y'), active: true }), 'A', '', 'A'],
    ['an empty list', active(place('A')), listed(), '', '', 'A'],
  ])('of %s', (_, ledger, list, creates, updates, deactivations) => {
    const made = planReconcile(ledger, list)
    const codes = (places: ReadonlyArray<LocationKey>) => places.map(({ code }) => code).join()
    expect([codes(made.creates), codes(made.updates), codes(made.deactivations)]).toEqual([
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
  ])('that deactivates %i of %i with at most %i percent', (count, all, percent, approved) => {
    const deactivations = Array.from({ length: count }, (_, n) => place(String(n)))
    expect(E.isRight(checkDeactivations({ creates: [], updates: [], deactivations }, all, percent))).toBe(approved)
  })
})

const folder = mkdtempSync(join(tmpdir(), 'ledger-'))
const url = 'https://feedback.example.com'
const text = (...entries: ReadonlyArray<unknown>) =>
  [{ base_url: url }, ...entries].map((line) => `${JSON.stringify(line)}\n`).join('')

describe('a ledger', () => {
  it.each<[string, string, ReadonlyArray<string> | string]>([
    ['nothing', '', []],
    [
      'what was accepted last',
      text({ ...place('A'), active: true }, { ...place('B'), active: true }, { ...place('A'), active: false }),
      ['B'],
    ],
    ['all but a line that was cut off', `${text({ ...place('A'), active: true })}{"code":"B","co`, ['A']],
    ['another service', '{"base_url":"https://other.example.com"}\n', 'https://other.example.com'],
    ['another file', 'id,name\n', 'no ledger'],
    ['another file of one line without an end', '{"a":1}', 'no ledger'],
    ['damage', `${text('x')}${JSON.stringify({ ...place('A'), active: true })}\n`, 'line 2'],
  ])('reads %s', (_, given, said) => {
    const read = decodeLedger('ledger', url, given)
    if (E.isLeft(read)) expect(read.left.message).toContain(said)
    else expect([...read.right.keys()]).toEqual(said)
  })

  it('holds from run to run what was noted', async () => {
    const path = join(folder, 'kept')
    const first = await openLedger(path, url)()
    if (E.isLeft(first)) throw new Error(first.left.message)
    await first.right.append([
      { ...place('A', 'x'), active: true },
      { ...place('B'), active: true },
    ])
    await first.right.append([{ ...place('B'), active: false }])
    const second = await openLedger(path, url)()
    expect(E.isRight(second) && [...second.right.active.values()]).toEqual([place('A', 'x')])
    expect(readFileSync(path, 'utf8')).toBe(text({ ...place('A', 'x'), active: true }))
  })

  it('is neither made nor changed by who only looks at it', async () => {
    const missing = join(folder, 'missing')
    expect(await readLedger(missing, url)()).toMatchObject(E.right({ active: new Map() }))
    expect(existsSync(missing)).toBe(false)
    const path = join(folder, 'looked-at')
    const torn = `${text({ ...place('A'), active: true })}{"code":"B","co`
    writeFileSync(path, torn)
    const looked = await readLedger(path, url)()
    if (E.isRight(looked)) await looked.right.append([{ ...place('C'), active: true }])
    expect(E.isRight(looked) && [...looked.right.active.keys()]).toEqual(['A'])
    expect(readFileSync(path, 'utf8')).toBe(torn)
  })

  it('is not made over another file', async () => {
    const path = join(folder, 'list.csv')
    writeFileSync(path, 'code\nA\n')
    expect(await openLedger(path, url)()).toMatchObject(E.left({ _tag: 'Config' }))
    expect(readFileSync(path, 'utf8')).toBe('code\nA\n')
  })
})

describe('reconciling', () => {
  const reconciling = async (
    held: ReadonlyArray<LocationKey>,
    records: ReadonlyArray<unknown>,
    whole: boolean,
    percent = 50,
  ) => {
    const noted: Array<string> = []
    const target: SinkTarget = createTestTarget({
      ledger: O.some({
        active: active(...held),
        append: async (entries) => {
          noted.push(...entries.map(({ code, active }) => `${code} ${active}`))
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
    const open = await openSink(locationSink, target)
    const ready = records.map((record) => prepareRecord(open, inlet, record)).filter((item) => typeof item !== 'string')
    await open.write(ready, false)()
    const rest = open.finish(whole)
    return {
      noted,
      gone: E.isLeft(rest) ? rest.left.message : rest.right.items.map(({ item }) => item),
      notes: E.isLeft(rest) ? [] : rest.right.notes.map(({ message }) => message),
    }
  }
  const held = ['A', 'B', 'C'].map((code) => place(code, 'x'))
  const full = [
    { code: 'A', codeType: 'x' },
    { code: 'B', codeType: 'x' },
  ]

  it('deactivates what a whole list has no longer, and says what it does', async () => {
    const { gone, notes, noted } = await reconciling(held, [...full, { code: 'D' }], true)
    expect(gone).toEqual([{ code: 'C', codeType: 'x', active: false }])
    expect(notes).toContain('locations: 1 created, 2 updated, 1 to deactivate.')
    expect(notes).toContain('locations: deactivate C (x)')
    expect(noted).toEqual(['A true', 'B true', 'D true'])
  })

  it('deactivates nothing where the list is not whole', async () => {
    expect(await reconciling(held, full, false)).toMatchObject({
      gone: [],
      notes: [expect.stringContaining('no complete list')],
    })
  })

  it('keeps a location whose record is wrong or whom the service refuses', async () => {
    const wrong = { code: 'C', codeType: 'x', active: 'perhaps' }
    expect((await reconciling(held, [...full, wrong], true)).gone).toEqual([])
    const refused = await reconciling(
      [...held, place('NO')],
      [...full, { code: 'C', codeType: 'x' }, { code: 'NO' }],
      true,
    )
    expect(refused.gone).toEqual([])
    expect(refused.noted).not.toContain('NO true')
  })

  it('deactivates nothing where a record might be of any location', async () => {
    expect(await reconciling(held, [...full, { name: 'C' }], true)).toMatchObject({
      gone: [],
      notes: [expect.stringContaining('1 records')],
    })
  })

  it('refuses to deactivate more than its share', async () => {
    expect((await reconciling(held, [], true, 50)).gone).toContain('max_deactivations_percent (50)')
  })
})
