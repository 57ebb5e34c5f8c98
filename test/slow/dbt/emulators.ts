import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { JsonFolder } from '../../support/files'
import { pythonProgram, requireOutput } from '../interop/shell'
import type { Postgres } from './postgres'
import { type Python, startAnswering, startPython } from './python'

/**
 * How a column holds its values; they are given as texts: instants in ISO 8601, times without zone with a space in
 * place of the T.
 */
export type ColumnKind = 'whole' | 'text' | 'instant' | 'naive' | 'decimal' | 'json'
export type Columns = ReadonlyArray<readonly [name: string, kind: ColumnKind]>

/** A table as it is filled, and the statements that are asked of it, by their places. */
type EmulatedCase = {
  readonly table: string
  readonly columns: Columns
  readonly rows: ReadonlyArray<ReadonlyArray<string | null>>
  readonly asked: ReadonlyArray<number>
}

/** What an emulator runs, one case after the other. */
export type EmulatedPlan = { readonly statements: ReadonlyArray<string>; readonly cases: ReadonlyArray<EmulatedCase> }

/** The rows of each statement that was asked, case by case. */
export type EmulatedAnswers = ReadonlyArray<ReadonlyArray<ReadonlyArray<ReadonlyArray<string | null>>>>

export type Emulator = {
  readonly dialect: string
  readonly name: string
  /** Everything that it needs is installed; test/slow/dbt.sh says what is missing. */
  readonly isHere: boolean
  /**
   * How many random damages it finds in reasonable time, and how many to the content of rows, whose statements are
   * long.
   */
  readonly damages: number
  readonly contentDamages: number
  readonly run: (plan: EmulatedPlan, files: JsonFolder, postgres: Postgres) => Promise<EmulatedAnswers>
}

const ofPython = (dialect: string, environment: 'fakesnow' | 'spark', module: string) => {
  const program = join(__dirname, `emulated_${dialect}.py`)
  let python: Python | undefined
  const run: Emulator['run'] = async (plan, files) => {
    python ??= startPython(environment, { cwd: files.path })
    const output = requireOutput(program, await python(program, [files.put(`${dialect}-plan.json`, plan)], [module]))
    return JSON.parse(output.trim().split('\n').at(-1) ?? '')
  }
  return { dialect, isHere: existsSync(pythonProgram(environment, 'python')), run }
}

/** What Redshift has and PostgreSQL lacks; there the part of a date is a text. */
const redshiftFunctions = `
  CREATE OR REPLACE FUNCTION strtol(digits text, base int) RETURNS bigint LANGUAGE sql
    AS $$ SELECT ('x' || lpad(digits, 16, '0'))::bit(64)::bigint $$;
  CREATE OR REPLACE FUNCTION datediff(part text, earlier timestamp, later timestamp) RETURNS bigint LANGUAGE sql
    AS $$ SELECT floor(extract(epoch FROM date_trunc('milliseconds', later) - earlier) * 1000)::bigint $$;
  CREATE OR REPLACE FUNCTION get_array_length(list jsonb) RETURNS int LANGUAGE sql
    AS $$ SELECT CASE WHEN jsonb_typeof(list) = 'array' THEN jsonb_array_length(list) END $$;
`

/** A Redshift statement converted for PostgreSQL, where a SUPER is a jsonb, whose members have other operators. */
const fromRedshift = (sql: string): string =>
  sql
    .replaceAll('DATEDIFF(millisecond,', "DATEDIFF('millisecond',")
    .replaceAll(/\bloaded\.(\w+)((?:\."\w+")+)/g, (_, column: string, members: string) => {
      const path = members.slice(2, -1).split('"."').join(',')
      return `(loaded.${column} #>> '{${path}}')`
    })

const postgresTypes: Readonly<Record<ColumnKind, string>> = {
  whole: 'bigint',
  text: 'text',
  instant: 'timestamptz',
  naive: 'timestamp',
  decimal: 'decimal(38, 9)',
  json: 'jsonb',
}

/** With all damages some kinds of damage to the content come twice, with fewer each of the twelve once. */
const isWhole = Number(process.env.DAMAGES ?? 1_000) >= 1_000

const toRows = (text: string): ReadonlyArray<ReadonlyArray<string>> =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split('|'))

const ofPostgres = (dialect: 'postgres' | 'redshift'): Emulator => ({
  dialect,
  name: 'PostgreSQL',
  isHere: true,
  damages: 20,
  contentDamages: isWhole ? 20 : 12,
  run: async ({ statements, cases }, _files, postgres) => {
    const isRedshift = dialect === 'redshift'
    const quote = (name: string): string => (isRedshift ? name : `"${name}"`)
    if (isRedshift) postgres.ask(redshiftFunctions)
    return cases.map(({ table, columns, rows, asked }) => {
      const values = rows.map((row) => {
        const cells = row.map((value) => (value === null ? 'NULL' : `'${value.replaceAll("'", "''")}'`))
        return `(${cells.join(', ')})`
      })
      const typed = columns.map(([name, kind]) => `${quote(name)} ${postgresTypes[kind]}`)
      const filled = `
        DROP TABLE IF EXISTS ${table};
        CREATE TABLE ${table} (${typed.join(', ')});
        ${values.length === 0 ? '' : `INSERT INTO ${table} VALUES ${values.join(', ')};`}`
      const texts = asked.map((place) => (isRedshift ? fromRedshift : String)(statements[place] ?? ''))
      return postgres
        .ask(`${filled} ${texts.join(" SELECT '--'; ")}`)
        .split('--\n')
        .map(toRows)
    })
  },
})

const googleSql = join(process.env.INTEROP_VENV ?? '.venv', 'googlesql')

const ofGoogleSql = () => {
  // Java compiles the program at its start; what it compiles of itself later costs more than a test's few rows.
  const options = ['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-cp', join(googleSql, '*')]
  let ask: ReturnType<typeof startAnswering> | undefined
  const run: Emulator['run'] = async (plan, files) => {
    ask ??= startAnswering('java', [...options, join(__dirname, 'EmulatedBigQuery.java')], { cwd: files.path })
    return JSON.parse(await ask(files.put('bigquery-plan.json', plan)))
  }
  return { dialect: 'bigquery', isHere: existsSync(googleSql), run }
}

export const emulators: ReadonlyArray<Emulator> = [
  { name: 'fakesnow', damages: 12, contentDamages: 6, ...ofPython('snowflake', 'fakesnow', 'fakesnow') },
  { name: 'GoogleSQL', damages: 12, contentDamages: 12, ...ofGoogleSql() },
  // Spark takes seconds for a statement.
  { name: 'Spark', damages: 4, contentDamages: 3, ...ofPython('databricks', 'spark', 'pyspark.sql') },
  ofPostgres('postgres'),
  ofPostgres('redshift'),
]
