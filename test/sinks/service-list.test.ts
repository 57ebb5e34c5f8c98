import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import type { Location } from '../../connector/api/model/written'
import { formatDifferences } from '../../connector/sinks/convert'
import { createServiceList, formatLocationKey, type LedgerLocation, toLocationKey } from '../../connector/sinks/ledger'
import { compareLocation, compareReadBack, planAgainstService } from '../../connector/sinks/service-list'

const listed = (code: unknown, codeType: unknown = null, more: object = {}) => ({ id: 1, code, codeType, ...more })
const byKey = (...locations: ReadonlyArray<Location>) =>
  new Map(locations.map((location) => [formatLocationKey(toLocationKey(location)), location]))
const ledgerOf = (...locations: ReadonlyArray<LedgerLocation>) =>
  new Map(locations.map((location) => [formatLocationKey(location), location]))
const active = (code: string, more: Location = {}): Location => ({ code, active: true, ...more })

describe("the service's list", () => {
  const list = createServiceList([
    listed('A', 'x'),
    listed('A', 'y'),
    listed(7),
    listed('b ', ''),
    listed(null),
    { id: 2 },
  ])
  it.each<[string, string | null, unknown]>([
    ['A', 'x', 'A x'],
    ['A', 'z', undefined],
    ['A', null, undefined],
    ['7', null, '7 null'],
    ['7', 'x', '7 null'],
    ['b', 'y', 'b null'],
    ['B', null, undefined],
  ])('finds %s of type %s', (code, codeType, expected) => {
    const found = list.find({ code, codeType })
    expect(found && `${found.code} ${found.codeType}`).toBe(expected)
  })
  it('knows codes in another case, and counts locations without a code', () => {
    expect([list.hasCode('a'), list.hasCode('B'), list.hasCode('C'), list.withoutCode]).toEqual([true, true, false, 2])
  })
})

const differencesOf = (location: Location, record: object) =>
  formatDifferences(
    compareLocation(location, { code: 'A', codeType: null, record: { code: 'A', ...record } }).differences,
  )

describe('the difference between a location and the list', () => {
  it.each<[string, Location, object, string]>([
    ['an equal text', { city: 'Austin ' }, { city: 'Austin' }, ''],
    ['another text', { city: 'Austin' }, { city: 'Boston' }, 'city "Boston" -> "Austin"'],
    ['the name, which the list calls displayName', { name: 'N' }, { displayName: 'M' }, 'name "M" -> "N"'],
    ['a text for nothing', { city: 'Austin' }, { city: null }, 'city null -> "Austin"'],
    ['a number in the list', { zip: '75001' }, { zip: 75_001 }, ''],
    ['an attribute that the list does not show', { profiles: [{ id: 'x' }], city: 'a' }, {}, ''],
    ['an attribute that is not sent', { city: null }, { city: 'Boston' }, ''],
    ['labels in another order', { labels: ['a', 'b'] }, { labels: ['b', 'a'] }, ''],
    ['other labels', { labels: ['a'] }, { labels: ['b'] }, 'labels ["b"] -> ["a"]'],
    [
      'members that the service added',
      { additionalAttributes: { a: 1 } },
      { additionalAttributes: { a: 1, b: 2 } },
      '',
    ],
    [
      'members that differ',
      { additionalAttributes: { a: { b: 1 } } },
      { additionalAttributes: { a: { b: 2 } } },
      'additionalAttributes.a.b 2 -> 1',
    ],
    ['members of nothing', { entityMappings: { a: 'x' } }, { entityMappings: null }, 'entityMappings.a null -> "x"'],
    [
      'a secret',
      { additionalAttributes: { apiKey: 'hush' } },
      { additionalAttributes: { apiKey: 'old' } },
      'additionalAttributes.apiKey "***" -> "***"',
    ],
    ['a line break', { city: 'a\nb' }, { city: 'c' }, 'city "c" -> "a\\nb"'],
    ['a long text', { city: 'x'.repeat(300) }, { city: 'c' }, `city "c" -> "${'x'.repeat(199)}…`],
  ])('%s', (_, location, record, expected) => {
    expect(differencesOf(location, record)).toBe(expected)
  })
})

