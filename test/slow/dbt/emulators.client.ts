import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Sandbox, startSandbox } from '../../../connector/sandbox/start'
import { createJsonFolder } from '../../support/files'
import { runProgram } from '../../support/program'
import { random } from '../../support/random'
import { sandboxConfig } from '../../support/sandbox'
import { pythonProgram } from '../interop/shell'
import { type Postgres, startPostgres } from './postgres'

const seed = Number(process.env.SEED ?? 20_261_123)
const bucketCount = 256

type Row = readonly [id: string, modifiedTime: string]
type Table = ReadonlyArray<Row>
/** The rows of each statement's answer: the buckets, then the reviews. */
type Answers = ReadonlyArray<ReadonlyArray<ReadonlyArray<string | null>>>

const files = createJsonFolder()
let sandbox: Sandbox
let postgres: Postgres
let served: Table

beforeAll(async () => {
  sandbox = await startSandbox({ reviews: 400 })
  postgres = await startPostgres()
  served = (await sandbox.truth()).reviews.map(({ id, modifiedTime }) => [id, modifiedTime])
  files.put('config.json', sandboxConfig(sandbox, { allow_http: true, entities: undefined }))
})
afterAll(async () => {
  await sandbox?.close()
  await postgres?.stop()
  files.remove()
})

const bucketOf = (id: string): number =>
  Number(BigInt(`0x${createHash('md5').update(id).digest('hex').slice(0, 15)}`) % BigInt(bucketCount))

/** A damaged table, and what the two statements must answer. */
type Damaged = { readonly table: Table; readonly difference: string; readonly id: string }

const kinds: ReadonlyArray<(index: number, other: number) => Damaged> = [
  (index) => ({ difference: 'missing', id: idAt(index), table: served.filter((_, at) => at !== index) }),
  (index) => ({ difference: 'doubled', id: idAt(index), table: [...served, rowAt(index)] }),
  (index, other) => ({
    difference: 'stale',
    id: idAt(index),
    table: served.map(([id, time], at) => [id, at === index ? earlier(time, other) : time]),
  }),
  (index, other) => ({
    difference: 'extra',
    id: String(1 + other),
    table: [...served, [String(1 + other), rowAt(index)[1]]],
  }),
]
const rowAt = (index: number): Row => served[index] as Row
const idAt = (index: number): string => rowAt(index)[0]
const earlier = (time: string, millis: number): string => new Date(Date.parse(time) - 1 - millis).toISOString()

const drawDamages = (count: number): ReadonlyArray<Damaged> => {
  const next = random(seed)
  const draw = () => Math.floor(next() * served.length)
  return Array.from({ length: count }, (_, trial) => kinds[trial % kinds.length]?.(draw(), draw()) as Damaged)
}

/** A row in all columns of the emulated table: the time also without zone, in UTC and in Asia/Kolkata, and in milliseconds. */
const toColumns = ([id, time]: Row): ReadonlyArray<string> => {
  const millis = Date.parse(time)
  const naive = (ahead: number) => new Date(millis + ahead).toISOString().replace('T', ' ').replace('Z', '')
  return [id, time, naive(0), naive(5.5 * 3_600_000), String(millis)]
}

/** Other columns that hold the same. */
const otherColumns: ReadonlyArray<ReadonlyArray<string>> = [
  ['--id-column', 'digits', '--id-type', 'text'],
  ['--version-column', 'naive', '--version-type', 'timestamp'],
  ['--version-column', 'kolkata', '--version-type', 'timestamp', '--time-zone', 'Asia/Kolkata'],
  ['--version-column', 'told', '--version-type', 'text'],
  ['--version-column', 'millis', '--version-type', 'millis'],
]

/** The statements about the buckets and about the reviews, then about the buckets by other columns. */
const printStatements = async (dialect: string): Promise<ReadonlyArray<string>> => {
  const config = join(files.path, 'config.json')
  const print = async (...more: ReadonlyArray<string>) => {
    const args = ['--config', config, '--stream', 'reviews', '--table', 'reviews', '--dialect', dialect, ...more]
    const { status, stdout, stderr } = await runProgram('feedback', ['audit', ...args])
    if (status !== 0) throw new Error(stderr)
    return stdout
  }
  const buckets = ['--buckets', String(bucketCount)]
  return Promise.all([
    print(...buckets),
    print('--buckets', '1', '--ids', '0'),
    ...otherColumns.map((columns) => print(...buckets, ...columns)),
  ])
}

