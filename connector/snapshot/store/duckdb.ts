import * as E from 'fp-ts/Either'
import { configFailure, type Failure, getOrThrow } from '../../cdk'

type Duckdb = typeof import('@duckdb/node-api')

const loadFailure = ({ code, message }: NodeJS.ErrnoException): Failure =>
  code === 'MODULE_NOT_FOUND' && message.includes("'@duckdb/node-api'")
    ? configFailure(
        'A snapshot needs DuckDB, which is not installed. Run npm ' +
          'install @duckdb/node-api where feedback-connector is installed.',
      )
    : configFailure(
        `A snapshot needs DuckDB, which cannot be loaded here (${message.split('\n')[0]}). ` +
          'Install feedback-connector again without --omit=optional, on a platform that @duckdb/node-api supports.',
      )

/** DuckDB, or why it cannot be loaded. The package is optional: only commands that open a snapshot need it. */
export const findDuckdb = (): E.Either<Failure, Duckdb> =>
  E.tryCatch(
    (): Duckdb => require('@duckdb/node-api'),
    (error) => loadFailure(error as NodeJS.ErrnoException),
  )

const createLoader = (): (() => Duckdb) => {
  let loaded: Duckdb | undefined
  return () => {
    loaded ??= getOrThrow(findDuckdb())
    return loaded
  }
}

/** DuckDB, loaded by the first call and kept, since `require` takes microseconds each time. */
export const loadDuckdb = createLoader()
