import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as t from 'io-ts'
import { configFailure, type Failure } from './cdk/failure'
import { decode } from './cdk/json'
import type { JsonSchema } from './cdk/schema'
import { undeclared } from './cdk/settings'

/** A configuration and the keys in it that mean nothing to us; a failure names every wrong key path. */
export const configReader =
  <A>(codec: t.Type<A, unknown>, spec: JsonSchema) =>
  (value: unknown): E.Either<Failure, { readonly config: A; readonly unknownKeys: ReadonlyArray<string> }> =>
    pipe(
      decode(codec, withoutNulls(value)),
      E.bimap(
        (wrong) =>
          configFailure(
            `The config is wrong: ${wrong.map(({ path, problem }) => `${path || 'it'} ${problem}`).join('; ')}.`,
          ),
        (config) => ({ config, unknownKeys: undeclared(spec, value) }),
      ),
    )

/** Forms send null for a field that was left empty. */
const withoutNulls = (value: unknown): unknown =>
  t.UnknownRecord.is(value)
    ? Object.fromEntries(
        Object.entries(value).flatMap(([key, inner]) => (inner === null ? [] : [[key, withoutNulls(inner)]])),
      )
    : value
