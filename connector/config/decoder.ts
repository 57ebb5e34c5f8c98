import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as t from 'io-ts'
import { configFailure, decodeValue, type Failure, findUnknownKeys, type JsonSchema } from '../cdk'

/** A configuration and the keys in it that mean nothing to us; a failure names every wrong key path. */
export const createConfigDecoder =
  <A>(codec: t.Type<A, unknown>, spec: JsonSchema) =>
  (value: unknown): E.Either<Failure, { readonly config: A; readonly unknownKeys: ReadonlyArray<string> }> =>
    pipe(
      decodeValue(codec, removeNulls(value)),
      E.bimap(
        (wrong) =>
          configFailure(
            `The config is wrong: ${wrong.map(({ path, problem }) => `${path || 'it'} ${problem}`).join('; ')}.`,
          ),
        (config) => ({ config, unknownKeys: findUnknownKeys(spec, value) }),
      ),
    )

/** Forms send null for a field that was left empty. */
const removeNulls = (value: unknown): unknown =>
  t.UnknownRecord.is(value)
    ? Object.fromEntries(
        Object.entries(value).flatMap(([key, inner]) => (inner === null ? [] : [[key, removeNulls(inner)]])),
      )
    : value
