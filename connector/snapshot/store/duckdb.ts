import { CommandError, configFailure, type Failure } from '../../cdk'

type Duckdb = typeof import('@duckdb/node-api')

const loadFailure = ({ code, message }: NodeJS.ErrnoException): Failure =>
  code === 'MODULE_NOT_FOUND' && message.includes("'@duckdb/node-api'")
    ? configFailure(
        'A snapshot needs DuckDB, which is not installed. Run npm install @duckdb/node-api where feedback-connector is installed.',
      )
    : configFailure(
        `A snapshot needs DuckDB, which cannot be loaded here (${message.split('\n')[0]}). ` +
          'Install feedback-connector again without --omit=optional, on a platform that @duckdb/node-api supports.',
      )

const createLoader = (): (() => Duckdb) => {
  let loaded: Duckdb | undefined
  return () => {
    try {
      loaded ??= require('@duckdb/node-api') as Duckdb
      return loaded
    } catch (error) {
      throw new CommandError(loadFailure(error as NodeJS.ErrnoException))
    }
  }
}

/** DuckDB, loaded with the first call. The package is optional: only what opens a snapshot needs it. */
export const loadDuckdb = createLoader()
