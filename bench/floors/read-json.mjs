import { DuckDBInstance } from '@duckdb/node-api'

// DuckDB reads the lines into a table of a file by itself: it infers the types, and neither cuts nor merges anything.
const [, , lines, db] = process.argv
const connection = await (await DuckDBInstance.create(db)).connect()
await connection.run(
  `CREATE TABLE reviews AS
    SELECT unnest(record.data)
    FROM read_json('${lines}', format = 'newline_delimited')
    WHERE type = 'RECORD'`,
)
connection.closeSync()
