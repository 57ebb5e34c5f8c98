/**
 * A DuckDB file: opening it, running SQL on it, and the values it returns. Snapshots and the sandbox keep their data in one.
 * Takes a path; returns a `Database` whose methods reject with DuckDB's own errors, or a `Failure` that tells the user why the
 * file does not open.
 */
export { type Database, openDatabase, quoteIdentifier, quoteLiteral } from './database'
export { findAddressProblem, findPathProblem } from './file'
export type { CellValue, RowValues } from './values'
