import { CommandError, configFailure, findNearestName, type JsonSchema } from '../cdk'
import { listModelNames } from './questions'
import { type Database, quoteIdentifier, quoteLiteral, type Snapshot } from './store/database'
import { explainRefusal } from './store/failures'
import { attributeOf, foldCase, followMembers, listMembers, listStreamTables, type UnknownMember } from './store/tables'
import { findModels } from './store/views'

/**
 * Closes the connection to everything but the snapshot. SQL may come from anywhere, so from now on it can reach no
 * other file, change no setting and load no code; for a lake, it reaches the lake's own files. `path`: the only file
 * that it may still write.
 */
export const lockDatabase = (db: Database, path?: string): Promise<void> =>
  db.run(
    [
      ...(path === undefined ? [] : [`SET allowed_paths = [${quoteLiteral(path)}]`]),
      ...(db.lake === undefined ? [] : [`SET allowed_directories = [${quoteLiteral(db.lake.dataPath)}]`]),
      'SET enable_external_access = false',
      'SET lock_configuration = true',
    ].join('; '),
  )

/** A name with dots in a query, such as `location.name` or `r.location.name`. */
type Reference = {
  readonly names: ReadonlyArray<string>
  /** Where it starts, in bytes; undefined if DuckDB does not say. */
  readonly offset: number | undefined
  /** It is a result column without an alias. */
  readonly isResult: boolean
}

type Relation = { readonly alias: string; readonly table: string | undefined }

/** What the text of SELECT statements refers to. */
type Syntax = {
  readonly statements: number
  readonly references: ReadonlyArray<Reference>
  readonly relations: ReadonlyArray<Relation>
}

type SyntaxNode = { readonly [key: string]: unknown }
const isNode = (value: unknown): value is SyntaxNode =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const toList = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

const findReferences = (value: unknown, isResult = false): ReadonlyArray<Reference> => {
  if (Array.isArray(value)) return value.flatMap((item) => findReferences(item))
  if (!isNode(value)) return []
  if (value.class === 'COLUMN_REF' && Array.isArray(value.column_names)) {
    const offset = Number(value.query_location)
    return [
      {
        names: value.column_names.map(String),
        offset: Number.isSafeInteger(offset) ? offset : undefined,
        isResult: isResult && value.alias === '',
      },
    ]
  }
  return Object.entries(value).flatMap(([key, inner]) =>
    key === 'select_list' ? toList(inner).flatMap((item) => findReferences(item, true)) : findReferences(inner),
  )
}

const findRelations = (value: unknown): ReadonlyArray<Relation> => {
  if (Array.isArray(value)) return value.flatMap(findRelations)
  if (!isNode(value)) return []
  const table = value.type === 'BASE_TABLE' ? String(value.table_name) : undefined
  const alias = typeof value.alias === 'string' && value.alias !== '' && value.class === undefined ? value.alias : table
  const common = isNode(value.cte_map) ? toList(value.cte_map.map) : []
  return [
    ...(alias === undefined ? [] : [{ alias, table }]),
    ...common.flatMap((entry) => (isNode(entry) ? [{ alias: String(entry.key), table: undefined }] : [])),
    ...Object.values(value).flatMap(findRelations),
  ]
}

/** Undefined for a statement that is not a SELECT or that DuckDB cannot parse. */
const parseSelect = async (db: Database, sql: string): Promise<Syntax | undefined> => {
  const text = await db.scalar('SELECT json_serialize_sql($sql::VARCHAR, skip_null := true)', { sql })
  const parsed: unknown = JSON.parse(String(text))
  if (!isNode(parsed) || parsed.error !== false) return undefined
  const statements = toList(parsed.statements)
  return {
    statements: statements.length,
    references: findReferences(statements),
    relations: findRelations(statements),
  }
}

/** The number of statements in a text of SELECT statements; undefined for any other text. */
export const countSelects = async (db: Database, sql: string): Promise<number | undefined> =>
  (await parseSelect(db, sql))?.statements

/** A JSON column of a table or view that the query reads. */
type NestedColumn = {
  readonly table: string
  readonly column: string
  readonly schema: JsonSchema
}

const isSameName = (a: string, b: string): boolean => foldCase(a) === foldCase(b)

/** The JSON columns of the tables, and of the views of their versions, that the relations name. */
const listNestedColumns = async (
  db: Database,
  relations: ReadonlyArray<Relation>,
): Promise<ReadonlyArray<NestedColumn>> => {
  const names = [...new Set(relations.flatMap(({ table }) => table ?? []))]
  const streams = names.flatMap((table) => [
    { table, stream: table },
    ...(/_versions_*$/i.test(table) ? [{ table, stream: table.replace(/_versions_*$/i, '') }] : []),
  ])
  if (streams.length === 0) return []
  const schemas = await db.query('SELECT stream, schema FROM _streams')
  return (await listStreamTables(db)).flatMap(({ name, columns }) => {
    const text = schemas.find(({ stream }) => stream === name)?.schema
    if (text === undefined) return []
    const members = listMembers(JSON.parse(String(text)))
    return streams
      .filter(({ stream }) => isSameName(stream, name))
      .flatMap(({ table }) =>
        columns
          .filter(({ type }) => type === 'JSON')
          .map((column) => ({ table, column: column.name, schema: members[attributeOf(column)] ?? {} })),
      )
  })
}

