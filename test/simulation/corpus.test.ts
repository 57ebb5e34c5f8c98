import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { testCorpus } from '../support/corpus'
import { defects } from './defects'

testCorpus('corpus.txt')

test.each(Object.entries(defects))('the safeguard of "%s" stands once in its file', (_, { file, find }) => {
  expect(readFileSync(join(__dirname, '../../build', file), 'utf8').split(find)).toHaveLength(2)
})
