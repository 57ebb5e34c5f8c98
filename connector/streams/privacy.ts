import { createHmac } from 'node:crypto'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import type * as t from 'io-ts'
import { Review } from '../api'
import { configFailure, type Failure, type JsonSchema, type Stream } from '../cdk'
import { attributePaths, type PrivacyAction } from '../export'
import { CommentRecord, TransparencyReviewRecord } from './entities/operations'
import { EntityRating } from './entities/ratings'
import { ManagedLocationRecord } from './managed-locations'
import type { ResourceName, ReviewEntitySettings, SourceEnv } from './source-env'

/**
 * The resources of the service that have attributes to hide. Deletions have only a key and a cursor, and no field of
 * the other lookups is specified.
 */
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
        questions: 'contents.',
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
    managed_locations: { codec: ManagedLocationRecord, roots: { managed_locations: '' } },
  }

/** The path of a stream's records within a resource, by stream name; empty or ending with a dot. */
type StreamRoots = Readonly<Record<string, string>>

const resourceNames = Object.keys(privacyResources) as ReadonlyArray<ResourceName>

/** The paths of all attributes of a resource. */
export const resourcePaths = (resource: ResourceName): ReadonlyArray<string> =>
  [...new Set(attributePaths(privacyResources[resource].codec))].map((path) => `${resource}.${path}`)

/** Every path that exists. */
const allResourcePaths: ReadonlyArray<string> = resourceNames.flatMap(resourcePaths)

/** The path of a stream's records, such as `export.contents.`; none if it has no attributes to hide. */
const streamRoot = (stream: string): O.Option<string> => {
  const resource = resourceNames.find((name) => stream in privacyResources[name].roots)
  return resource === undefined ? O.none : O.some(`${resource}.${privacyResources[resource].roots[stream] ?? ''}`)
}

/** The attributes that form a key, by stream, if the key itself is no attribute of the service. */
const keyParts: Readonly<Record<string, ReadonlyArray<string>>> = {
  categories: ['category', 'subCategory'],
  questions: ['questionCode', 'question', 'questionType'],
}

/** The paths of all primary keys and cursors, which streams need. */
export const keyPaths = (streams: ReadonlyArray<Stream<never>>): ReadonlySet<string> =>
  new Set(
    streams.flatMap(({ name, primaryKey, cursor }) => {
      const root = streamRoot(name)
      return O.isNone(root)
        ? []
        : [...(keyParts[name] ?? primaryKey), ...(O.isSome(cursor) ? [cursor.value] : [])].map(
            (key) => root.value + key,
          )
    }),
  )

/**
 * The path that `privacy.drop` takes for an attribute of a stream; none if it cannot be dropped, such as the keys of
 * `streams`.
 */
export const findPrivacyPath = (
  streams: ReadonlyArray<Stream<never>>,
  stream: string,
  path: ReadonlyArray<string>,
): O.Option<string> =>
  pipe(
    streamRoot(stream),
    O.map((root) => root + path.join('.')),
    O.filter((candidate) => knownPaths.has(candidate) && !keyPaths(streams).has(candidate)),
  )

/** Other streams are made from the attribute at this path, so it cannot become a string. */
const holdsChildStream = (path: string): boolean =>
  Object.values(privacyResources.export.roots).some((root) => `export.${root}`.startsWith(`${path}.`))

const knownPaths = new Set(allResourcePaths)

/** Advice for a path that does not exist. */
const suggestPath = (path: string): string => {
  const [first = '', ...rest] = path.split('.')
  const candidate = pipe(
    streamRoot(first),
    O.match(
      () => `export.${path}`,
      (prefix) => prefix + rest.join('.'),
    ),
  )
  if (knownPaths.has(candidate)) return `Write ${candidate}`
  if (!(first in privacyResources))
    return `Paths begin with ${Object.keys(privacyResources).join(', ')}, such as export.contents.response`
  const parts = path.split('.')
  const depth = parts.findIndex((_, n) => n > 0 && !knownPaths.has(parts.slice(0, n + 1).join('.')))
  const parent = `${parts.slice(0, depth).join('.')}.`
  const siblings = allResourcePaths.flatMap((known) =>
    known.startsWith(parent) && !known.slice(parent.length).includes('.') ? [known.slice(parent.length)] : [],
  )
  return siblings.length === 0
    ? `${parent.slice(0, -1)} holds no attributes`
    : `${parent.slice(0, -1)} holds ${siblings.join(', ')}`
}

/**
 * The attributes to drop and to hash, by their path in a resource of the service, such as `export.contents.response`.
 */
export type PrivacySettings = {
  readonly drop: ReadonlyArray<string>
  readonly hash: ReadonlyArray<string>
  readonly hashKey: string | undefined
}

/** The paths from which the ids of entities are taken, each with the setting that does so. */
const entityIdPaths = ({ locations, providers }: ReviewEntitySettings): ReadonlyMap<string, string> =>
  new Map([
    ...(locations ? ['export.location', 'export.location.id'] : []).map(
      (path) => [path, 'entities.from_reviews.locations'] as const,
    ),
    ...(providers === 'none' ? [] : ['export.provider', `export.provider.${providers}`]).map(
      (path) => [path, 'entities.from_reviews.providers'] as const,
    ),
  ])

/**
 * Refuses paths that do not exist, keys, cursors, and attributes by which entities are found in the reviews. Names
 * each.
 */
export const checkPrivacy = (
  privacy: PrivacySettings,
  streams: ReadonlyArray<Stream<never>>,
  fromReviews: ReviewEntitySettings,
): E.Either<Failure, PrivacySettings> => {
  const keys = keyPaths(streams)
  const idPaths = entityIdPaths(fromReviews)
  const findProblems = (key: 'drop' | 'hash', path: string): ReadonlyArray<string> => {
    if (!knownPaths.has(path)) return [`privacy.${key}: there is no ${path}. ${suggestPath(path)}`]
    if (keys.has(path)) return [`privacy.${key}: ${path} is a key or a cursor, which streams need`]
    const setting = idPaths.get(path)
    if (setting !== undefined)
      return [`privacy.${key}: ${path} is how ${setting} finds entities. Keep it, or name the entities in the config`]
    return key === 'hash' && holdsChildStream(path)
      ? [`privacy.hash: ${path} holds what other streams are made of. Drop it, or hash its attributes`]
      : []
  }
  const problems = [
    ...privacy.drop.flatMap((path) => findProblems('drop', path)),
    ...privacy.hash.flatMap((path) => findProblems('hash', path)),
    ...(privacy.hash.length > 0 && privacy.hashKey === undefined
      ? ['privacy.hash_key is missing, which hash needs']
      : []),
  ]
  return problems.length === 0
    ? E.right(privacy)
    : E.left(configFailure(`The config is wrong: ${problems.join('; ')}.`))
}

/** The actions of the cutter, by resource and by path within it. A hash is HMAC-SHA-256 in hex. */
export const privacyActions = ({ drop, hash, hashKey = '' }: PrivacySettings): SourceEnv['actions'] => {
  const hashText = (text: string): string => createHmac('sha256', hashKey).update(text).digest('hex')
  const all: ReadonlyArray<readonly [string, PrivacyAction]> = [
    ...hash.map((path) => [path, hashText] as const),
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

/** The stream with the record schema after privacy: without dropped attributes, and with hashed ones as strings. */
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

/** Changes the attribute at a path, also within arrays. A schema without it stays as it is. */
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
