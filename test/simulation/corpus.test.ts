import { testCorpus } from '../support/corpus'

testCorpus('corpus.txt')
