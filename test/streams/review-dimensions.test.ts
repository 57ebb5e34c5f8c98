import { describe, expect, it } from 'vitest'
import { createPairFilter } from '../../connector/streams/review-dimensions'
import { projectRows } from '../support/review-rows'

describe('createPairFilter', () => {
  it('accepts each pair once', () => {
    const isNewPair = createPairFilter()
    const pairs = [
      ['a', 'b'],
      ['a', ''],
      ['b', 'a'],
      ['a', 'b'],
      ['ab', ''],
      ['a', ''],
    ] as const
    expect(pairs.map(([first, second]) => isNewPair(first, second))).toEqual([true, true, true, false, true, false])
  })

  it('forgets its pairs after 200,000, and accepts them again', () => {
    const isNewPair = createPairFilter()
    for (let i = 0; i <= 200_000; i++) isNewPair(`${i % 100}`, `${i}`)
    expect(isNewPair('0', '0')).toBe(true)
    expect(isNewPair('0', '0')).toBe(false)
  })
})

describe('the key of a category', () => {
  const names: ReadonlyArray<string | null | undefined> = [
    undefined,
    null,
    '',
    ' ',
    '\t\n',
    'Staff',
    'Courtesy',
    'Staff > Courtesy',
    'Staff \\> Courtesy',
    '> Courtesy',
    '\\',
    '\\\\',
    '\\>',
    '"quoted"',
    'Müll & Lärm 🙂',
  ]
  const readRows = (escape: (json: string) => string) => {
    const pairs = names.flatMap((category) => names.map((subCategory) => ({ category, subCategory })))
    const review = { id: 1, modifiedTime: '2026-01-02T03:04:05.000Z', contents: [{ id: 2, sentiments: pairs }] }
    return projectRows('categories', escape(JSON.stringify(review))).map((row) => JSON.parse(row))
  }
  const rows = readRows((json) => json)

  it('is a text that is never blank and differs for different pairs', () => {
    const isBlank = (name: string | null | undefined) => (name ?? '').trim() === ''
    const named = names.filter((name) => !isBlank(name)).length
    expect(rows).toHaveLength((named + 1) ** 2 - 1)
    expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length)
    for (const { id, category, subCategory } of rows) {
      expect(id.trim()).not.toBe('')
      expect(category === null || !isBlank(category)).toBe(true)
      expect(subCategory === null || !isBlank(subCategory)).toBe(true)
    }
  })

  it('is the category, or the category and its sub-category', () => {
    const ids = rows.flatMap(({ id, category, subCategory }) =>
      ['Staff', null].includes(category) && ['Courtesy', null].includes(subCategory) ? [id] : [],
    )
    expect(ids).toEqual(['> Courtesy', 'Staff', 'Staff > Courtesy'])
  })

  it('does not depend on how the service escapes it', () => {
    const escaped = readRows((json) =>
      json.replace(/[ü>S]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`),
    )
    expect(escaped).toEqual(rows)
  })
})