type Target = {
  readonly prefix: ReadonlyArray<string>
  readonly nested: NestedColumn
  readonly path: ReadonlyArray<string>
}

/**
 * The JSON column whose member a dotted name means, resolved like DuckDB does: a table's column takes precedence over a
 * column's member.
 */
const resolveReference = (
  names: ReadonlyArray<string>,
  relations: ReadonlyArray<Relation>,
  columns: ReadonlyArray<NestedColumn>,
): Target | undefined => {
  const findRelation = (name: string) => relations.filter(({ alias }) => isSameName(alias, name))
  for (let i = 0; i < Math.min(3, names.length - 1); i += 1) {
    const owners = findRelation(names[i === 0 ? 0 : i - 1] ?? '')
    if ((i === 0) !== (owners.length === 0)) continue
    // A relation without a table is a subquery, which may pass on the columns of any table.
    const tables = owners
      .flatMap(({ table }) => table ?? [])
      .filter((name) => !findRelation(name).some(({ table }) => table === undefined))
    const nested = columns.find(
      ({ table, column }) =>
        isSameName(column, names[i] ?? '') && (tables.length === 0 || tables.some((name) => isSameName(name, table))),
    )
    if (nested !== undefined) return { prefix: names.slice(0, i + 1), nested, path: names.slice(i + 1) }
  }
  return undefined
}

const toJsonPath = (path: ReadonlyArray<string>): string =>
  `$${path.map((name) => `."${name.replaceAll('"', '\\"')}"`).join('')}`

const identifierPattern = String.raw`(?:"(?:[^"]|"")+"|[\p{L}_][\p{L}\p{N}_$]*)`
const spacePattern = String.raw`(?:\s|--[^\n]*\n|/\*[\s\S]*?\*/)*`

/** How many bytes the names take in the text; undefined if other text stands there. */
const measureNames = (text: string, names: ReadonlyArray<string>): number | undefined => {
  const pattern = Array(names.length).fill(`(${identifierPattern})`).join(`${spacePattern}\\.${spacePattern}`)
  const [found, ...parts] = new RegExp(`^${pattern}`, 'u').exec(text) ?? []
  const unquote = (part: string) => (part.startsWith('"') ? part.slice(1, -1).replaceAll('""', '"') : part)
  return found !== undefined && parts.every((part, i) => isSameName(unquote(part), names[i] ?? ''))
    ? Buffer.byteLength(found)
    : undefined
}

/** Some row has the member although the schema does not declare it. */
const hasMember = async (
  db: Database,
  { table, column }: NestedColumn,
  path: ReadonlyArray<string>,
): Promise<boolean> =>
  (
    await db.query(`
      SELECT 1 FROM ${quoteIdentifier(table)}
      WHERE json_exists(${quoteIdentifier(column)}, ${quoteLiteral(toJsonPath(path))}) LIMIT 1`)
  ).length > 0

const listNames = (names: ReadonlyArray<string>, limit = 12): string =>
  names.length > limit ? `${names.slice(0, limit).join(', ')} and ${names.length - limit} more` : names.join(', ')

const unknownMemberError = ({ nested, path }: Target, { parent, unknown, known }: UnknownMember): CommandError => {
  const owner = [nested.column, ...parent].join('.')
  const isList = toList(nested.schema.type).includes('array') || nested.schema.type === 'array'
  const near = findNearestName(unknown, known)
  const advice =
    near !== undefined
      ? `Did you mean ${owner}.${near}?`
      : known.length > 0
        ? `It has ${listNames(known)}.`
        : isList && parent.length === 0
          ? `It is a list: ${nested.column}[0].${path.join('.')} is that of its first ` +
            `item, and unnest(${nested.column}::JSON[]) makes a row of each item.`
          : 'No row has it.'
  return new CommandError(configFailure(`The SQL cannot be run. ${owner} has no member ${unknown}. ${advice}`))
}

/**
 * The same query with typed values for members of JSON columns: `location.name` is text, `location.id` an integer.
 * DuckDB reads such a member as JSON, which is text in quotes. Everything else stays as it is, including the JSON
 * columns.
 */
