import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { JsonFolder } from '../../support/files'
import { pythonProgram } from '../interop/shell'
import type { Postgres } from './postgres'

/** How a column holds its values; they are given as texts: instants in ISO 8601, times without zone with a space in place of the T. */
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
  /** Whether what it needs is here: test/slow/dbt.sh says what is not. */
  readonly isHere: boolean
  /** How many random damages it finds in reasonable time, and how many to the content of rows, whose statements are long. */
  readonly damages: number
  readonly contentDamages: number
  readonly run: (plan: EmulatedPlan, files: JsonFolder, postgres: Postgres) => EmulatedAnswers
}

const runProgramOf =
  (dialect: string, program: string, ...args: ReadonlyArray<string>): Emulator['run'] =>
  (plan, files) => {
    const plans = files.put(`${dialect}-plan.json`, plan)
    const { status, stdout, stderr } = spawnSync(program, [...args, plans], { maxBuffer: 1 << 28 })
    if (status !== 0) throw new Error(stderr.toString().slice(-4000))
    return JSON.parse(stdout.toString().trim().split('\n').at(-1) ?? '')
  }

const ofPython = (dialect: string, environment: 'fakesnow' | 'spark') => {
  const python = pythonProgram(environment, 'python')
  return {
    dialect,
    isHere: existsSync(python),
    run: runProgramOf(dialect, python, join(__dirname, `emulated_${dialect}.py`)),
  }
}

/** What Redshift has and PostgreSQL lacks; there the part of a date is a text. */
const redshiftFunctions = `
  CREATE OR REPLACE FUNCTION strtol(digits text, base int) RETURNS bigint LANGUAGE sql AS $$ SELECT ('x' || lpad(digits, 16, '0'))::bit(64)::bigint $$;
  CREATE OR REPLACE FUNCTION datediff(part text, earlier timestamp, later timestamp) RETURNS bigint LANGUAGE sql
    AS $$ SELECT floor(extract(epoch FROM date_trunc('milliseconds', later) - earlier) * 1000)::bigint $$;
  CREATE OR REPLACE FUNCTION get_array_length(list jsonb) RETURNS int LANGUAGE sql
    AS $$ SELECT CASE WHEN jsonb_typeof(list) = 'array' THEN jsonb_array_length(list) END $$;
`

/** A statement of Redshift as PostgreSQL takes it: there a SUPER is a jsonb, whose members have other operators. */
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
  contentDamages: 20,
  run: ({ statements, cases }, _files, postgres) => {
    const isRedshift = dialect === 'redshift'
    const quote = (name: string): string => (isRedshift ? name : `"${name}"`)
    if (isRedshift) postgres.ask(redshiftFunctions)
    return cases.map(({ table, columns, rows, asked }) => {
      const values = rows.map((row) => {
        const cells = row.map((value) => (value === null ? 'NULL' : `'${value.replaceAll("'", "''")}'`))
        return `(${cells.join(', ')})`
      })
      const typed = columns.map(([name, kind]) => `${quote(name)} ${postgresTypes[kind]}`)
      const filled = `DROP TABLE IF EXISTS ${table}; CREATE TABLE ${table} (${typed.join(', ')}); ${values.length === 0 ? '' : `INSERT INTO ${table} VALUES ${values.join(', ')};`}`
      const texts = asked.map((place) => (isRedshift ? fromRedshift : String)(statements[place] ?? ''))
      return postgres
        .ask(`${filled} ${texts.join(" SELECT '--'; ")}`)
        .split('--\n')
        .map(toRows)
    })
  },
})

const googleSql = join(process.env.INTEROP_VENV ?? '.venv', 'googlesql')

export const emulators: ReadonlyArray<Emulator> = [
  { name: 'fakesnow', damages: 12, contentDamages: 6, ...ofPython('snowflake', 'fakesnow') },
  {
    dialect: 'bigquery',
    name: 'GoogleSQL',
    damages: 12,
    contentDamages: 12,
    isHere: existsSync(googleSql),
    run: runProgramOf('bigquery', 'java', '-cp', join(googleSql, '*'), join(__dirname, 'EmulatedBigQuery.java')),
  },
  // Spark takes seconds for a statement.
  { name: 'Spark', damages: 4, contentDamages: 3, ...ofPython('databricks', 'spark') },
  ofPostgres('postgres'),
  ofPostgres('redshift'),
]
