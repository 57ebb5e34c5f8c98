import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Database, quoteIdentifier, quoteLiteral } from './database'
import { readReportingTimeZone } from './metadata'
import { createTemporaryViews } from './views'

/** A location and the region that it belongs to, found by its id or else its name. No two rows have the same id or the same name. */
export type Region = {
  readonly location_id: string | null
  readonly location_name: string | null
  readonly region: string
}

export type ModelOptions = {
  /** The time that ages are counted to; left out: the time of each query. */
  readonly asOf?: Date | undefined
  readonly regions?: ReadonlyArray<Region> | undefined
  readonly variables?: Partial<ModelVariables> | undefined
  /** Only these models and those that they read; all of them if left out. Each takes DuckDB some time. */
  readonly names?: ReadonlyArray<string> | undefined
}

/** What the models count with. */
export type ModelVariables = {
  readonly alert_open_days: number
  readonly alert_score: number
  readonly min_reviews: number
}

export const defaultModelVariables: ModelVariables = { alert_open_days: 14, alert_score: 1.5, min_reviews: 5 }

/** The models are those of the dbt package, which lies beside the built program. */
const modelFolder = join(__dirname, '..', '..', '..', 'dbt', 'models', 'marts')

/** The name and the text of each model. */
export const readModels = (folder = modelFolder): ReadonlyMap<string, string> =>
  new Map(
    readdirSync(folder)
      .filter((file) => file.endsWith('.sql'))
      .map((file) => [file.slice(0, -'.sql'.length), readFileSync(join(folder, file), 'utf8')]),
  )

type Variables = Readonly<Record<string, string | number | null>>
type Macro = (variables: Variables, ...args: ReadonlyArray<string>) => string

const instantSql = (time: string): string => `cast(${quoteLiteral(time)} as timestamptz)`
const secondsBetween = (start: string, end: string): string => `((epoch_ms(${end}) - epoch_ms(${start})) / 1000.0)`
const roundTo = (expression: string, digits: string): string =>
  `cast(round(cast(${expression} as decimal(28, 9)), ${digits}) as double)`
const localDay = (time: string, { time_zone: zone }: Variables): string =>
  `cast(${time} at time zone ${quoteLiteral(String(zone))} as date)`

/** The macros that the models may use, as dbt/macros/expressions.sql defines them for DuckDB. */
const macros: Readonly<Record<string, Macro>> = {
  as_of: ({ as_of }) => (as_of === null ? 'current_timestamp' : instantSql(String(as_of))),
  instant: (_, time = '') => instantSql(time),
  local_day: (variables, time = '') => localDay(time, variables),
  local_month: (variables, time = '') => `cast(date_trunc('month', ${localDay(time, variables)}) as date)`,
  add_months: (_, month = '', count = '1') => `cast(${month} + interval '1 month' * (${count}) as date)`,
  seconds_between: (_, start = '', end = '') => secondsBetween(start, end),
  hours_between: (_, start = '', end = '') => `(${secondsBetween(start, end)} / 3600)`,
  days_between: (_, start = '', end = '') => `cast(floor(${secondsBetween(start, end)} / 86400) as bigint)`,
  median: (_, expression = '') => `quantile_cont(${expression}, 0.5)`,
  round_to: (_, expression = '', digits = '') => roundTo(expression, digits),
  share: (_, part = '', whole = '') => roundTo(`cast(${part} as double) / nullif(${whole}, 0)`, '2'),
  as_text: (_, expression = '') => `cast(${expression} as varchar)`,
  as_double: (_, expression = '') => `cast(${expression} as double)`,
  as_bigint: (_, expression = '') => `cast(${expression} as bigint)`,
}

const tokenPattern = /\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(\d+(?:\.\d+)?)|([A-Za-z_][\w.]*)|([(),~=]))/y

