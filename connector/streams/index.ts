import * as E from 'fp-ts/Either'
import { configFailure, type Failure } from '../cdk/failure'
import type { Stream } from '../cdk/stream'
import { deletedReviews } from './deleted-reviews'
import { reviewContents, reviewEngagements, reviewLiabilities, reviewSentiments, reviewTasks } from './review-parts'
import { categories, locations, providers, sources } from './review-things'
import { reviews } from './reviews'
import type { Source } from './source'

/** Every stream, in the order in which they are read: deletions before reviews (scan.md, Between runs). */
export const streams: ReadonlyArray<Stream<Source>> = [
  deletedReviews,
  reviews,
  locations,
  providers,
  sources,
  categories,
  reviewContents,
  reviewSentiments,
  reviewLiabilities,
  reviewTasks,
  reviewEngagements,
]

/** The streams of a comma-separated list of names; all of them without one. */
export const select = (names: string | undefined): E.Either<Failure, ReadonlyArray<Stream<Source>>> => {
  if (names === undefined) return E.right(streams)
  const wanted = names.split(',').map((name) => name.trim())
  const unknown = wanted.filter((name) => !streams.some((stream) => stream.name === name))
  return unknown.length > 0
    ? E.left(
        configFailure(
          `--select names ${unknown.join(', ')}, which does not exist. Choose among ${streams.map(({ name }) => name).join(', ')}.`,
        ),
      )
    : E.right(streams.filter(({ name }) => wanted.includes(name)))
}
