import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { simulate } from './simulate'

/**
 * Tests the worlds that a file of test/simulation lists: a line has a seed, the disturbances that are kept (all: -),
 * and what the world showed.
 */
export const testCorpus = (file: string): void => {
  const worlds = readFileSync(join(__dirname, '../simulation', file), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [seed = '', kept = '', ...words] = line.split(' ')
      return { seed, kept: kept === '-' ? [] : ['--only', kept], showed: words.join(' ') }
    })

  describe('a world that once broke a promise keeps them all', () => {
    test.each(worlds)('seed $seed: $showed', async ({ seed, kept }) => {
      const { status, stdout } = await simulate('--seed', seed, ...kept)
      expect(stdout).toContain('0 broke a promise')
      expect(status).toBe(0)
    })
  })
}
