import type { Derivation, NamesDerivation, PartStep } from '../../cdk'
import { quoteIdentifier, quoteLiteral } from '../store/database'
import { attributeOf, type Column, type Table } from '../store/tables'
import { type RecordSource, shapeOf, type TypedRows, typeRecords, typeRows } from './typed-rows'

// The rows of child streams, made from the reviews that name them. `unnest` is used in the SELECT list: as a lateral
// join it takes four times as long. Our names begin with _, and foreign names are always members of a structure.

/** A stream whose rows are made from reviews. */
export type DerivedStream = { readonly table: Table; readonly derivation: Derivation; readonly generation: number }

/**
 * Reviews, as SQL with `_seq`, `_at`, `_review`, `_time` and `_part`: the review itself, as a structure of what the
 * streams need; with `isText` as JSON text, which also has members that no stream declares.
 */
export type Reviews = { readonly sql: string; readonly isText: boolean }

type Shape = { [name: string]: string | Shape | [Shape] }

/** Adds what a stream takes from a review to a shape. */
const addToShape = (shape: Shape, { table, derivation }: DerivedStream): void => {
  if (derivation._tag === 'record') return
  const steps: ReadonlyArray<PartStep> =
    derivation._tag === 'dimension' ? [{ name: derivation.member, isList: false }] : derivation.steps
  let inner = shape
  for (const { name, isList, key } of steps) {
    const found = inner[name]
    const member: Shape = (Array.isArray(found) ? found[0] : (found as Shape | undefined)) ?? {}
    inner[name] = isList ? [member] : member
    if (key !== undefined) member[key] ??= 'BIGINT'
    inner = member
  }
  const carried = new Set(valuesOf(derivation).keys())
  const columns = table.columns.filter(({ name }) => !carried.has(name))
  if (derivation._tag === 'names') for (const name of derivation.names) inner[name] = 'VARCHAR'
  else Object.assign(inner, shapeOf(columns, true))
}

/** The reviews of a spool, in the form that these streams need. */
export const reviewsOf = (spool: string, streams: ReadonlyArray<DerivedStream>, isText: boolean): Reviews => {
  const shape: Shape = { id: 'BIGINT', modifiedTime: 'TIMESTAMPTZ' }
  for (const stream of streams) addToShape(shape, stream)
  const record = (members: Shape) => `from_json(_json, ${quoteLiteral(JSON.stringify(members))})`
  const { id, modifiedTime } = shape
  return {
    isText,
    sql: isText
      ? `SELECT _seq, _at, _key.id AS _review, _key."modifiedTime" AS _time, _part
         FROM (SELECT _seq, _at, ${record({ id, modifiedTime } as Shape)} AS _key, _json AS _part FROM ${spool})`
      : `SELECT _seq, _at, _part.id AS _review, _part."modifiedTime" AS _time, _part
         FROM (SELECT _seq, _at, ${record(shape)} AS _part FROM ${spool})`,
  }
}

const memberPath = (name: string): string => quoteLiteral(`$.${JSON.stringify(name)}`)

/** SQL for a member of `_part`: an object, a list of objects, or a text. */
const memberSql = ({ isText }: Reviews, { name, isList }: Pick<PartStep, 'name' | 'isList'>): string => {
  if (!isText) return `_part.${quoteIdentifier(name)}`
  return isList
    ? `json_extract(_part, ${quoteLiteral(`$.${JSON.stringify(name)}[*]`)})`
    : `nullif(json_extract(_part, ${memberPath(name)}), 'null'::JSON)`
}

const textSql = ({ isText }: Reviews, name: string): string =>
  isText ? `json_extract_string(_part, ${memberPath(name)})` : `_part.${quoteIdentifier(name)}`

/** The name of our column for a member that nested rows inherit. */
const carriedName = (name: string): string => quoteIdentifier(`_carried_${name}`)

/**
 * The objects that steps lead to, as SQL with `_seq`, `_at`, `_review`, `_time`, `_part` and inherited members.
 * `_place`: a text that sorts the objects of one review in their original order. It is costly, so it exists only on
 * request.
 */
