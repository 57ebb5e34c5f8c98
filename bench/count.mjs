import { DuckDBInstance } from '@duckdb/node-api'

// How many reviews a DuckDB file holds.
const connection = await (await DuckDBInstance.create(process.argv[2])).connect()
const [[count]] = await (await connection.run('SELECT count(*) FROM reviews')).getRows()
process.stdout.write(`${count}\n`)
