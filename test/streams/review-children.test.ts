import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import type { Stream } from '../../connector/cdk/stream'
import { createCutter } from '../../connector/export/cut/page'
import type { CutRecord } from '../../connector/export/export-page'
import { createReviewItem, reviewFieldTree } from '../../connector/streams/review-item'
import { streams } from '../../connector/streams/streams'
import { reviewOptions, reviewPage } from '../support/review-page'

const big = '9223372036854775806'
const review = `{"id":${big},"modifiedTime":"2026-01-02T03:04:05.678Z","location":{"id":9007199254740993,"name":"Nörd"},
  "provider":{"name":"no id"},"source":null,"taskDetails":{"id":3,"status":"pending"},
  "contents":[{"question":"without id","sentiments":[{"id":1}]},
    {"id":11,"response":"a }, \\"b\\"","sentiments":[
      {"id":9007199254740995,"reviewId":1,"score":1.50,"contentId":2,"category":"Caf\\u00e9","subCategory":null},
      {"feature":"without id"},{"id":2,"category":"Café"}],
     "liabilities":[{"liabilityId":5,"severity":{"level":2}}]}],
  "engagement":[{"engagement":"thanks"},{}]}`

const cutReviews = createCutter({ ...reviewOptions, fields: reviewFieldTree })

const cuts = (...texts: ReadonlyArray<string>): ReadonlyArray<CutRecord> => {
  const answer = cutReviews(reviewPage(...texts))
  if (E.isLeft(answer)) throw new Error(JSON.stringify(answer.left))
  return answer.right.rows
}

const streamOf = (name: string): Stream<never> => streams.find((stream) => stream.name === name) as Stream<never>

const rows = (name: string, ...texts: ReadonlyArray<string>): ReadonlyArray<string> => {
  const project = streamOf(name).projector()
  return cuts(...texts).flatMap((cut) => project(createReviewItem(cut)).map(({ json }) => Buffer.from(json).toString()))
}

const time = '"2026-01-02T03:04:05.678Z"'
const version = `"reviewId":${big},"reviewModifiedTime":${time}`

describe('what a review holds', () => {
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
    ['categories', [`{"category":"Café","subCategory":"","reviewModifiedTime":${time}}`]],
  ])('%s', (name, expected) => {
    expect(rows(name, review)).toEqual(expected)
  })

  it('sends a thing again only where a newer review shows it changed', () => {
    const at = (id: number, second: number, name: string) =>
      `{"id":${id},"modifiedTime":"2026-01-02T03:04:0${second}.000Z","location":{"id":7,"name":"${name}"}}`
    expect(rows('locations', at(1, 5, 'b'), at(2, 6, 'b'), at(3, 4, 'a'), at(4, 7, 'c'))).toEqual([
      '{"id":7,"name":"b","reviewModifiedTime":"2026-01-02T03:04:05.000Z"}',
      '{"id":7,"name":"c","reviewModifiedTime":"2026-01-02T03:04:07.000Z"}',
    ])
  })
})