const plan = (
  records: ReadonlyArray<object>,
  input: ReadonlyArray<Location>,
  more: Partial<Parameters<typeof planAgainstService>[0]> = {},
) => {
  const result = planAgainstService({
    service: createServiceList(records as never),
    input: byKey(...input),
    isComplete: true,
    ledger: O.none,
    deactivateUnlisted: false,
    maxDeactivationsPercent: 100,
    dryRun: true,
    isAccepted: () => true,
    ...more,
  })
  return E.isLeft(result)
    ? { items: [], text: result.left.message }
    : {
        items: result.right.items.map(({ item }) => item.code),
        text: result.right.notes.map(({ message }) => message).join('\n'),
      }
}

describe("the plan against the service's list", () => {
  const records = [listed('A', null, { city: 'Boston' }), listed('B', null, { city: 'Rome' }), listed('C')]
  it('has every change, attribute by attribute, and leaves locations that nobody wrote alone', () => {
    const { items, text } = plan(records, [
      active('A', { city: 'Austin' }),
      active('B', { city: 'Rome' }),
      active('N', { city: 'Oslo' }),
    ])
    expect(items).toEqual([])
    expect(text.split('\n')).toEqual([
      'locations: 1 created, 1 updated, 1 unchanged, 0 to deactivate; the service lists 3.',
      'locations: update A: city "Boston" -> "Austin"',
      'locations: create N: city null -> "Oslo"',
      expect.stringMatching(/^locations: 1 active locations of the service are not on the list, .* stay active: C\./),
    ])
  })

  it.each<[string, Parameters<typeof plan>[1], Parameters<typeof plan>[2], ReadonlyArray<string>, RegExp]>([
    ['nothing without a ledger', [active('A')], {}, [], /B, C/],
    [
      'what the ledger knows',
      [active('A')],
      { ledger: O.some(ledgerOf({ code: 'B', codeType: null })) },
      ['B'],
      /stay active: C/,
    ],
    [
      'also what the service gave a type',
      [active('A')],
      { ledger: O.some(ledgerOf({ code: 'B', codeType: 'x' })) },
      ['B'],
      /deactivate B/,
    ],
    [
      'not what the service no longer lists',
      [active('A')],
      { ledger: O.some(ledgerOf({ code: 'Z', codeType: null })) },
      [],
      /0 to deactivate/,
    ],
    [
      'what the service writes in another case',
      [active('A')],
      { ledger: O.some(ledgerOf({ code: 'b', codeType: null })) },
      ['b'],
      /deactivate b/,
    ],
    [
      'everything unlisted, if that is configured',
      [active('A')],
      { deactivateUnlisted: true },
      ['B', 'C'],
      /2 to deactivate/,
    ],
    [
      'nothing for an input that is not complete',
      [active('A')],
      { deactivateUnlisted: true, isComplete: false },
      [],
      /0 to deactivate/,
    ],
    [
      'nothing whose record is wrong',
      [active('A'), { code: 'B' }, { code: 'C' }],
      { deactivateUnlisted: true },
      [],
      /1 unchanged, 0 to/,
    ],
    [
      'what its record says',
      [{ code: 'A', active: false }, active('B'), active('C')],
      {},
      [],
      /deactivate A: active true -> false/,
    ],
    [
      'nothing that is inactive already',
      [{ code: 'Z', active: false }, active('A'), active('B'), active('C')],
      {},
      [],
      /3 unchanged, 0 to deactivate/,
    ],
    [
      'one location under each key that it was written with',
      [active('A')],
      { ledger: O.some(ledgerOf({ code: 'B', codeType: null }, { code: 'B', codeType: 'x' })) },
      ['B', 'B'],
      /2 to deactivate/,
    ],
    [
      'nothing beyond the percentage',
      [active('A')],
      { deactivateUnlisted: true, maxDeactivationsPercent: 60 },
      [],
      /2 of 3 locations are no longer on the list/,
    ],
  ])('deactivates %s', (_, input, more, items, text) => {
    const result = plan(records, input, more)
    expect(result.items).toEqual(items)
    expect(result.text).toMatch(text)
  })

  it('deactivates nothing that the service lists in another case', () => {
    const result = plan([listed('a'), listed('c')], [active('A')], { deactivateUnlisted: true })
    expect(result.items).toEqual(['c'])
  })

  it('counts nothing that was not accepted', () => {
    const { text } = plan(records, [active('A'), active('N')], { isAccepted: (key) => key === 'A' })
    expect(text).toContain('0 created, 0 updated, 1 unchanged')
  })

  it('sends a key once that is of several locations', () => {
    const result = plan([listed('A'), listed('B', 'x'), listed('B', 'y')], [active('A')], {
      ledger: O.some(ledgerOf({ code: 'B', codeType: null })),
    })
    expect(result.items).toEqual(['B'])
  })

  it('keeps a location whose code is on the list with another type', () => {
    const result = plan([listed('A', 'x')], [active('A', { codeType: 'y' })], { deactivateUnlisted: true })
    expect(result.items).toEqual([])
    expect(result.text).toContain('A (x) is not on the list, but its code is')
  })
})