const partsSql = (reviews: Reviews, steps: ReadonlyArray<PartStep>, hasPlace: boolean): string => {
  let sql = hasPlace ? `SELECT *, '' AS _place FROM (${reviews.sql})` : reviews.sql
  let names = ['_seq', '_at', '_review', '_time', ...(hasPlace ? ['_place'] : [])]
  for (const step of steps) {
    const member = memberSql(reviews, step)
    const isNumbered = step.isList && (hasPlace || step.index !== undefined)
    const number = isNumbered ? `, generate_subscripts(${member}, 1) - 1 AS _number` : ''
    sql = `SELECT ${names.join(', ')}, ${step.isList ? `unnest(${member})` : member} AS _part${number} FROM (${sql})`
    const carried = [
      ...(step.as === undefined || step.key === undefined
        ? []
        : [`${textSql(reviews, step.key)} AS ${carriedName(step.as)}`]),
      ...(step.index === undefined ? [] : [`_number AS ${carriedName(step.index)}`]),
    ]
    const place = hasPlace && step.isList ? " || lpad(_number::VARCHAR, 9, '0')" : ''
    const kept = names.map((name) => (name === '_place' ? `_place${place} AS _place` : name))
    const where =
      step.key === undefined
        ? step.isList
          ? 'true'
          : '_part IS NOT NULL'
        : `${textSql(reviews, step.key)} IS NOT NULL`
    sql = `SELECT ${[...kept, ...carried, '_part'].join(', ')} FROM (${sql}) WHERE ${where}`
    names = [...names, ...[step.as, step.index].flatMap((name) => (name === undefined ? [] : [carriedName(name)]))]
  }
  return sql
}

/** SQL for the columns that a derivation fills itself, by name. */
const valuesOf = (derivation: Derivation): ReadonlyMap<string, (column: Column) => string> => {
  const version: ReadonlyArray<readonly [string, (column: Column) => string]> = [['reviewModifiedTime', () => '_time']]
  if (derivation._tag === 'names')
    return new Map([
      ...version,
      ['id', () => '_id'],
      ...derivation.names.map((name, i) => [name, () => `_name${i}`] as const),
      ...(derivation.kind === undefined ? [] : [[derivation.kind.column, () => '_kind'] as const]),
    ])
  if (derivation._tag !== 'part') return new Map(version)
  const carried = derivation.steps.flatMap(({ as, index }) => [as, index].flatMap((name) => name ?? []))
  return new Map([
    ...version,
    ['reviewId', () => '_review'],
    ...carried.map((name) => [name, ({ type }: Column) => `${carriedName(name)}::${type}`] as const),
  ])
}

/** Objects of reviews as records to be typed; `place`: SQL for their place in the stream. */
const toSource = ({ table, derivation }: DerivedStream, isText: boolean, sql: string, place: string): RecordSource => {
  const values = valuesOf(derivation)
  const given = table.columns.flatMap((column) => {
    const value = values.get(attributeOf(column))
    return value === undefined ? [] : [[column.name, value(column)] as const]
  })
  const columns = table.columns.filter(({ name }) => !given.some(([other]) => other === name))
  const shape = quoteLiteral(JSON.stringify(shapeOf(columns, true)))
  const record = isText
    ? `${columns.length === 0 ? 'NULL' : `from_json(_part, ${shape})`} AS _record, _part AS _json`
    : '_part AS _record, NULL::JSON AS _json'
  return {
    sql: `SELECT * EXCLUDE (_seq, _part), ${record}, NULL::VARCHAR AS _changes, ${place} AS _seq FROM (${sql})`,
    isChecked: true,
    values: new Map(given),
  }
}

/** The lists of a child stream whose elements have keys that may repeat: SQL for the keys, and for their rows. */
export const repeatedPartsSql = (reviews: Reviews, { derivation }: DerivedStream): string | undefined => {
  if (derivation._tag !== 'part') return undefined
  const { steps } = derivation
  const last = steps.at(-1)
  if (last?.key === undefined || !last.isList) return undefined
  const keys = [
    '_review',
    ...steps.flatMap(({ as }) => (as === undefined ? [] : [carriedName(as)])),
    textSql(reviews, last.key),
  ]
  const sql = partsSql(reviews, steps, false)
  return `SELECT count(*) > 0 FROM (SELECT 1 FROM (${sql}) GROUP BY ${keys.join(', ')} HAVING count(*) > 1)`
}

