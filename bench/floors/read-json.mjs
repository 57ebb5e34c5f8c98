import { DuckDBInstance } from '@duckdb/node-api'

// DuckDB reads the lines by itself into a table of a file: it finds out the types, cuts nothing, merges nothing.
const [, , lines, db] = process.argv
const connection = await (await DuckDBInstance.create(db)).connect()
await connection.run(
  `CREATE TABLE reviews AS
    SELECT unnest(record.data)
    FROM read_json('${lines}', format = 'newline_delimited')
    WHERE type = 'RECORD'`,
)
connection.closeSync()
