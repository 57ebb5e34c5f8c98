import * as E from 'fp-ts/Either'
import type { Stream } from '../../connector/cdk/stream'
import { createCutter } from '../../connector/export/cut/page'
import type { CutRecord } from '../../connector/export/cut/record'
import { createReviewItem, reviewFieldTree } from '../../connector/streams/review-item'
import { streams } from '../../connector/streams/streams'
import { reviewOptions, reviewPage } from './review-page'

const cutReviews = createCutter({ ...reviewOptions, fields: reviewFieldTree })

export const cutRecords = (...texts: ReadonlyArray<string>): ReadonlyArray<CutRecord> => {
  const page = cutReviews(reviewPage(...texts))
  if (E.isLeft(page)) throw new Error(JSON.stringify(page.left))
  return page.right.rows
}

const streamOf = (name: string): Stream<never> => streams.find((stream) => stream.name === name) as Stream<never>

/** The rows that a stream makes of the texts of reviews. */
export const projectRows = (name: string, ...texts: ReadonlyArray<string>): ReadonlyArray<string> => {
  const project = streamOf(name).projector()
  return cutRecords(...texts).flatMap((record) =>
    project(createReviewItem(record)).map(({ json }) => Buffer.from(json).toString()),
  )
}

/** Objects inside the reviews have members that the specification lacks. */
export const isUndeclared = (...texts: ReadonlyArray<string>): boolean => {
  const page = cutReviews(reviewPage(...texts))
  if (E.isLeft(page)) throw new Error(JSON.stringify(page.left))
  return page.right.unknownPaths.some((path) => path.includes('.'))
}
