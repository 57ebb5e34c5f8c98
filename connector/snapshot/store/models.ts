import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Database, quoteIdentifier, quoteLiteral } from './database'
import { readReportingTimeZone, regionsTableName, scalesTableName } from './metadata'
import { airbyteColumns, endedColumnName, findFreeName, historyTableName, type Table } from './tables'

/** A location, found by its id or else its name, and its region. No two rows have the same id or the same name. */
export type Region = {
  readonly location_id: string | null
  readonly location_name: string | null
  readonly region: string
}

/** The scale of a question whose type does not define one. `best`: if null, the highest. */
export type Scale = {
  readonly question_id: string
  readonly lowest: number
  readonly highest: number
  readonly best: number | null
}

/** User tables that the models read; by default those of the file. */
export type ModelTables = {
  readonly regions?: ReadonlyArray<Region> | undefined
  readonly scales?: ReadonlyArray<Scale> | undefined
}

export type ModelOptions = ModelTables & {
  /** The time up to which ages are counted; by default the time of each query. */
  readonly asOf?: Date | undefined
  readonly variables?: Partial<ModelVariables> | undefined
  /** Only these models and those that they read; by default all. Each takes DuckDB some time. */
  readonly names?: ReadonlyArray<string> | undefined
}

/** The parameters of the models. */
export type ModelVariables = {
  readonly alert_open_days: number
  readonly alert_score: number
  readonly min_reviews: number
  readonly min_answers: number
}

export const defaultModelVariables: ModelVariables = {
  alert_open_days: 14,
  alert_score: 1.5,
  min_reviews: 5,
  min_answers: 10,
}

/** The models come from the dbt package, which is installed next to the built program. */
const modelFolder = join(__dirname, '..', '..', '..', 'dbt', 'models')

/** The name and the text of each model. */
export const readModels = (): ReadonlyMap<string, string> =>
  new Map(
    ['marts', 'scorecards'].flatMap((part) =>
      readdirSync(join(modelFolder, part))
        .filter((file) => file.endsWith('.sql'))
        .map((file) => [file.slice(0, -'.sql'.length), readFileSync(join(modelFolder, part, file), 'utf8')] as const),
    ),
  )

/** A model's own description: the comment at its start. */
const describeModel = (template: string): string | undefined =>
  /^(?:-- .*\n)+/.exec(template)?.[0].replaceAll(/^-- /gm, '').replaceAll('\n', ' ').trim()

type Variables = Readonly<Record<string, string | number | null>>
type Macro = (variables: Variables, ...args: ReadonlyArray<string>) => string

const instantSql = (time: string): string => `cast(${quoteLiteral(time)} as timestamptz)`
const secondsBetween = (start: string, end: string): string => `((epoch_ms(${end}) - epoch_ms(${start})) / 1000.0)`
const roundTo = (expression: string, digits: string): string =>
  `cast(round(cast(${expression} as decimal(28, 9)), ${digits}) as double)`

const localDay = (time: string, { time_zone: zone }: Variables): string =>
  `cast(${time} at time zone ${quoteLiteral(String(zone))} as date)`

/** An ISO 8601 date, alone or before a time. */
const datePattern =
  '^[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])' +
  '([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?(Z|[-+][0-9]{2}:?[0-9]{2})?)?$'

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
  number_of: (_, text = '') =>
    `CASE WHEN regexp_matches(${text}, '^-?[0-9]{1,15}([.][0-9]{1,15})?$') THEN try_cast(${text} AS DOUBLE) END`,
  date_of: (_, text = '') =>
    `CASE WHEN regexp_matches(${text}, ${quoteLiteral(datePattern)}) THEN try_cast(${text}[1:10] AS DATE) END`,
  kept_text: (_, expression = '') => expression,
  as_text: (_, expression = '') => `cast(${expression} as varchar)`,
  as_double: (_, expression = '') => `cast(${expression} as double)`,
  as_bigint: (_, expression = '') => `cast(${expression} as bigint)`,
}

const tokenPattern = /\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(\d+(?:\.\d+)?)|([A-Za-z_][\w.]*)|([(),~=]))/y

