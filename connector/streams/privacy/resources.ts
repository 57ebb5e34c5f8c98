import * as O from 'fp-ts/Option'
import type * as t from 'io-ts'
import { attributePaths } from '../../api/cut/compile'
import { Review } from '../../api/model/review'
import type { Stream } from '../../cdk/stream'
import { CommentRecord } from '../comments'
import { EntityRating } from '../entity-ratings'
import type { ResourceName } from '../source'
import { TransparencyReviewRecord } from '../transparency-reviews'

/** What of the service a path begins with; the deletions hold nothing but key and cursor, of the lookups no field is known. */
export const privacyResources: Readonly<Record<ResourceName, { readonly codec: t.Any; readonly roots: StreamRoots }>> =
  {
    export: {
      codec: Review,
      roots: {
        reviews: '',
        locations: 'location.',
        providers: 'provider.',
        sources: 'source.',
        categories: 'contents.sentiments.',
        review_contents: 'contents.',
        review_sentiments: 'contents.sentiments.',
        review_liabilities: 'contents.liabilities.',
        review_tasks: 'taskDetails.',
        review_engagements: 'engagements.',
      },
    },
    comments: { codec: CommentRecord, roots: { comments: '' } },
    transparency_reviews: { codec: TransparencyReviewRecord, roots: { transparency_reviews: '' } },
    entity_ratings: { codec: EntityRating, roots: { entity_ratings: '' } },
  }

/** Where in a resource the records of a stream stand, by stream. */
type StreamRoots = Readonly<Record<string, string>>

const resourceNames = Object.keys(privacyResources) as ReadonlyArray<ResourceName>

/** The paths of all attributes of a resource. */
export const resourcePaths = (resource: ResourceName): ReadonlyArray<string> =>
  [...new Set(attributePaths(privacyResources[resource].codec))].map((path) => `${resource}.${path}`)

/** Every path there is. */
export const allResourcePaths: ReadonlyArray<string> = resourceNames.flatMap(resourcePaths)

/** Where the records of a stream stand, as the beginning of a path; none where no path leads. */
export const streamRoot = (stream: string): O.Option<string> => {
  const resource = resourceNames.find((name) => stream in privacyResources[name].roots)
  return resource === undefined ? O.none : O.some(`${resource}.${privacyResources[resource].roots[stream] ?? ''}`)
}

/** Paths that streams live by: their keys and cursors. */
export const keyPaths = (streams: ReadonlyArray<Stream<never>>): ReadonlySet<string> =>
  new Set(
    streams.flatMap(({ name, primaryKey, cursor }) => {
      const root = streamRoot(name)
      return O.isNone(root)
        ? []
        : [...primaryKey, ...(O.isSome(cursor) ? [cursor.value] : [])].map((key) => root.value + key)
    }),
  )

/** Whether a path leads to what streams of their own are made of, which cannot become a string. */
export const holdsChildStream = (path: string): boolean =>
  Object.values(privacyResources.export.roots).some((root) => `export.${root}`.startsWith(`${path}.`))
