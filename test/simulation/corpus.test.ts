import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { defects } from '../../simulation/defects'
import { testCorpus } from '../support/corpus'

testCorpus('corpus.txt')

test.each(Object.entries(defects))('the safeguard of "%s" stands once in its file', (_, { file, find }) => {
  expect(readFileSync(join(__dirname, '../../build', file), 'utf8').split(find)).toHaveLength(2)
})