/**
 * The names of the members of a child stream's objects, if some are undeclared. Undefined for a stream without such
 * objects.
 */
export const memberNamesSql = (reviews: Reviews, { derivation }: DerivedStream): string | undefined => {
  if (derivation._tag === 'record' || derivation._tag === 'names') return undefined
  const steps = derivation._tag === 'part' ? derivation.steps : [{ name: derivation.member, isList: false }]
  return `SELECT DISTINCT unnest(json_keys(_part)) AS name FROM (${partsSql(reviews, steps, false)})`
}

/** The members of an object that are not attributes of its rows. */
export const omittedMembers = (derivation: Derivation): ReadonlyArray<string> => [
  ...(derivation._tag === 'part' ? derivation.omitted : []),
  ...valuesOf(derivation).keys(),
]

/**
 * The table with what a run has already seen of a stream that sends each version once. Rows are only added, each with
 * its commit, so that a retried commit can remove its own.
 */
export type Seen = { readonly load: number | bigint; readonly commit: number }

const seenName = ({ load }: Seen): string => `temp._seen_${load}`

export const createSeenSql = (seen: Seen): string => `
  CREATE TEMP TABLE IF NOT EXISTS _seen_${seen.load} (commit BIGINT, key VARCHAR, content UBIGINT, time TIMESTAMPTZ)`

export const forgetSeenSql = (seen: Seen): string => `DELETE FROM ${seenName(seen)} WHERE commit = ${seen.commit}`

/**
 * Into `_found`: for each object that reviews name, the versions that differ from the previous one, in the order of the
 * reviews. Versions from older reviews never follow newer ones.
 */
const findVersionsSql = (reviews: Reviews, { table }: DerivedStream, member: string, seen: Seen): string => {
  const sql = partsSql(reviews, [{ name: member, isList: false, key: 'id' }], false)
  const columns = table.columns.filter(
    ({ name, attribute }) => attribute === undefined && name !== 'reviewModifiedTime',
  )
  const record = reviews.isText ? `from_json(_part, ${quoteLiteral(JSON.stringify(shapeOf(columns, true)))})` : '_part'
  // Null attributes do not count, so that a new column changes nothing.
  const texts = columns.map(({ name }) => `${quoteLiteral(`${name}=`)} || _record.${quoteIdentifier(name)}::VARCHAR`)
  return `
  CREATE OR REPLACE TEMP TABLE _found AS
  SELECT *, lag(_content) OVER (PARTITION BY _key ORDER BY _seq) AS _before FROM (
    SELECT *, max(_time) OVER (
      PARTITION BY _key ORDER BY _seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS _last
    FROM (
      SELECT _seq, _at, _review, _time, _key, hash(concat_ws(chr(31), ${texts.join(', ')})) AS _content, _part
      FROM (SELECT *, ${textSql(reviews, 'id')} AS _key, ${record} AS _record FROM (${sql}))
      UNION ALL BY NAME
      SELECT -1 AS _seq, key AS _key, arg_max(content, time) AS _content, max(time) AS _time
      FROM ${seenName(seen)} GROUP BY key))
  WHERE _last IS NULL OR _time > _last;
  INSERT INTO ${seenName(seen)}
  SELECT ${seen.commit}, _key, arg_max(_content, _time), max(_time) FROM _found WHERE _seq >= 0 GROUP BY _key;
  DELETE FROM _found WHERE _seq < 0 OR _before IS NOT DISTINCT FROM _content`
}

/** Any kind of white space that JavaScript trims. */
const blankPattern = `'[\\s\\x{0B}\\x{FEFF}\\p{Z}]*'`

