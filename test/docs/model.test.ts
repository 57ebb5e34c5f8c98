import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const readModel = (file: string): string => readFileSync(join(__dirname, '../model', file), 'utf8')

it('model/README.md explains each counterexample once', () => {
  const expected = [...readModel('configurations.mjs').matchAll(/breaks\('([\w-]+)'/g)].map(([, name = '']) => name)
  const explained = [...readModel('README.md').matchAll(/^\| `((?:without|limit)-[\w-]+)` \|/gm)].map(
    ([, name]) => name,
  )
  expect(expected.length).toBeGreaterThan(8)
  expect([...explained].sort()).toEqual([...expected].sort())
})
