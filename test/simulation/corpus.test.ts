import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { defects } from '../../simulation/defects'
import { simulate } from '../support/simulate'

/** Worlds that once broke a promise. */
const corpus = readFileSync(join(__dirname, 'corpus.txt'), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => {
    const [seed = '', kept = '', ...words] = line.split(' ')
    return { seed, kept: kept === '-' ? [] : ['--only', kept], showed: words.join(' ') }
  })

describe('a world that once broke a promise keeps them all', { timeout: 120_000 }, () => {
  test.each(corpus)('seed $seed: $showed', async ({ seed, kept }) => {
    const { status, stdout } = await simulate('--seed', seed, ...kept)
    expect(stdout).toContain('0 broke a promise')
    expect(status).toBe(0)
  })
})

test.each(Object.entries(defects))('the safeguard of "%s" stands once in its file', (_, { file, find }) => {
  expect(readFileSync(join(__dirname, '../../build', file), 'utf8').split(find)).toHaveLength(2)
})
