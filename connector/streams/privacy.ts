import { createHmac } from 'node:crypto'
import * as E from 'fp-ts/Either'
import type { Action } from '../api/cut'
import { attributePaths } from '../api/cut/compile'
import { Review } from '../api/model/review'
import { configFailure, type Failure } from '../cdk/failure'
import type { JsonSchema } from '../cdk/schema'
import type { Stream } from '../cdk/stream'

/** What must not leave as it came, by path of the service's resource, such as `export.contents.response`. */
export type Privacy = {
  readonly drop: ReadonlyArray<string>
  readonly hash: ReadonlyArray<string>
  readonly hashKey: string | undefined
}

const prefix = 'export.'

/** Where in a review the records of a stream stand; the streams of deletions hold nothing of a person. */
const roots: Readonly<Record<string, string>> = {
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
}

/** Paths that streams live by: keys, cursors, and whole parts that streams are made of, which cannot become a string. */
const keysOf = (streams: ReadonlyArray<Stream<never>>): ReadonlySet<string> =>
  new Set([
    'modifiedTime',
    ...streams.flatMap(({ name, primaryKey }) => {
      const root = roots[name]
      return root === undefined ? [] : primaryKey.map((key) => root + key)
    }),
  ])

const isPart = (path: string): boolean => Object.values(roots).some((root) => root.startsWith(`${path}.`))

/** Refuses paths that do not exist, keys and cursors, by name. */
export const checkPrivacy = (privacy: Privacy, streams: ReadonlyArray<Stream<never>>): E.Either<Failure, Privacy> => {
  const known = new Set(attributePaths(Review))
  const keys = keysOf(streams)
  const complaint = (key: 'drop' | 'hash', path: string): ReadonlyArray<string> => {
    const inner = path.slice(prefix.length)
    if (!path.startsWith(prefix) || !known.has(inner))
      return [`privacy.${key}: there is no ${path}. Paths look like export.contents.response`]
    if (keys.has(inner)) return [`privacy.${key}: ${path} is a key or a cursor, which streams need`]
    return key === 'hash' && isPart(inner)
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

/** What the cutter does, by path within a review; a hash is HMAC-SHA-256 in hex. */
export const actionsOf = ({ drop, hash, hashKey = '' }: Privacy): Readonly<Record<string, Action>> => {
  const hashed = (text: string): string => createHmac('sha256', hashKey).update(text).digest('hex')
  return Object.fromEntries([
    ...hash.map((path) => [path.slice(prefix.length), hashed] as const),
    ...drop.map((path) => [path.slice(prefix.length), 'drop'] as const),
  ])
}

/** The stream with the schema of what then leaves: dropped attributes are gone, hashed ones are strings. */
export const withPrivacy =
  ({ drop, hash }: Privacy) =>
  <Env>(stream: Stream<Env>): Stream<Env> => {
    const root = roots[stream.name]
    const within = (path: string): ReadonlyArray<ReadonlyArray<string>> => {
      const inner = path.slice(prefix.length)
      return root !== undefined && inner.startsWith(root) ? [inner.slice(root.length).split('.')] : []
    }
    const hashed = hash.flatMap(within).reduce((schema, path) => change(schema, path, asString), stream.schema)
    return {
      ...stream,
      schema: drop.flatMap(within).reduce((schema, path) => change(schema, path, () => undefined), hashed),
    }
  }

const asString = ({ description }: JsonSchema): JsonSchema => ({
  type: ['null', 'string'],
  description: `${description ?? 'Attribute'}; as HMAC-SHA-256 in hex`,
})

/** Changes the attribute at a path, walking arrays; a stream that leaves it out of its records has nothing to change. */
const change = (
  schema: JsonSchema,
  [key = '', ...rest]: ReadonlyArray<string>,
  f: (attribute: JsonSchema) => JsonSchema | undefined,
): JsonSchema => {
  if (schema.items !== undefined) return { ...schema, items: change(schema.items as JsonSchema, [key, ...rest], f) }
  const properties = schema.properties as Readonly<Record<string, JsonSchema>> | undefined
  const attribute = properties?.[key]
  if (attribute === undefined) return schema
  const { [key]: _, ...others } = properties ?? {}
  const changed = rest.length === 0 ? f(attribute) : change(attribute, rest, f)
  return { ...schema, properties: changed === undefined ? others : { ...properties, [key]: changed } }
}