export const typeNestedMembers = async ({ db }: Snapshot, sql: string): Promise<string> => {
  const syntax = await parseSelect(db, sql)
  const references = syntax?.references.filter(({ names }) => names.length > 1) ?? []
  if (syntax === undefined || references.length === 0) return sql
  const columns = await listNestedColumns(db, syntax.relations)
  const edits: Array<{ readonly start: number; readonly end: number; readonly text: string }> = []
  const bytes = Buffer.from(sql)
  for (const { names, offset, isResult } of references) {
    const target = resolveReference(names, syntax.relations, columns)
    if (target === undefined) continue
    const followed = followMembers(target.nested.schema, target.path)
    if ('unknown' in followed) {
      if (await hasMember(db, target.nested, target.path)) continue
      throw unknownMemberError(target, followed)
    }
    const length = offset === undefined ? undefined : measureNames(bytes.toString('utf8', offset), names)
    if (followed.type === 'JSON' || offset === undefined || length === undefined) continue
    const member = `(${target.prefix.map(quoteIdentifier).join('.')}->>${quoteLiteral(toJsonPath(followed.path))})`
    const typed = followed.type === 'VARCHAR' ? member : `TRY_CAST(${member} AS ${followed.type})`
    edits.push({
      start: offset,
      end: offset + length,
      text: isResult ? `${typed} AS ${quoteIdentifier(names.at(-1) ?? '')}` : typed,
    })
  }
  return edits
    .sort((a, b) => b.start - a.start)
    .reduce(
      (text, { start, end, text: typed }) =>
        Buffer.concat([text.subarray(0, start), Buffer.from(typed), text.subarray(end)]),
      bytes,
    )
    .toString()
}

const readPosition = (message: string): string => /\n\nLINE \d+: [\s\S]*$/.exec(message)?.[0].trimEnd() ?? ''

/** The columns of the tables and views that a query reads, with the members of JSON columns as `column.member`. */
const listQueryColumns = async (db: Database, relations: ReadonlyArray<Relation>): Promise<ReadonlyArray<string>> => {
  const tables = relations.flatMap(({ table }) => (table === undefined ? [] : [table.toLowerCase()]))
  const rows = await db.query(`
    SELECT column_name AS name FROM duckdb_columns()
    WHERE list_contains([${['', ...tables].map(quoteLiteral).join(', ')}], lower(table_name))
    GROUP BY ALL ORDER BY min(column_index)`)
  const nested = await listNestedColumns(db, relations)
  return [
    ...rows.map(({ name }) => String(name)),
    ...nested.flatMap(({ column, schema }) => Object.keys(listMembers(schema)).map((name) => `${column}.${name}`)),
  ]
}

const suggestColumn = (name: string, columns: ReadonlyArray<string>): string => {
  const members = columns.filter(
    (column) => isSameName(column.slice(column.indexOf('.') + 1), name) && column.includes('.'),
  )
  const near = members.length > 0 ? members.slice(0, 3).join(' or ') : findNearestName(name, columns)
  const own = columns.filter((column) => !column.includes('.') && !column.startsWith('_airbyte'))
  return near !== undefined ? ` Did you mean ${near}?` : own.length > 0 ? ` There are ${listNames(own, 20)}.` : ''
}

const suggestTable = async (db: Database, name: string): Promise<string> => {
  if (listModelNames().includes(foldCase(name)) && !(await findModels(db)).hasReviews)
    return ' It is a view of the reviews, and the file has none yet: read the stream reviews into it first.'
  const rows = await db.query('SELECT DISTINCT table_name AS name FROM duckdb_columns() WHERE NOT internal')
  const found = [...new Set([...rows.map((row) => String(row.name)), ...listModelNames()])].sort()
  const tables = [...found.filter((each) => !each.startsWith('_')), ...found.filter((each) => each.startsWith('_'))]
  const near = findNearestName(name, tables)
  return near === undefined ? ` There are ${listNames(tables, 30)}.` : ` Did you mean ${near}?`
}

const unknownColumnPattern =
  /^Binder Error: (?:Referenced column|Table "[^"]*" does not have a column named) "(.*?)"(?: (?:was )?not found|\n|$)/

/** DuckDB's message about a query; in plain words if a name is wrong, with the name that was probably meant. */
export const explainQueryError = async ({ db }: Snapshot, sql: string, message: string): Promise<string> => {
  const find = (pattern: RegExp) => pattern.exec(message)?.[1]
  const position = readPosition(message)
  const relations = (await parseSelect(db, sql))?.relations ?? []
  const column = find(unknownColumnPattern)
  if (column !== undefined)
    return `There is no column ${column}.${suggestColumn(column, await listQueryColumns(db, relations))}${position}`
  const qualifier = find(/^Binder Error: Referenced table "(.*?)" not found/)
  if (qualifier !== undefined) {
    const names = [...relations.map(({ alias }) => alias), ...(await listQueryColumns(db, relations))]
    const near = findNearestName(
      qualifier,
      names.filter((name) => !name.includes('.')),
    )
    return (
      `There is no table or column ${qualifier} in this ` +
      `query.${near === undefined ? '' : ` Did you mean ${near}?`}${position}`
    )
  }
  const table = find(/^Catalog Error: Table with name (.*?) does not exist/)
  if (table !== undefined) return `There is no table or view ${table}.${await suggestTable(db, table)}${position}`
  const refusal = explainRefusal(message)
  if (refusal !== undefined) return refusal + position
  return message.replace(/^Failed to extract statements: /, '').replace(/\n\tCandidate functions:\n(?:\t.*\n)*/, '')
}
