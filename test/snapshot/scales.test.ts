import { describe, expect, it } from 'vitest'
import { decodeScales, readScales } from '../../connector/snapshot/scales'
import { writeTempFile } from '../support/files'

const decode = (text: string) => decodeScales('scales.csv', text)

describe('a file of scales', () => {
  it('has a line for each question', () =>
    expect(decode('question_id,lowest,highest,best\nQ1,1,10,\n"> Your grade, please? > Stars",1,6,1\n')).toEqual([
      { question_id: 'Q1', lowest: 1, highest: 10, best: null },
      { question_id: '> Your grade, please? > Stars', lowest: 1, highest: 6, best: 1 },
    ]))

  it('may leave out best, and have semicolons and a decimal point', async () =>
    expect(await readScales(writeTempFile(Buffer.from('Highest;lowest;question_id\n0.5;-0.5;Q1')))).toEqual([
      { question_id: 'Q1', lowest: -0.5, highest: 0.5, best: null },
    ]))

  it.each([
    ['question_id,lowest\nQ,1', ': the first line must name the columns question_id, lowest and highest'],
    ['question_id,lowest,highest,lowest\nQ,1,2,3', ': the first line names the column lowest twice'],
    ['question_id,lowest,highest\n,1,5', ', line 2: question_id is empty'],
    ['question_id,lowest,highest\nQ,,5', ', line 2: lowest is empty'],
    ['question_id,lowest,highest\nQ,1,"5,5"', ', line 2: highest must be a number such as 5 or 0.5, not 5,5'],
    ['question_id,lowest,highest\nQ,5,1', ', line 2: lowest must be below highest'],
    ['question_id,lowest,highest,best\nQ,1,5,6', ', line 2: best must lie on the scale'],
    ['question_id,lowest,highest\nQ,1,5\nR,1,5\nQ,1,10', ', line 4: Q stands in line 2 too'],
    ['question_id,lowest,highest\nQ,1,5,6', ', line 2: there are 4 cells and 3 columns'],
  ])('%j is refused', (text, message) => expect(() => decode(text)).toThrow(`scales.csv${message}`))
})
