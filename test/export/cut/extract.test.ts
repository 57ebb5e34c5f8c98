import * as fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { createExtractor, pickRecordAttributes } from '../../../connector/export/cut/extract'
import { createOffsetReader } from '../../../connector/export/cut/offsets'
import { createCutter } from '../../../connector/export/cut/page'
import { draws } from '../../support/draws'
import { cutReviews, expectCut, reviewJson, reviewOptions, reviewPage } from '../../support/review-page'
import { printNode, reviewNode } from '../../support/review-text'

const pickText = (wanted: ReadonlyArray<string>, json: string | Uint8Array): string =>
  Buffer.from(pickRecordAttributes(new Set(wanted))(Buffer.from(json))).toString()

describe('pickRecordAttributes', () => {
  it('leaves the wanted attributes as they came', () => {
    const json = '{ "id" : 9007199254740993 , "r\\u0061ting":4.50,"contents":[{"id":1}], "größe":"ü" }'
    expect(pickText(['id', 'rating', 'größe'], json)).toBe(
      '{ "id" : 9007199254740993 , "r\\u0061ting":4.50,"größe":"ü" }',
    )
    expect(pickText([], json)).toBe('{}')
    expect(pickText(['id'], '{}')).toBe('{}')
  })

  it('agrees with a parser on every record that was cut', () => {
    const wanted = ['id', 'modifiedTime', 'contents', 'unknown_attributes', 'textAnalytics']
    let recordCount = 0
    fc.assert(
      fc.property(reviewNode, (record) => {
        const answer = cutReviews(reviewPage(printNode(record)))
        if (E.isLeft(answer)) return
        for (const { json } of answer.right.rows) {
          recordCount += 1
          const all = Object.entries(JSON.parse(Buffer.from(json).toString()))
          expect(JSON.parse(pickText(wanted, json))).toEqual(
            Object.fromEntries(all.filter(([key]) => wanted.includes(key))),
          )
        }
      }),
      draws(500),
    )
    expect(recordCount).toBeGreaterThan(300)
  })
})

describe('createExtractor', () => {
  const fields = { location: { id: 'value', name: 'value' } } as const
  const cut = createCutter({ ...reviewOptions, fields })
  const readOffsets = createOffsetReader(fields)
  const locationOf = (members: string) => {
    const [row] = expectCut(cut(reviewPage(reviewJson(`"location":{${members}}`)))).rows
    const location = row && readOffsets(row).location
    if (row === undefined || location === undefined) throw new Error('no location')
    return { json: row.json, location }
  }

  it('leaves out the first, the last, all or none of the members', () => {
    const extractObject = createExtractor()
    for (const members of [
      '"id":1,"x":2,"name":"n"',
      '"name":"n","id":1,"x":2',
      '"x":2,"id":1,"name":"n"',
      '"x":2',
      '',
    ]) {
      const { json, location } = locationOf(members)
      const { id, name } = location.members
      for (const excluded of [[], [id], [name], [name, id]]) {
        const rest = JSON.parse(`{${members}}`)
        if (excluded.includes(id)) delete rest.id
        if (excluded.includes(name)) delete rest.name
        const text = Buffer.from(extractObject(json, location, excluded, '"a":3').json).toString()
        expect(text).toBe(JSON.stringify({ ...rest, a: 3 }))
      }
    }
  })

  it('gives rows that no later row overwrites, whichever extractor makes it', () => {
    const extractors = [createExtractor(), createExtractor()]
    const { json, location } = locationOf('"id":1,"name":"n"')
    const added = (i: number): string => `"a":"${i} ${'x'.repeat(i % 50)}"`
    const rows = Array.from({ length: 4000 }, (_, i) =>
      extractors[i % 2]?.(json, location, [location.members.name], added(i)),
    )
    rows.forEach((row, i) => {
      expect(Buffer.from(row?.json ?? []).toString()).toBe(`{"id":1,${added(i)}}`)
    })
  })
})
