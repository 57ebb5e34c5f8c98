import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import { configFailure, type Failure, type Stream } from '../cdk'
import { deletedReviewsStream } from './deleted-reviews'
import { commentsStream } from './feedback/comments'
import { entityRatingsStream } from './feedback/entity-ratings'
import { transparencyReviewsStream } from './feedback/transparency-reviews'
import { checkLookups, createLookupStream, type LookupName, type LookupSettings } from './lookups'
import { applyPrivacyToSchema, checkPrivacy, type PrivacySettings } from './privacy'
import {
  reviewContentsStream,
  reviewEngagementsStream,
  reviewLiabilitiesStream,
  reviewSentimentsStream,
  reviewTasksStream,
} from './review-children'
import { categoriesStream, locationsStream, providersStream, sourcesStream } from './review-dimensions'
import { reviewsStream } from './reviews'
import type { SourceEnv } from './source'
import { addTombstones, type DeletedAtColumn } from './tombstones'

/** Every stream, in the order in which they are read: deletions before reviews (scan.md, Between runs). */
export const streams: ReadonlyArray<Stream<SourceEnv>> = [
  deletedReviewsStream,
  reviewsStream,
  locationsStream,
  providersStream,
  sourcesStream,
  categoriesStream,
  reviewContentsStream,
  reviewSentimentsStream,
  reviewLiabilitiesStream,
  reviewTasksStream,
  reviewEngagementsStream,
  commentsStream,
  transparencyReviewsStream,
  entityRatingsStream,
]

/** What the config has a say in. */
export type StreamSettings = {
  readonly privacy: PrivacySettings
  readonly fromReviews: SourceEnv['entities']['fromReviews']
  /** How deletions are marked in `reviews`; none: they are a stream of their own alone. */
  readonly tombstones: O.Option<DeletedAtColumn>
  /** The lookups whose operation is known; the others are derived from the reviews. */
  readonly lookups: Partial<Readonly<Record<LookupName, LookupSettings>>>
}

const replaceWithLookup =
  (lookups: StreamSettings['lookups']) =>
  (stream: Stream<SourceEnv>): Stream<SourceEnv> => {
    const lookup = stream.name === 'sources' || stream.name === 'categories' ? lookups[stream.name] : undefined
    return lookup === undefined ? stream : createLookupStream(stream.name as LookupName, lookup)
  }

/** The streams under these settings; a failure names what the settings must not ask for. */
export const applyStreamSettings = ({
  privacy,
  fromReviews,
  tombstones,
  lookups,
}: StreamSettings): E.Either<Failure, ReadonlyArray<Stream<SourceEnv>>> =>
  pipe(
    checkPrivacy(privacy, streams, fromReviews),
    E.chain(() => checkLookups(lookups)),
    E.map(() => streams.map(applyPrivacyToSchema(privacy))),
    E.map((all) => all.map(replaceWithLookup(lookups))),
    E.map((all) => (O.isSome(tombstones) ? addTombstones(tombstones.value, all) : all)),
  )

/** Those of `all` in a comma-separated list of names; all of them without one. */
export const selectStreams = (
  all: ReadonlyArray<Stream<SourceEnv>>,
  names: string | undefined,
): E.Either<Failure, ReadonlyArray<Stream<SourceEnv>>> => {
  if (names === undefined) return E.right(all)
  const wanted = names.split(',').map((name) => name.trim())
  const unknown = wanted.filter((name) => !all.some((stream) => stream.name === name))
  return unknown.length > 0
    ? E.left(
        configFailure(
          `--select names ${unknown.join(', ')}, which does not exist. Choose among ${all.map(({ name }) => name).join(', ')}.`,
        ),
      )
    : E.right(all.filter(({ name }) => wanted.includes(name)))
}
