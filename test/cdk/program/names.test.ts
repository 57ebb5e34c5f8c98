import { describe, expect, it } from 'vitest'
import { findNearestName } from '../../../connector/cdk/program/names'

describe('a wrong name', () => {
  const names = ['config', 'full-refresh', 'select', 'start_date', 'db', 'history']

  it.each([
    ['confg', 'config'],
    ['cofnig', 'config'],
    ['fullrefresh', 'full-refresh'],
    ['full_refresh', 'full-refresh'],
    ['startDate', 'start_date'],
    ['STRAT_DATE', 'start_date'],
    ['selects', 'select'],
    ['hist', 'history'],
    ['bd', 'db'],
  ])('%s was probably meant to be %s', (word, name) => expect(findNearestName(word, names)).toBe(name))

  it.each(['', 'x', 'page', 'toString', 'zzzzzzzz'])('%j is near none', (word) =>
    expect(findNearestName(word, names)).toBeUndefined(),
  )
})