const expectAnswers = (all: ReadonlyArray<Answers>, damages: ReadonlyArray<Damaged>): void => {
  const short = all.map((answers) => answers.map((rows) => rows.map(([key, difference]) => `${key} ${difference}`)))
  expect(short).toEqual([
    [[], [], ...otherColumns.map(() => [])],
    ...damages.map(({ id, difference }) => [[`${bucketOf(id)} ${difference}`], [`${id} ${difference}`]]),
  ])
}

const venv = process.env.INTEROP_VENV ?? '.venv'
const python = (environment: 'fakesnow' | 'spark', file: string) => ({
  program: pythonProgram(environment, 'python'),
  args: [join(__dirname, file)],
  needs: pythonProgram(environment, 'python'),
})

/** What runs the statements of a dialect, and how many damages; test/slow/dbt.sh says which of them are not here. */
const emulators = [
  { dialect: 'snowflake', name: 'fakesnow', count: 12, ...python('fakesnow', 'emulated_snowflake.py') },
  {
    dialect: 'bigquery',
    name: 'GoogleSQL',
    count: 12,
    program: 'java',
    args: ['-cp', join(venv, 'googlesql', '*'), join(__dirname, 'EmulatedBigQuery.java')],
    needs: join(venv, 'googlesql'),
  },
  // Spark takes seconds for a statement.
  { dialect: 'databricks', name: 'Spark', count: 4, ...python('spark', 'emulated_databricks.py') },
]

const title = (dialect: string, name: string, count: number) =>
  `the statements of ${dialect} find ${count} random damages (seed ${seed}) on ${name}`

for (const { dialect, name, count, program, args, needs } of emulators)
  it.skipIf(!existsSync(needs))(title(dialect, name, count), async () => {
    const damages = drawDamages(count)
    const paths = (await printStatements(dialect)).map((sql, i) => files.put(`${dialect}-${i}.sql`, sql))
    const tables = [served, ...damages.map(({ table }) => table)].map((table) => table.map(toColumns))
    const inputs = [files.put('tables.json', tables), ...paths]
    const { status, stdout, stderr } = spawnSync(program, [...args, ...inputs], { maxBuffer: 1 << 28 })
    if (status !== 0) throw new Error(stderr.toString().slice(-4000))
    expectAnswers(JSON.parse(stdout.toString().trim().split('\n').at(-1) ?? ''), damages)
  })

/** What Redshift has and PostgreSQL lacks; there the part of a date is a text. */
const redshiftFunctions = `
  CREATE FUNCTION strtol(digits text, base int) RETURNS bigint LANGUAGE sql AS $$ SELECT ('x' || lpad(digits, 16, '0'))::bit(64)::bigint $$;
  CREATE FUNCTION datediff(part text, earlier timestamp, later timestamp) RETURNS bigint LANGUAGE sql
    AS $$ SELECT floor(extract(epoch FROM date_trunc('milliseconds', later) - earlier) * 1000)::bigint $$;
  CREATE FUNCTION convert_timezone(source text, target text, given timestamp) RETURNS timestamp LANGUAGE sql
    AS $$ SELECT given AT TIME ZONE source AT TIME ZONE target $$;`

const toRows = (text: string): ReadonlyArray<ReadonlyArray<string>> =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split('|'))

it.each(['postgres', 'redshift'])(title('%s', 'PostgreSQL', 20), async (dialect) => {
  const damages = drawDamages(20)
  const time = dialect === 'postgres' ? '"modifiedTime"' : 'modifiedTime'
  const columns = `id bigint, digits text, ${time} timestamptz, naive timestamp, kolkata timestamp, told text, millis bigint`
  postgres.ask(`DROP TABLE IF EXISTS reviews; CREATE TABLE reviews (${columns})`)
  if (dialect === 'redshift') postgres.ask(redshiftFunctions)
  const statements = (await printStatements(dialect)).map((sql) =>
    sql.replaceAll('DATEDIFF(millisecond,', "DATEDIFF('millisecond',"),
  )
  const answers = [served, ...damages.map(({ table }) => table)].map((table, place) => {
    const values = table
      .map(toColumns)
      .map(
        ([id, at, naive, kolkata, millis]) => `(${id}, ${id}, '${at}', '${naive}', '${kolkata}', '${at}', ${millis})`,
      )
    const asked = place === 0 ? statements : statements.slice(0, 2)
    const filled = `TRUNCATE reviews; INSERT INTO reviews VALUES ${values.join(', ')};`
    return postgres
      .ask(`${filled} ${asked.join(" SELECT '--'; ")}`)
      .split('--\n')
      .map(toRows)
  })
  expectAnswers(answers, damages)
})