/** The value of a template's expression: texts, numbers, calls of `ref`, `var` and the macros, joined by `~`. */
const evaluate = (text: string, variables: Variables, addReference: (name: string) => void): string => {
  let position = 0
  const next = (): RegExpExecArray | undefined => {
    tokenPattern.lastIndex = position
    return tokenPattern.exec(text) ?? undefined
  }
  const take = (): RegExpExecArray => {
    const token = next()
    if (token === undefined) throw new Error(`The model has an expression that cannot be read: {{ ${text.trim()} }}`)
    position = tokenPattern.lastIndex
    return token
  }
  const isNext = (sign: string): boolean => next()?.[5] === sign
  const readArguments = (): ReadonlyArray<string> => {
    const args: Array<string> = []
    while (!isNext(')')) {
      args.push(readJoined())
      if (isNext('=')) {
        take()
        args[args.length - 1] = readJoined()
      }
      if (isNext(',')) take()
    }
    take()
    return args
  }
  const call = (name: string, args: ReadonlyArray<string>): string => {
    if (name === 'ref') {
      addReference(args[0] ?? '')
      return quoteIdentifier(args[0] ?? '')
    }
    if (name === 'var') return String(variables[args[0] ?? ''] ?? 'null')
    const macro = macros[name]
    if (macro === undefined) throw new Error(`The model calls ${name}, which is no macro of the models.`)
    return macro(variables, ...args)
  }
  const readTerm = (): string => {
    const [, single, double, number, name] = take()
    if (name !== undefined && isNext('(')) {
      take()
      return call(name.replace(/^feedback\./, ''), readArguments())
    }
    return (single ?? double)?.replaceAll(/\\(.)/g, '$1') ?? number ?? name ?? ''
  }
  const readJoined = (): string => {
    let value = readTerm()
    while (isNext('~')) {
      take()
      value += readTerm()
    }
    return value
  }
  const value = readJoined()
  if (text.slice(position).trim() !== '')
    throw new Error(`The model has an expression that cannot be read: {{ ${text.trim()} }}`)
  return value
}

/** A model as DuckDB runs it, and the relations that it reads. */
export const renderModel = (
  template: string,
  variables: Variables,
): { readonly sql: string; readonly references: ReadonlyArray<string> } => {
  const references = new Set<string>()
  const sql = template
    .replaceAll(/\{#[\s\S]*?#\}/g, '')
    .replaceAll(/\{\{-?([\s\S]*?)-?\}\}/g, (_, text: string) =>
      evaluate(text, variables, (name) => references.add(name)),
    )
  if (/\{%/.test(sql)) throw new Error('A model has a statement of Jinja, which only dbt runs.')
  return { sql, references: [...references] }
}

/** The models of these names, each after those that it reads. */
const sortModels = (
  models: ReadonlyMap<string, ReadonlyArray<string>>,
  names: ReadonlyArray<string>,
): ReadonlyArray<string> => {
  const sorted = new Set<string>()
  const visit = (name: string): void => {
    if (sorted.has(name)) return
    for (const reference of models.get(name) ?? []) if (models.has(reference)) visit(reference)
    sorted.add(name)
  }
  for (const name of names.filter((each) => models.has(each)).sort()) visit(name)
  return [...sorted]
}

const regionsSql = (regions: ReadonlyArray<Region>): string => {
  const cell = (text: string | null) => (text === null ? 'NULL' : quoteLiteral(text))
  const rows = regions.map((row) => `(${cell(row.location_id)}, ${cell(row.location_name)}, ${cell(row.region)})`)
  return `SELECT id::BIGINT AS location_id, name::VARCHAR AS location_name, region::VARCHAR AS region
    FROM (VALUES ${rows.length === 0 ? '(NULL, NULL, NULL)' : rows.join(', ')}) AS given (id, name, region) WHERE region IS NOT NULL`
}

/**
 * Creates the models as views for this connection only, over the views of `reviews`; works on read-only files too. Returns false if the
 * file has no reviews.
 */
export const createModelViews = async (db: Database, options: ModelOptions = {}): Promise<boolean> => {
  if (!(await createTemporaryViews(db))) return false
  const variables = {
    ...defaultModelVariables,
    ...options.variables,
    as_of: options.asOf?.toISOString() ?? null,
    time_zone: await readReportingTimeZone(db),
  }
  await db.run(`CREATE OR REPLACE TEMP VIEW regions AS ${regionsSql(options.regions ?? [])}`)
  const models = new Map([...readModels()].map(([name, template]) => [name, renderModel(template, variables)]))
  const references = new Map([...models].map(([name, model]) => [name, model.references]))
  for (const name of sortModels(references, options.names ?? [...models.keys()]))
    await db.run(
      `CREATE OR REPLACE TEMP VIEW ${quoteIdentifier(name)} AS ${models.get(name)?.sql.trim().replace(/;$/, '')}`,
    )
  return true
}
