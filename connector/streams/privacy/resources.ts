import * as O from 'fp-ts/Option'
import type * as t from 'io-ts'
import { attributePaths } from '../../api/cut/compile'
import { Review } from '../../api/model/review'
import type { Stream } from '../../cdk/stream'
import { CommentRecord } from '../comments'
import { EntityRating } from '../entity-ratings'
import type { Resource } from '../source'
import { TransparencyReviewRecord } from '../transparency-reviews'

/** What of the service a path begins with; the deletions hold nothing but key and cursor, of the lookups no field is known. */
export const resources: Readonly<Record<Resource, { readonly codec: t.Any; readonly roots: Roots }>> = {
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
type Roots = Readonly<Record<string, string>>

const names = Object.keys(resources) as ReadonlyArray<Resource>

/** The paths of all attributes of a resource. */
export const pathsOf = (resource: Resource): ReadonlyArray<string> =>
  [...new Set(attributePaths(resources[resource].codec))].map((path) => `${resource}.${path}`)

/** Every path there is. */
export const allPaths: ReadonlyArray<string> = names.flatMap(pathsOf)

/** Where the records of a stream stand, as the beginning of a path; none where no path leads. */
export const rootOf = (stream: string): O.Option<string> => {
  const resource = names.find((name) => stream in resources[name].roots)
  return resource === undefined ? O.none : O.some(`${resource}.${resources[resource].roots[stream] ?? ''}`)
}

/** Paths that streams live by: their keys and cursors. */
export const keysOf = (streams: ReadonlyArray<Stream<never>>): ReadonlySet<string> =>
  new Set(
    streams.flatMap(({ name, primaryKey, cursor }) => {
      const root = rootOf(name)
      return O.isNone(root)
        ? []
        : [...primaryKey, ...(O.isSome(cursor) ? [cursor.value] : [])].map((key) => root.value + key)
    }),
  )

/** Whether a path leads to what streams of their own are made of, which cannot become a string. */
export const isPart = (path: string): boolean =>
  Object.values(resources.export.roots).some((root) => `export.${root}`.startsWith(`${path}.`))
