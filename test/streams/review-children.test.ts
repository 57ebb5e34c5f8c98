import { describe, expect, it } from 'vitest'
import { projectRows } from '../support/review-rows'

const big = '9223372036854775806'
const review = `{"id":${big},"modifiedTime":"2026-01-02T03:04:05.678Z",
  "location":{"id":9007199254740993,"name":"Nörd"},
  "provider":{"name":"no id"},"source":null,"taskDetails":{"id":3,"status":"pending"},
  "contents":[{"question":"without id","sentiments":[{"id":1}]},
    {"id":11,"response":"a }, \\"b\\"","sentiments":[
      {"id":9007199254740995,"reviewId":1,"score":1.50,"contentId":2,"category":"Caf\\u00e9","subCategory":null},
      {"feature":"without id"},{"id":2,"category":"Café"}],
     "liabilities":[{"liabilityId":5,"severity":{"level":2}}]}],
  "engagement":[{"engagement":"thanks"},{}]}`

const time = '"2026-01-02T03:04:05.678Z"'
const version = `"reviewId":${big},"reviewModifiedTime":${time}`

describe('the records made of a review', () => {
  it.each([
    ['review_contents', [`{"id":11,"response":"a }, \\"b\\"",${version}}`]],
    [
      'review_sentiments',
      [
        `{"id":9007199254740995,"score":1.50,"category":"Caf\\u00e9","subCategory":null,"contentId":11,${version}}`,
        `{"id":2,"category":"Café","contentId":11,${version}}`,
      ],
    ],
    ['review_liabilities', [`{"liabilityId":5,"severity":{"level":2},"contentId":11,${version}}`]],
    ['review_tasks', [`{"id":3,"status":"pending",${version}}`]],
    ['review_engagements', [`{"engagement":"thanks","position":0,${version}}`, `{"position":1,${version}}`]],
    ['locations', [`{"id":9007199254740993,"name":"Nörd","reviewModifiedTime":${time}}`]],
    ['providers', []],
    ['sources', []],
    ['categories', [`{"id":"Café","category":"Café","subCategory":null,"reviewModifiedTime":${time}}`]],
  ])('of %s have its text, and a key', (name, expected) => {
    expect(projectRows(name, review)).toEqual(expected)
  })

  it('of a location are repeated only if a newer review shows a change', () => {
    const reviewOf = (id: number, second: number, name: string) =>
      `{"id":${id},"modifiedTime":"2026-01-02T03:04:0${second}.000Z","location":{"id":7,"name":"${name}"}}`
    expect(
      projectRows('locations', reviewOf(1, 5, 'b'), reviewOf(2, 6, 'b'), reviewOf(3, 4, 'a'), reviewOf(4, 7, 'c')),
    ).toEqual([
      '{"id":7,"name":"b","reviewModifiedTime":"2026-01-02T03:04:05.000Z"}',
      '{"id":7,"name":"c","reviewModifiedTime":"2026-01-02T03:04:07.000Z"}',
    ])
  })
})
