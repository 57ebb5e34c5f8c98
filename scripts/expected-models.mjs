import { createReadStream } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { DuckDBInstance } from '@duckdb/node-api'
import { rolldown } from 'rolldown'

const usage = `Prints the rows that a model must have, computed in plain TypeScript (test/support/oracle.ts), one JSON
object per line. Every region is (unknown).

node scripts/expected-models.mjs MODEL (--db SNAPSHOT | --reviews FILE) [OPTION…]
  --db SNAPSHOT      a file of feedback sync; its history gives the sources of deleted reviews
  --reviews FILE     or reviews as the service sends them, one a line
  --as-of TIME       the instant that ages are counted to (now)
  --time-zone ZONE   the reporting time zone (UTC)
  --open-days N --low-score N --min-reviews N   alert_open_days, alert_score, min_reviews (14, 1.5, 5)`

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: Object.fromEntries(
    ['db', 'reviews', 'as-of', 'time-zone', 'open-days', 'low-score', 'min-reviews'].map((name) => [
      name,
      { type: 'string' },
    ]),
  ),
})

const readLines = async (file) => {
  const reviews = []
  for await (const json of createInterface({ input: createReadStream(file) }))
    if (json.trim() !== '') reviews.push({ json })
  return { reviews, deletions: [], earlier: [] }
}

/** The rows of a snapshot as the service sent them: times as text, without null attributes. */
const readSnapshot = async (file) => {
  const instance = await DuckDBInstance.create(file, { access_mode: 'READ_ONLY' })
  const connection = await instance.connect()
  const query = async (sql) => (await connection.runAndReadAll(sql)).getRowObjects()
  await connection.run("SET TimeZone = 'UTC'")
  const columns = await query('SELECT table_name, column_name, data_type FROM duckdb_columns()')
  const read = async (table) => {
    const own = columns.filter(({ table_name, column_name }) => table_name === table && !column_name.startsWith('_'))
    const times = own.filter(({ data_type }) => data_type === 'TIMESTAMP WITH TIME ZONE')
    const names = own.map(({ column_name }) => `"${column_name}"`).join(', ')
    const texts = times.map(({ column_name: name }) => `strftime("${name}", '%Y-%m-%dT%H:%M:%S.%gZ') AS "${name}"`)
    const replace = texts.length === 0 ? '' : `REPLACE (${texts.join(', ')})`
    return own.length === 0
      ? []
      : query(
          `SELECT to_json(r)::VARCHAR AS json FROM (SELECT * ${replace} FROM (SELECT ${names} FROM "${table}")) AS r`,
        )
  }
  const deletions = (await read('deleted_reviews')).map(({ json }) => ({
    id: /"id":(\d+)/.exec(json)[1],
    modifiedTime: JSON.parse(json).modifiedTime,
  }))
  return { reviews: await read('reviews'), deletions, earlier: await read('_history_reviews') }
}

const bundle = await rolldown({ input: join(root, 'test/support/oracle.ts'), platform: 'node', logLevel: 'warn' })
const { output } = await bundle.generate({ format: 'esm' })
const { expectedModels } = await import(`data:text/javascript;base64,${Buffer.from(output[0].code).toString('base64')}`)

const [model] = positionals
if (model === undefined || (values.db === undefined) === (values.reviews === undefined)) {
  console.error(usage)
  process.exit(2)
}
const rows = expectedModels({
  ...(values.db === undefined ? await readLines(values.reviews) : await readSnapshot(values.db)),
  regions: [],
  asOf: values['as-of'] === undefined ? Date.now() : Date.parse(values['as-of']),
  timeZone: values['time-zone'] ?? 'UTC',
  openDays: Number(values['open-days'] ?? 14),
  lowScore: Number(values['low-score'] ?? 1.5),
  minReviews: Number(values['min-reviews'] ?? 5),
})
if (rows[model] === undefined) {
  console.error(`There is no model ${model}. Choose one of ${Object.keys(rows).join(', ')}.`)
  process.exit(2)
}
for (const row of rows[model]) console.log(JSON.stringify(row))
