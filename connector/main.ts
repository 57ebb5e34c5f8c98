import { runProgram } from './cdk'
import { type ProgramName, programs } from './cli'

/**
 * DuckDB's allocator keeps freed memory for a fifth of a second instead of ten, and in one place: it reads this when
 * DuckDB is loaded.
 */
const allocatorSettings = 'narenas:1,dirty_decay_ms:200,muzzy_decay_ms:0'

/**
 * Runs one of the programs in this process. No other file names `process`. What it writes holds the words of patients:
 * only its owner may read it.
 */
export const main = (name: ProgramName): void => {
  process.umask(0o077)
  process.env.DUCKDB_JE_MALLOC_CONF ??= allocatorSettings
  runProgram(name, programs[name], process)
}