describe('what is read back', () => {
  const readBack = (accepted: ReadonlyArray<Location>, before: ReadonlyArray<object>, after: ReadonlyArray<object>) => {
    const result = compareReadBack({
      accepted: byKey(...accepted),
      before: createServiceList(before as never),
      after: createServiceList(after as never),
    })
    return [result.isDelayed, result.notes.map(({ level, message }) => `${level} ${message}`).join('\n')] as const
  }
  it.each<[string, Location, ReadonlyArray<object>, ReadonlyArray<object>, boolean, string]>([
    [
      'as sent',
      active('A', { city: 'X' }),
      [],
      [listed('A', null, { city: 'X' })],
      false,
      'info locations: 1 read back: 1 as sent, 0 different, 0 missing, 0 still active.',
    ],
    [
      'in the form that the service keeps',
      active('A', { state: 'TX' }),
      [listed('A', null, { state: null })],
      [listed('A', null, { state: 'Texas' })],
      false,
      'warn locations: A reads back different: state "TX" was sent, and is kept as ' +
        '"Texas".\nwarn locations: 1 read back: 0 as sent, 1 different, 0 missing, 0 still active.',
    ],
    [
      'as it was before',
      active('A', { state: 'TX' }),
      [listed('A', null, { state: 'OH' })],
      [listed('A', null, { state: 'OH' })],
      true,
      'warn locations: A reads back different: state "TX" was sent, and is still "OH".\nwarn ' +
        'locations: 1 read back: 0 as sent, 1 different, 0 missing, 0 still active.',
    ],
    [
      'not at all',
      active('A'),
      [],
      [],
      true,
      "warn locations: A is not on the service's list after it was accepted.\nwarn " +
        'locations: 1 read back: 0 as sent, 0 different, 1 missing, 0 still active.',
    ],
    [
      'as inactive',
      { code: 'A', active: false },
      [listed('A')],
      [],
      false,
      'info locations: 1 read back: 1 as sent, 0 different, 0 missing, 0 still active.',
    ],
    [
      'as still active',
      { code: 'A', active: false },
      [listed('A')],
      [listed('A')],
      true,
      'warn locations: A is still listed as active after its deactivation.\nwarn ' +
        'locations: 1 read back: 0 as sent, 0 different, 0 missing, 1 still active.',
    ],
    [
      'without what the list does not show',
      active('A', { profiles: [], products: [] }),
      [],
      [listed('A')],
      false,
      'info locations: 1 read back: 1 as sent, 0 different, 0 missing, 0 still ' +
        'active. Not compared, since the list does not show them: products, profiles.',
    ],
  ])('is reported: %s', (_, location, before, after, isDelayed, text) => {
    expect(readBack([location], before, after)).toEqual([isDelayed, text])
  })
})
