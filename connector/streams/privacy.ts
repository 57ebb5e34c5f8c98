import { createHmac } from 'node:crypto'
import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import type * as t from 'io-ts'
import { Review } from '../api'
import { configFailure, type Failure, type JsonSchema, type Stream } from '../cdk'
import { attributePaths, type PrivacyAction } from '../export'
import { CommentRecord } from './feedback/comments'
import { EntityRating } from './feedback/entity-ratings'
import { TransparencyReviewRecord } from './feedback/transparency-reviews'
import type { ResourceName, SourceEnv } from './source'

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

const knownPaths = new Set(allResourcePaths)

/** What would be right in place of a path that does not exist. */
export const suggestPath = (path: string): string => {
  const [first = '', ...rest] = path.split('.')
  const root = streamRoot(first)
  const meant = O.isSome(root) ? root.value + rest.join('.') : `export.${path}`
  if (knownPaths.has(meant)) return `Write ${meant}`
  if (!(first in privacyResources))
    return `Paths begin with ${Object.keys(privacyResources).join(', ')}, such as export.contents.response`
  const parts = path.split('.')
  const depth = parts.findIndex((_, n) => n > 0 && !knownPaths.has(parts.slice(0, n + 1).join('.')))
  const parent = `${parts.slice(0, depth).join('.')}.`
  const siblings = allResourcePaths.flatMap((one) =>
    one.startsWith(parent) && !one.slice(parent.length).includes('.') ? [one.slice(parent.length)] : [],
  )
  return siblings.length === 0
    ? `${parent.slice(0, -1)} holds no attributes`
    : `${parent.slice(0, -1)} holds ${siblings.join(', ')}`
}

/** What must not leave as it came, by path of the service's resource, such as `export.contents.response`. */
export type PrivacySettings = {
  readonly drop: ReadonlyArray<string>
  readonly hash: ReadonlyArray<string>
  readonly hashKey: string | undefined
}

type FromReviews = SourceEnv['entities']['fromReviews']

/** What the ids of entities are taken from, with the setting that does. */
const entityIdPaths = ({ locations, providers }: FromReviews): ReadonlyMap<string, string> =>
  new Map([
    ...(locations ? ['export.location', 'export.location.id'] : []).map(
      (path) => [path, 'entities.from_reviews.locations'] as const,
    ),
    ...(providers === 'none' ? [] : ['export.provider', `export.provider.${providers}`]).map(
      (path) => [path, 'entities.from_reviews.providers'] as const,
    ),
  ])

/** Refuses paths that do not exist, keys, cursors and what entities are found by, by name. */
export const checkPrivacy = (
  privacy: PrivacySettings,
  streams: ReadonlyArray<Stream<never>>,
  fromReviews: FromReviews,
): E.Either<Failure, PrivacySettings> => {
  const known = new Set(allResourcePaths)
  const keys = keyPaths(streams)
  const taken = entityIdPaths(fromReviews)
  const complaint = (key: 'drop' | 'hash', path: string): ReadonlyArray<string> => {
    if (!known.has(path)) return [`privacy.${key}: there is no ${path}. ${suggestPath(path)}`]
    if (keys.has(path)) return [`privacy.${key}: ${path} is a key or a cursor, which streams need`]
    const taker = taken.get(path)
    if (taker !== undefined)
      return [`privacy.${key}: ${path} is what ${taker} finds entities by. Keep it, or name the entities in the config`]
    return key === 'hash' && holdsChildStream(path)
      ? [`privacy.hash: ${path} holds what other streams are made of. Drop it, or hash its attributes`]
      : []
  }
  const complaints = [
    ...privacy.drop.flatMap((path) => complaint('drop', path)),
    ...privacy.hash.flatMap((path) => complaint('hash', path)),
    ...(privacy.hash.length > 0 && privacy.hashKey === undefined
      ? ['privacy.hash_key is missing, which hash needs']
      : []),
  ]
  return complaints.length === 0
    ? E.right(privacy)
    : E.left(configFailure(`The config is wrong: ${complaints.join('; ')}.`))
}

/** What the cutter does, by resource and by path within it; a hash is HMAC-SHA-256 in hex. */
export const privacyActions = ({ drop, hash, hashKey = '' }: PrivacySettings): SourceEnv['actions'] => {
  const hashed = (text: string): string => createHmac('sha256', hashKey).update(text).digest('hex')
  const all: ReadonlyArray<readonly [string, PrivacyAction]> = [
    ...hash.map((path) => [path, hashed] as const),
    ...drop.map((path) => [path, 'drop'] as const),
  ]
  const within = (resource: string) =>
    all.flatMap(([path, action]) =>
      path.startsWith(`${resource}.`) ? [[path.slice(resource.length + 1), action] as const] : [],
    )
  return Object.fromEntries(
    Object.keys(privacyResources).map((resource) => [resource, Object.fromEntries(within(resource))]),
  )
}

/** The stream with the schema of what then leaves: dropped attributes are gone, hashed ones are strings. */
export const applyPrivacyToSchema =
  ({ drop, hash }: PrivacySettings) =>
  <Env>(stream: Stream<Env>): Stream<Env> => {
    const root = streamRoot(stream.name)
    const within = (path: string): ReadonlyArray<ReadonlyArray<string>> =>
      O.isSome(root) && path.startsWith(root.value) ? [path.slice(root.value.length).split('.')] : []
    const hashed = hash
      .flatMap(within)
      .reduce((schema, path) => changeAttribute(schema, path, toStringSchema), stream.schema)
    return {
      ...stream,
      schema: drop.flatMap(within).reduce((schema, path) => changeAttribute(schema, path, () => undefined), hashed),
    }
  }

const toStringSchema = ({ description }: JsonSchema): JsonSchema => ({
  type: ['null', 'string'],
  description: `${description ?? 'Attribute'}; as HMAC-SHA-256 in hex`,
})

/** Changes the attribute at a path, walking arrays; a stream that leaves it out of its records has nothing to change. */
const changeAttribute = (
  schema: JsonSchema,
  [key = '', ...rest]: ReadonlyArray<string>,
  f: (attribute: JsonSchema) => JsonSchema | undefined,
): JsonSchema => {
  if (schema.items !== undefined)
    return { ...schema, items: changeAttribute(schema.items as JsonSchema, [key, ...rest], f) }
  const properties = schema.properties as Readonly<Record<string, JsonSchema>> | undefined
  const attribute = properties?.[key]
  if (attribute === undefined) return schema
  const { [key]: _, ...others } = properties ?? {}
  const changed = rest.length === 0 ? f(attribute) : changeAttribute(attribute, rest, f)
  return { ...schema, properties: changed === undefined ? others : { ...properties, [key]: changed } }
}
