import { DuckDBInstance } from '@duckdb/node-api'

// DuckDB reads every value of a file's reviews once and hashes it.
const connection = await (await DuckDBInstance.create(process.argv[2], { access_mode: 'READ_ONLY' })).connect()
const result = await connection.run('SELECT count(*), bit_xor(hash(reviews)) FROM reviews')
process.stdout.write(`${(await result.getRows())[0].join(' ')}\n`)
connection.closeSync()
