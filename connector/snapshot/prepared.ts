import type { DuckDBConnection, DuckDBPreparedStatement } from '@duckdb/node-api'
import type { Database } from './database'

/** More would be of tables that have changed since. */
const maxPreparedStatements = 64

/** Statements that are prepared once; they hold the file open until they are forgotten. */
export const createStatementCache = (connection: DuckDBConnection) => {
  const statements = new Map<string, DuckDBPreparedStatement>()
  const forget = () => {
    for (const statement of statements.values()) statement.destroySync()
    statements.clear()
  }
  const run: Database['run'] = async (sql, values, types) => {
    const held = statements.get(sql)
    if (held === undefined && statements.size >= maxPreparedStatements) forget()
    const statement = held ?? (await connection.prepare(sql))
    statements.set(sql, statement)
    if (values !== undefined) statement.bind(values, types)
    await statement.run()
    statement.clearBindings()
  }
  return { run, forget }
}
