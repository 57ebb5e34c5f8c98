import { testCorpus } from '../support/corpus'

testCorpus('corpus-long.txt')