/** Into `_found`: the first object of each key that no earlier review has shown. Blank names do not count. */
const findNamesSql = (reviews: Reviews, { steps, names, hasKey, kind }: NamesDerivation, seen: Seen): string => {
  const columns = names.map((_, i) => `_name${i}`)
  const texts = names.map(
    (name, i) =>
      `CASE WHEN NOT regexp_full_match(${textSql(reviews, name)}, ${blankPattern})
        THEN ${textSql(reviews, name)} END AS _name${i}`,
  )
  const [first = '', ...others] = columns.map((column) => `replace(${column}, '>', '>>')`)
  const rest = others.map((text, i) => `'> ' || ${hasKey && i === 0 ? `coalesce(${text}, '')` : text}`)
  const joined = `concat_ws(' ', ${[...(hasKey ? [] : [first]), ...rest].join(', ')})`
  const values = Object.entries(kind?.values ?? {}).map((value) => value.map(quoteLiteral).join(': '))
  const kindSql = kind && `MAP {${values.join(', ')}}[lower(trim(_name${names.indexOf(kind.of)}, ' '))] AS _kind,`
  // If only a name is the key, the other attributes may differ. Then the place in the review decides which object is
  // first.
  const placed = steps.map((step, i) => (hasKey ? { ...step, index: `place${i}` } : step))
  const order = `, min([${['_seq', ...steps.map((_, i) => carriedName(`place${i}`))].join(', ')}]) AS _order`
  return `
  CREATE OR REPLACE TEMP TABLE _found AS
  SELECT *, _id AS _key FROM (
    SELECT *, NULL::VARCHAR AS _part, ${kindSql ?? ''}
      ${hasKey ? `coalesce(${first}, ${joined})` : joined} AS _id
    FROM (
      SELECT min(_seq) AS _seq, arg_min(_at, _seq) AS _at, arg_min(_review, _seq) AS _review,
        arg_min(_time, _seq) AS _time${hasKey ? order : ''}, ${columns.join(', ')}
      FROM (SELECT *, ${texts.join(', ')}
        FROM (${partsSql(reviews, placed, false)}))
      WHERE coalesce(${columns.join(', ')}) IS NOT NULL GROUP BY ${columns.join(', ')}))
  ${hasKey ? 'QUALIFY row_number() OVER (PARTITION BY _id ORDER BY _order) = 1' : ''};
  DELETE FROM _found WHERE _key IN (SELECT key FROM ${seenName(seen)});
  INSERT INTO ${seenName(seen)} (commit, key) SELECT ${seen.commit}, _key FROM _found`
}

/** Into `_found`: what a stream sends once; undefined for a stream whose rows are not found this way. */
export const findSql = (reviews: Reviews, stream: DerivedStream, seen: Seen): string | undefined => {
  const { derivation } = stream
  if (derivation._tag === 'dimension') return findVersionsSql(reviews, stream, derivation.member, seen)
  return derivation._tag === 'names' ? findNamesSql(reviews, derivation, seen) : undefined
}

/**
 * The rows that a stream makes from reviews, or from `_found` if `findSql` filled it. `spool`: the reviews as received.
 * `isOrdered`: each part of a review has its own place.
 */
export const typeStream = (reviews: Reviews, stream: DerivedStream, spool: string, isOrdered: boolean): TypedRows => {
  const { table, derivation, generation } = stream
  const { isText } = reviews
  const typed = (isTextPart: boolean, sql: string, place: string): TypedRows =>
    typeRecords(table, generation, toSource(stream, isTextPart, sql, place))
  switch (derivation._tag) {
    case 'record':
      return typeRows(table, generation, spool, true)
    case 'part': {
      const place = isOrdered ? 'row_number() OVER (ORDER BY _seq, _place)' : '_seq'
      return typed(isText, partsSql(reviews, derivation.steps, isOrdered), place)
    }
    // A review may show several, and each needs its own place.
    case 'dimension':
      return typed(isText, 'FROM temp._found', 'row_number() OVER (ORDER BY _seq)')
    case 'names':
      return typed(false, 'FROM temp._found', 'row_number() OVER (ORDER BY _seq)')
  }
}
