import { expect, test } from 'vitest'
import { simulate } from '../support/simulate'

/** The seeds of some worlds that read more than the rows of both exports. */
const worlds = { entities: '1-20', parts: '1-25' }

test.each(Object.entries(worlds))('a world of %s keeps every promise', async (kind, seeds) => {
  const { status, stdout } = await simulate('--seeds', seeds, '--kind', kind, '--times', '2')
  expect(stdout).toContain('0 broke a promise')
  expect(stdout).not.toMatch(/^0 worlds/m)
  expect(status).toBe(0)
})
