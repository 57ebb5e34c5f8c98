import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import { configFailure, type Failure } from '../cdk/failure'
import type { Stream } from '../cdk/stream'
import { comments } from './comments'
import { deletedReviews } from './deleted-reviews'
import { entityRatings } from './entity-ratings'
import { checkLookups, lookupStream } from './lookups'
import type { Lookup, LookupName } from './lookups/rows'
import { checkPrivacy, type Privacy, withPrivacy } from './privacy'
import { reviewContents, reviewEngagements, reviewLiabilities, reviewSentiments, reviewTasks } from './review-parts'
import { categories, locations, providers, sources } from './review-things'
import { reviews } from './reviews'
import type { Source } from './source'
import { type DeletedAt, withTombstones } from './tombstones'
import { transparencyReviews } from './transparency-reviews'

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
  comments,
  transparencyReviews,
  entityRatings,
]

/** What the config has a say in. */
export type Settings = {
  readonly privacy: Privacy
  readonly fromReviews: Source['entities']['fromReviews']
  /** How deletions are marked in `reviews`; none: they are a stream of their own alone. */
  readonly tombstones: O.Option<DeletedAt>
  /** The lookups whose operation is known; the others are derived from the reviews. */
  readonly lookups: Partial<Readonly<Record<LookupName, Lookup>>>
}

const withLookups =
  (lookups: Settings['lookups']) =>
  (stream: Stream<Source>): Stream<Source> => {
    const lookup = stream.name === 'sources' || stream.name === 'categories' ? lookups[stream.name] : undefined
    return lookup === undefined ? stream : lookupStream(stream.name as LookupName, lookup)
  }

/** The streams under these settings; a failure names what the settings must not ask for. */
export const streamsFor = ({
  privacy,
  fromReviews,
  tombstones,
  lookups,
}: Settings): E.Either<Failure, ReadonlyArray<Stream<Source>>> =>
  pipe(
    checkPrivacy(privacy, streams, fromReviews),
    E.chain(() => checkLookups(lookups)),
    E.map(() => streams.map(withPrivacy(privacy))),
    E.map((all) => all.map(withLookups(lookups))),
    E.map((all) => (O.isSome(tombstones) ? withTombstones(tombstones.value, all) : all)),
  )

/** Those of `all` in a comma-separated list of names; all of them without one. */
export const select = (
  all: ReadonlyArray<Stream<Source>>,
  names: string | undefined,
): E.Either<Failure, ReadonlyArray<Stream<Source>>> => {
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
