import fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { type AuditAnswer, decodeAnswer, summarizeAnswer } from '../../connector/audit/answer'
import { draws } from '../support/draws'

const differenceArbitrary = fc.record({
  id: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
  difference: fc.constantFrom('missing', 'extra', 'stale', 'newer', 'rows missing', 'doubled'),
})
type Difference = { readonly id: string; readonly difference: string }

/** How clients of warehouses save the same answer. */
const layouts: ReadonlyArray<readonly [name: string, print: (rows: ReadonlyArray<Difference>) => string]> = [
  ['CSV', (rows) => ['id,difference,found_rows', ...rows.map((row) => `${row.id},${row.difference},1`)].join('\n')],
  [
    'CSV of Windows',
    (rows) =>
      `\ufeff${['"ID";"DIFFERENCE"', ...rows.map((row) => `"${row.id}";"${row.difference}"`)].join('\r\n')}\r\n`,
  ],
  [
    'other columns first',
    (rows) => ['found_rows\tDifference\tId', ...rows.map((row) => `1\t${row.difference}\t${row.id}`)].join('\n'),
  ],
  [
    'unaligned',
    (rows) =>
      ['id|difference', ...rows.map((row) => `${row.id}|${row.difference}`), `(${rows.length} rows)`].join('\n'),
  ],
  ['JSON', (rows) => `[${rows.map((row) => `{"ID": ${row.id}, "DIFFERENCE": "${row.difference}"}`).join(',\n')}]`],
  ['JSON with texts', (rows) => JSON.stringify(rows)],
]
const jsonLines = (rows: ReadonlyArray<Difference>): string =>
  rows.map((row) => `{"difference":"${row.difference}","id":${row.id}}\n`).join('')

const get = (answer: E.Either<{ readonly message: string }, AuditAnswer>): AuditAnswer => {
  if (E.isLeft(answer)) throw new Error(answer.left.message)
  return answer.right
}

describe('decodeAnswer', () => {
  it.each([...layouts, ['JSON lines', jsonLines] as const])('reads every digit of %s', (name, print) => {
    fc.assert(
      fc.property(
        fc.array(differenceArbitrary, { minLength: name === 'JSON lines' ? 1 : 0, maxLength: 20 }),
        (rows) => {
          const { differences } = get(decodeAnswer(print(rows)))
          expect(differences).toEqual(rows.map((row) => ({ ...row, isBehind: false })))
        },
      ),
      draws(100),
    )
  })

  it('reads buckets, with the kinds of buckets', () => {
    const answer = get(
      decodeAnswer('BUCKET,DIFFERENCE,EXPECTED_REVIEWS\n0,missing and extra,3\n16383,rows missing and doubled,4'),
    )
    expect(summarizeAnswer(answer)).toEqual({
      of: 'buckets',
      differences: 2,
      kinds: { 'missing and extra': 1, 'rows missing and doubled': 1 },
      buckets: ['0', '16383'],
    })
  })

  it('knows where the table has an older version', () => {
    const text =
      'id,difference,expected_version,found_version\n1,stale,1000,999\n2,stale,999,1000\n3,stale,5,-1\n4,missing,5,'
    expect(get(decodeAnswer(text)).differences).toMatchObject([
      { isBehind: true },
      { isBehind: false },
      { isBehind: true },
      { isBehind: false },
    ])
  })

  it.each([
    ['', 'is empty'],
    [' \n', 'is empty'],
    [' id | difference \n----+------------\n  7 | extra\n(1 row)', 'drawn for people'],
    ['┌────┬────────────┐\n│ id │ difference │\n', 'drawn for people'],
    ['+----+\n| id |\n', 'drawn for people'],
    ['id\n7', 'no columns bucket and difference'],
    ['7,extra\n8,missing', 'no columns bucket and difference'],
    ['psql: error: connection refused', 'no columns bucket and difference'],
    ['id,difference\n7,extra\n8,wrong', 'row 2 has no id and difference'],
    ["id,difference\n7' OR '1'='1,extra", 'row 1 has no id and difference'],
    ['bucket,difference\n7.5,missing', 'row 1 has no bucket and difference'],
    ['bucket,difference\n7,newer', 'row 1 has no bucket and difference'],
    ['{"id": 1', 'neither a list of objects'],
    ['[1, 2]', 'neither a list of objects'],
    ['{"rows": []}', 'no columns bucket and difference'],
  ])('refuses %j', (text, problem) => {
    const decoded = decodeAnswer(text)
    expect(E.isLeft(decoded) && decoded.left.message).toContain(problem)
  })
})
