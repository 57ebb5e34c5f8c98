import { describe, expect, it } from 'vitest'
import { questionKinds } from '../../connector/api'
import { createNameFilter } from '../../connector/streams/review-names'
import { kindsOfTypes } from '../support/oracle-answers'
import { projectRows } from '../support/review-rows'

const review = (minute: number, ...contents: ReadonlyArray<object>): string =>
  JSON.stringify({ id: minute, modifiedTime: `2026-01-02T03:0${minute}:00.000Z`, contents })
const readRows = (...texts: ReadonlyArray<string>) => projectRows('questions', ...texts).map((row) => JSON.parse(row))
const readIds = (...contents: ReadonlyArray<object>) => readRows(review(1, ...contents)).map(({ id }) => id)

const texts: ReadonlyArray<string | null | undefined> = [
  undefined,
  null,
  '',
  ' ',
  '\t\u00a0',
  'Q1',
  'How was it?',
  '> How was it?',
  '>> >',
  'A > B',
  '"quoted" \\ 🙂',
]

describe('createNameFilter', () => {
  it('accepts each name once, and forgets its names after 200,000', () => {
    const isNew = createNameFilter()
    expect(['a', 'b', 'a', '', 'b', ''].map(isNew)).toEqual([true, true, false, true, false, false])
    for (let i = 0; i < 200_000; i++) isNew(`${i}`)
    expect([isNew('a'), isNew('a')]).toEqual([true, false])
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

describe('the key of a question', () => {
  it('is its code, or without one its words and type', () => {
    const question = 'How was it?'
    expect(readIds({ questionCode: 'Q1', question, questionType: 'Promoter (Radio)' })).toEqual(['Q1'])
    expect(readIds({ question, questionType: 'Promoter (Radio)' })).toEqual(['> How was it? > Promoter (Radio)'])
    expect(readIds({ questionCode: ' ', question })).toEqual(['> How was it?'])
    expect(readIds({ questionType: 'Instruction' })).toEqual(['>  > Instruction'])
    expect(readIds({ question: '', questionCode: null }, {})).toEqual([])
  })

  it('is never blank, and differs for different questions', () => {
    const contents = texts.flatMap((questionCode) =>
      texts.flatMap((question) => texts.map((questionType) => ({ questionCode, question, questionType }))),
    )
    const ids = new Set(readIds(...contents))
    const named = texts.filter((text) => (text ?? '').trim() !== '').length
    expect(ids.size).toBe(named + (named + 1) ** 2 - 1)
    expect([...ids].filter((id) => id.trim() === '')).toEqual([])
  })

  it('does not depend on how the service escapes it', () => {
    const content = { question: 'Wie war es > hier?', questionType: 'Größe' }
    const escaped = review(1, content).replace(/[>ö]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
    expect(readRows(escaped)).toEqual(readRows(review(1, content)))
  })
})

describe('a question', () => {
  const asked = (question: string, questionType = 'Single Choice (Rating)') => ({
    questionCode: 'Q1',
    question,
    questionType,
  })

  it('is sent once, in its first wording', () => {
    const again = asked('How was your visit?', 'Promoter (Radio)')
    const rows = readRows(review(2, asked('How was it?'), asked('How was it?')), review(1, again), review(3, again))
    expect(rows.map(({ reviewModifiedTime, ...row }) => [reviewModifiedTime.slice(14, 16), row])).toEqual([
      ['02', { id: 'Q1', ...asked('How was it?'), kind: 'number' }],
    ])
  })

  it.each([
    ['promoter question (RADIO) ', 'promoter'],
    ['Free Form (Rating)', 'number'],
    ['Completion Date (Date Field)', 'date'],
    ['State (Select)', 'choice'],
    ['Free From (Text Area)', 'text'],
    ['Holographic', null],
    ['constructor', null],
    [undefined, null],
  ])('of the type %s has the kind %s', (questionType, kind) =>
    expect(readRows(review(1, { questionCode: 'Q1', questionType }))).toMatchObject([{ kind }]),
  )
})

it('every type of the specification has a kind', () => expect(questionKinds).toEqual(Object.fromEntries(kindsOfTypes)))
