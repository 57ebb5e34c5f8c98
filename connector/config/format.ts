import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as t from 'io-ts'
import { configFailure, decodeValue, type Failure, findUnknownKeys, type JsonSchema, toJsonSchema } from '../cdk'

/** Everything that is known of a program's configuration. */
export type ConfigFormat<A> = {
  readonly codec: t.Type<A, unknown>
  /** JSON schema of the form that platforms draw: spec/source.json, spec/destination.json. */
  readonly spec: JsonSchema
  readonly documentationUrl: string
  /** The configuration and its keys that have no effect; a failure names the path of every wrong key. */
  readonly decode: (
    value: unknown,
  ) => E.Either<Failure, { readonly config: A; readonly unknownKeys: ReadonlyArray<string> }>
}

export const createConfigFormat = <A>(codec: t.Type<A, unknown>, documentationUrl: string): ConfigFormat<A> => {
  const spec: JsonSchema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Feedback Data Service',
    ...toJsonSchema(codec),
  }
  return {
    codec,
    spec,
    documentationUrl,
    decode: (value) =>
      pipe(
        decodeValue(codec, removeNulls(value)),
        E.bimap(
          (errors) =>
            configFailure(
              `The config is wrong: ${errors.map(({ path, problem }) => `${path || 'it'} ${problem}`).join('; ')}.`,
            ),
          (config) => ({ config, unknownKeys: findUnknownKeys(spec, value) }),
        ),
      ),
  }
}

/** Forms send null for a field that was left empty. */
const removeNulls = (value: unknown): unknown =>
  t.UnknownRecord.is(value)
    ? Object.fromEntries(
        Object.entries(value).flatMap(([key, member]) => (member === null ? [] : [[key, removeNulls(member)]])),
      )
    : value