/** The value of a template's expression: texts, numbers, calls of `ref`, `var` and the macros, joined by `~`. */
const evaluate = (text: string, variables: Variables, nameOf: (name: string) => string): string => {
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
    if (name === 'ref') return quoteIdentifier(nameOf(args[0] ?? ''))
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

/** A model as SQL for DuckDB, and the relations that it reads; `nameOf`: their names. */
export const renderModel = (
  template: string,
  variables: Variables,
  nameOf: (name: string) => string = (name) => name,
): { readonly sql: string; readonly references: ReadonlyArray<string> } => {
  const references = new Set<string>()
  const sql = template.replaceAll(/\{#[\s\S]*?#\}/g, '').replaceAll(/\{\{-?([\s\S]*?)-?\}\}/g, (_, text: string) =>
    evaluate(text, variables, (name) => {
      references.add(name)
      return nameOf(name)
    }),
  )
  if (/\{%/.test(sql)) throw new Error('A model has a statement of Jinja, which only dbt runs.')
  return { sql: sql.trim().replace(/;$/, ''), references: [...references] }
}

/** The models with these names, or all, and those that they read, each after those that it reads. */
const sortModels = (
  models: ReadonlyMap<string, string>,
  names: ReadonlyArray<string> = [...models.keys()],
): ReadonlyArray<string> => {
  const sorted = new Set<string>()
  const visit = (name: string): void => {
    const template = models.get(name)
    if (template === undefined || sorted.has(name)) return
    for (const reference of renderModel(template, {}).references) visit(reference)
    sorted.add(name)
  }
  for (const name of [...names].sort()) visit(name)
  return [...sorted]
}

/** The rows of a file of regions. */
const regionsSql = (regions: ReadonlyArray<Region>): string => {
  const cell = (text: string | null) => (text === null ? 'NULL' : quoteLiteral(text))
  const rows = regions.map((row) => `(${cell(row.location_id)}, ${cell(row.location_name)}, ${cell(row.region)})`)
  return `SELECT id::BIGINT AS location_id, name::VARCHAR AS location_name, region::VARCHAR AS region
    FROM (VALUES ${rows.length === 0 ? '(NULL, NULL, NULL)' : rows.join(', ')}) AS given (id, name, region)
    WHERE region IS NOT NULL`
}

/** The rows of a file of scales. */
const scalesSql = (scales: ReadonlyArray<Scale>): string => {
  const rows = scales.map(
    ({ question_id, lowest, highest, best }) =>
      `(${quoteLiteral(question_id)}, ${lowest}, ${highest}, ${best ?? 'NULL'})`,
  )
  return `
    SELECT id::VARCHAR AS question_id, lowest::DOUBLE AS lowest, highest::DOUBLE AS highest, best::DOUBLE AS best
    FROM (VALUES ${rows.length === 0 ? '(NULL, NULL, NULL, NULL)' : rows.join(', ')})
      AS given (id, lowest, highest, best)
    WHERE id IS NOT NULL`
}

/** A user table in the file that the models read, and the view over it. */
type UserTable = {
  readonly table: string
  readonly columns: Readonly<Record<string, string>>
  readonly view: { readonly name: keyof ModelTables; readonly description: string }
  /** SQL for the given rows, or for none. */
  readonly toSql: (given: ModelTables) => string
}

const userTables: ReadonlyArray<UserTable> = [
  {
    table: regionsTableName,
    columns: { location_id: 'BIGINT', location_name: 'VARCHAR', region: 'VARCHAR' },
    view: { name: 'regions', description: 'The region of each location, by its id or else its name.' },
    toSql: ({ regions = [] }) => regionsSql(regions),
  },
  {
    table: scalesTableName,
    columns: { question_id: 'VARCHAR', lowest: 'DOUBLE', highest: 'DOUBLE', best: 'DOUBLE' },
    view: { name: 'scales', description: 'The scale of each question whose type does not define one.' },
    toSql: ({ scales = [] }) => scalesSql(scales),
  },
]

/** The names of the views over the user tables. */
export const userViewNames: ReadonlyArray<string> = userTables.map(({ view }) => view.name)

const listColumns = async (db: Database, table: string): Promise<ReadonlyArray<string>> =>
  (
    await db.query(`
      SELECT column_name AS name
      FROM duckdb_columns()
      WHERE database_name = current_database() AND table_name = ${quoteLiteral(table)}
      ORDER BY column_index`)
  ).map(({ name }) => String(name))

/** Creates the user tables that the file lacks. */
export const createUserTables = async (db: Database): Promise<void> => {
  for (const { table, columns } of userTables) {
    if ((await listColumns(db, table)).length > 0) continue
    const list = Object.entries(columns).map(([name, type]) => `${name} ${type}`)
    await db.run(`CREATE TABLE ${table} (${list.join(', ')})`)
  }
}

/** The views over the user tables. A table with different columns counts as empty. */
const defineUserViews = async (db: Database, given: ModelTables): Promise<ReadonlyArray<ViewDefinition>> =>
  Promise.all(
    userTables.map(async ({ table, columns, view, toSql }) => {
      const isRead =
        given[view.name] === undefined && (await listColumns(db, table)).join() === Object.keys(columns).join()
      return { ...view, toSql: () => (isRead ? `FROM ${table}` : toSql(given)) }
    }),
  )

export type NameOf = (name: string) => string

/** A view as this version defines it. */
type ViewDefinition = {
  readonly name: string
  readonly description?: string | undefined
  /** `nameOf`: the names that the views it reads have in the file. */
  readonly toSql: (nameOf: NameOf) => string
}

/** The views over `reviews` and the models, each after those that it reads; none without `reviews`. */
export const defineModels = async (
  db: Database,
  reviewViews: Readonly<Record<string, string>>,
  { asOf, variables, names, ...given }: ModelOptions = {},
): Promise<ReadonlyArray<ViewDefinition>> => {
  const views = Object.entries(reviewViews)
  if (views.length === 0) return []
  const settings = {
    ...defaultModelVariables,
    ...variables,
    as_of: asOf?.toISOString() ?? null,
    time_zone: await readReportingTimeZone(db),
  }
  const models = readModels()
  return [
    ...views.map(([name, sql]) => ({ name, toSql: () => sql })),
    ...(await defineUserViews(db, given)),
    ...sortModels(models, names).map((name) => {
      const template = models.get(name) ?? ''
      return {
        name,
        description: describeModel(template),
        toSql: (nameOf: NameOf) => renderModel(template, settings, nameOf).sql,
      }
    }),
  ]
}

/**
 * Every version of a stream's rows with `valid_from` and `valid_to`: until the next version of its key, or until its
 * deletion. If the cursor is not a time, it only orders the versions, and they are valid from the time they were read.
 */
const versionsViewSql = ({ name, columns }: Table, key: ReadonlyArray<string>, cursor: string | undefined): string => {
  const columnList = [...columns.map((column) => column.name), ...airbyteColumns.map(([column]) => column)]
    .map(quoteIdentifier)
    .join(', ')
  const type = columns.find((column) => column.name === cursor)?.type
  const isTime = type === 'TIMESTAMPTZ' || type === 'DATE'
  const cursorSql = cursor === undefined || type === undefined ? [] : [`v.${quoteIdentifier(cursor)}`]
  const from = isTime ? `${cursorSql[0]}::TIMESTAMPTZ` : 'v._airbyte_extracted_at'
  const order = [...cursorSql, 'v._airbyte_extracted_at'].join(', ')
  const keys = key.map((column) => `v.${quoteIdentifier(column)}`).join(', ')
  return `
  SELECT ${columnList}, ${from} AS ${quoteIdentifier(findFreeName(columns, 'valid_from'))},
    least(v.${endedColumnName}, lead(${from}) OVER (PARTITION BY ${keys} ORDER BY ${order}))
      AS ${quoteIdentifier(findFreeName(columns, 'valid_to'))}
  FROM (
    SELECT ${columnList}, NULL::TIMESTAMPTZ AS ${endedColumnName} FROM ${quoteIdentifier(name)}
    UNION ALL SELECT ${columnList}, ${endedColumnName} FROM ${quoteIdentifier(historyTableName(name))}) AS v`
}

/** The versions of each stream with a history. */
export const defineVersions = async (
  db: Database,
  tables: ReadonlyArray<Table>,
): Promise<ReadonlyArray<ViewDefinition>> =>
  (await db.query('SELECT stream, primary_key, cursor FROM _streams ORDER BY stream')).flatMap((stream) => {
    const table = tables.find(({ name, history }) => history && name === stream.stream)
    if (table === undefined || !Array.isArray(stream.primary_key) || stream.primary_key.length === 0) return []
    const cursor = stream.cursor === null ? undefined : String(stream.cursor)
    const sql = versionsViewSql(table, stream.primary_key.map(String), cursor)
    return [{ name: `${table.name}_versions`, toSql: () => sql }]
  })
