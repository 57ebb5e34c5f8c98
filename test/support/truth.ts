import { setImmediate as letOthersRun } from 'node:timers/promises'
import { VARCHAR } from '@duckdb/node-api'
import * as E from 'fp-ts/Either'
import { type ReviewRow, readReviewRows } from '../../connector/sandbox/data/review-tables'
import { reviewText } from '../../connector/sandbox/data/review-text'
import {
  appendBatchRows,
  type Database,
  openDatabase,
  quoteIdentifier,
  quoteLiteral,
} from '../../connector/snapshot/store/database'
import { streams } from '../../connector/streams/streams'
import type { Fields } from './destination'
import { expectedOfReviews } from './expected-rows'

/** What a table lacks, has beyond, and has otherwise, with an example of each. */
export type TableDifference = {
  readonly rows: number
  readonly missing: number
  readonly additional: number
  readonly different: number
  readonly example?: string
}
type Difference = { -readonly [Name in keyof TableDifference]: TableDifference[Name] }

type ColumnInfo = { readonly name: string; readonly type: string }

const open = async (path: string): Promise<Database> => {
  const opened = await openDatabase(path, { readOnly: true, memory: [1e9] })()
  if (E.isLeft(opened)) throw new Error(opened.left.message)
  return opened.right
}

const columnsOf = async (db: Database, table: string): Promise<ReadonlyArray<ColumnInfo>> =>
  (
    await db.query(`
      SELECT column_name AS name, data_type AS type
      FROM duckdb_columns()
      WHERE table_name = '${table}' AND NOT starts_with(column_name, '_')
      ORDER BY column_index`)
  ).map(({ name, type }) => ({ name: String(name), type: String(type) }))

/** Times in milliseconds and integers as text, so that a row is one JSON text that loses nothing. */
const rowSql = (columns: ReadonlyArray<ColumnInfo>): string =>
  `to_json(struct_pack(${columns
    .map(({ name, type }) => {
      const column = quoteIdentifier(name)
      const value = type.startsWith('TIMESTAMP')
        ? `epoch_ms(${column})`
        : type === 'BIGINT'
          ? `${column}::VARCHAR`
          : column
      return `${column} := ${value}`
    })
    .join(', ')}))::VARCHAR`

/**
 * JSON with integers beyond 2^53 as texts, in a tenth of the time that an exact parser takes. No text of the sandbox
 * looks like one.
 */
const parseQuickly = (text: string): unknown => JSON.parse(text.replace(/([:,[])(\d{16,})(?=[,}\]])/g, '$1"$2"'))

/** Two JSON values are the same if an absent member counts as null. */
const isSame = (one: unknown, other: unknown): boolean => {
  if (one === other || (one ?? null) === (other ?? null)) return true
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false
  if (Array.isArray(one) || Array.isArray(other))
    return (
      Array.isArray(one) &&
      Array.isArray(other) &&
      one.length === other.length &&
      one.every((value, i) => isSame(value, other[i]))
    )
  const [a, b] = [one as Fields, other as Fields]
  for (const name in a) if (!isSame(a[name], b[name])) return false
  for (const name in b) if (!(name in a) && !isSame(undefined, b[name])) return false
  return true
}

/** A value of the truth in the form that `rowSql` gives. */
const toHeldValue = (value: unknown, type: string): unknown => {
  if (value === null || value === undefined) return null
  if (type.startsWith('TIMESTAMP')) return Date.parse(String(value))
  return type === 'BIGINT' ? String(value) : value
}

/** A row of the truth in the form that `rowSql` gives. */
const toHeldRow = (row: Fields, columns: ReadonlyArray<ColumnInfo>): Fields =>
  Object.fromEntries(columns.map(({ name, type }) => [name, toHeldValue(row[name], type)]))

/** SQL for a struct of the texts of an object's members, NULL for an absent one. */
const membersSql = (json: string, names: ReadonlyArray<string>): string =>
  `from_json(${json}, ${quoteLiteral(JSON.stringify(Object.fromEntries(names.map((name) => [name, 'VARCHAR']))))})`

/**
 * SQL for each object in a list, as `element` beside its `position` and the columns `own` of the row that has the list.
 */
const elementsSql = (own: string, list: string, from: string, names: ReadonlyArray<string>): string =>
  `SELECT ${own}, ${membersSql('object', names)} AS element, position::VARCHAR AS position
   FROM (
     SELECT ${own}, unnest(objects) AS object, generate_subscripts(objects, 1) - 1 AS position
     FROM (SELECT ${own}, from_json(${list}, '["JSON"]') AS objects FROM ${from})
   )`

/** What the truth contains about each review besides the columns of its table. */
const reviewMembers = ['location', 'provider', 'source', 'contents', 'taskDetails', 'engagements', 'engagement']
const dimensionMembers = ['location', 'provider', 'source'] as const
const own = 'review_id, review_time'

/** The tables of what is within reviews: the SQL of their objects, which have these members. */
const childTables: Readonly<Record<string, (names: ReadonlyArray<string>) => string>> = {
  review_contents: (names) => elementsSql(own, 'review.contents', 'truth_review', names),
  review_sentiments: (names) => elementsSql(`${own}, content_id`, 'sentiments', 'truth_content', names),
  review_liabilities: (names) => elementsSql(`${own}, content_id`, 'liabilities', 'truth_content', names),
  review_tasks: (names) =>
    `SELECT ${own}, ${membersSql('review."taskDetails"', names)} AS element
     FROM truth_review
     WHERE review."taskDetails" IS NOT NULL`,
  review_engagements: (names) => elementsSql(own, 'engagements', 'truth_review', names),
}

const reviewTables = ['reviews', ...Object.keys(childTables)]
const dimensionTables = ['locations', 'providers', 'sources', 'categories', 'questions']

/** The tables of reviews, of what is within them and of their deletions. */
export const tablesOfReviews: ReadonlyArray<string> = [...reviewTables, 'deleted_reviews']
/** All tables that are compared. */
export const comparedTables: ReadonlyArray<string> = [...tablesOfReviews, ...dimensionTables]

/** The rows of each table that these texts of reviews give. */
const expectedRows = (texts: ReadonlyArray<string>): Readonly<Record<string, ReadonlyArray<Fields>>> =>
  expectedOfReviews({ reviews: texts.map((json) => ({ id: '', modifiedTime: '', json })) }, parseQuickly)

/** The columns that are not the object's own members. */
const outerColumns: Readonly<Record<string, string>> = {
  reviewId: 'review_id',
  reviewModifiedTime: 'review_time',
  contentId: 'content_id',
  position: 'position',
}

/** The SQL of a table's rows as the truth has them, in texts. */
const truthRowsSql = (table: string, columns: ReadonlyArray<ColumnInfo>): string => {
  const names = columns.map(({ name }) => name)
  const select = (value: (name: string) => string) =>
    `SELECT ${names.map((name) => `${value(name)} AS ${quoteIdentifier(name)}`).join(', ')}`
  const objects = childTables[table]
  return objects === undefined
    ? `${select((name) => (name === 'engagements' ? name : `review.${quoteIdentifier(name)}`))} FROM truth_review`
    : `${select((name) => outerColumns[name] ?? `element.${quoteIdentifier(name)}`)} FROM (${objects(names)})`
}

/**
 * SQL that is true where a text of the truth and a cell are the same. Digits are compared as texts, so that none are
 * rounded away.
 */
const isSameSql = ({ name, type }: ColumnInfo): string => {
  const [truth, cell] = [`truth.${quoteIdentifier(name)}`, `held.${quoteIdentifier(name)}`]
  const [one, other] = type === 'BIGINT' || type === 'JSON' ? [truth, `${cell}::VARCHAR`] : [`${truth}::${type}`, cell]
  return `${one} IS NOT DISTINCT FROM ${other}`
}

/**
 * The number of a table's rows that are `where`, if DuckDB finds them to be the truth's, each once, down to the order
 * of the members in JSON.
 */
const countIfSame = async (
  held: Database,
  table: string,
  columns: ReadonlyArray<ColumnInfo>,
  where: string,
  key: ReadonlyArray<string>,
): Promise<number | undefined> => {
  await held.run(`CREATE OR REPLACE TEMP TABLE truth_row AS ${truthRowsSql(table, columns)}`)
  const keySql = `(${key.map(quoteIdentifier).join(', ')})`
  const rows = `(SELECT * FROM ${quoteIdentifier(table)} WHERE ${where})`
  const isSame = columns.map(isSameSql).join(' AND ')
  const [counts] = await held.query(`
    SELECT (SELECT count(*) FROM ${rows})::INTEGER AS held,
      (SELECT count(DISTINCT ${keySql}) FROM truth_row)::INTEGER AS wanted,
      (SELECT count(*) FROM truth_row)::INTEGER AS listed,
      (SELECT count(*) FROM truth_row AS truth SEMI JOIN ${rows} AS held ON ${isSame})::INTEGER AS same`)
  const { held: count, wanted, listed, same } = counts ?? {}
  return count === wanted && count === listed && count === same ? Number(count) : undefined
}

/** The texts of reviews, in steps during which DuckDB's work on earlier reviews continues. */
const printReviews = async (rows: ReadonlyArray<ReviewRow>): Promise<ReadonlyArray<string>> => {
  const texts: string[] = []
  for (const row of rows) {
    texts.push(reviewText(row, ['brand', 'visitRecordId']))
    if (texts.length % 1000 === 0) await letOthersRun()
  }
  return texts
}

/**
 * Compares every table of a snapshot with the rows that follow from the sandbox's data, computed without the connector,
 * in batches of reviews. DuckDB first finds out where they are equal; where it cannot, `compare` reports what differs.
 */
export const compareWithTruth = async (
  sandboxData: string,
  snapshot: string,
  chunkSize = 50_000,
): Promise<Readonly<Record<string, TableDifference>>> => {
  const [service, held] = [await open(sandboxData), await open(snapshot)]
  const keys = new Map(streams.map(({ name, primaryKey }) => [name, primaryKey]))
  const columnsByTable = new Map<string, ReadonlyArray<ColumnInfo>>()
  // A location, provider, source or category comes from whichever review named it last.
  for (const { name: table } of streams)
    columnsByTable.set(
      table,
      (await columnsOf(held, table)).filter(({ name }) => name !== 'reviewModifiedTime' || table.startsWith('review_')),
    )
  const differences: Record<string, Difference> = {}
  const differenceOf = (table: string): Difference => {
    differences[table] ??= { rows: 0, missing: 0, additional: 0, different: 0 }
    return differences[table]
  }
  const compare = async (table: string, expected: ReadonlyArray<Fields>, where: string) => {
    const columns = columnsByTable.get(table) ?? []
    const key = keys.get(table) ?? []
    const keyOf = (row: Fields) => key.map((name) => String(row[name])).join(' ')
    const difference = differenceOf(table)
    // Reviews may word a question in several ways, of which a table has one.
    const wanted = new Map<string, ReadonlyArray<Fields>>()
    for (const row of expected) wanted.set(keyOf(row), [...(wanted.get(keyOf(row)) ?? []), row])
    const found = await held.query(`SELECT ${rowSql(columns)} AS row FROM ${quoteIdentifier(table)} WHERE ${where}`)
    difference.rows += found.length
    for (const { row: text } of found) {
      const row = parseQuickly(String(text)) as Fields
      const those = wanted.get(keyOf(row)) ?? []
      const [one] = those
      wanted.delete(keyOf(row))
      const isEqual = (other: Fields) =>
        columns.every(({ name, type }) => isSame(row[name], toHeldValue(other[name], type)))
      if (those.some(isEqual)) continue
      difference[one === undefined ? 'additional' : 'different'] += 1
      difference.example ??= `${text} instead of ${JSON.stringify(one && toHeldRow(one, columns))}`
    }
    for (const [one] of wanted.values())
      difference.example ??= `${JSON.stringify(one && toHeldRow(one, columns))} is missing`
    difference.missing += wanted.size
  }
  const told = new Set<string>()
  const compareChunk = async (texts: ReadonlyArray<string>, after: string, until: string) => {
    await held.run('CREATE OR REPLACE TEMP TABLE truth_text (json VARCHAR)')
    for (let from = 0; from < texts.length; from += appendBatchRows)
      await held.appendColumns('truth_text', [VARCHAR], [texts.slice(from, from + appendBatchRows)])
    const members = new Set([...(columnsByTable.get('reviews') ?? []).map(({ name }) => name), ...reviewMembers])
    await held.run(
      `CREATE OR REPLACE TEMP TABLE truth_review AS
         SELECT review, review.id AS review_id, review."modifiedTime" AS review_time,
           coalesce(review.engagement, review.engagements) AS engagements
         FROM (SELECT ${membersSql('json', [...members])} AS review FROM truth_text);
       CREATE OR REPLACE TEMP TABLE truth_content AS
         SELECT ${own}, element.id AS content_id, element.sentiments AS sentiments, element.liabilities AS liabilities
         FROM (${childTables.review_contents?.(['id', 'sentiments', 'liabilities'])})`,
    )
    let truth: Readonly<Record<string, ReadonlyArray<Fields>>> | undefined
    for (const table of reviewTables) {
      const id = table === 'reviews' ? 'id' : '"reviewId"'
      const where = `${id} > ${after} AND ${id} <= ${until}`
      const count = await countIfSame(held, table, columnsByTable.get(table) ?? [], where, keys.get(table) ?? [])
      if (count === undefined) {
        truth ??= expectedRows(texts)
        await compare(table, truth[table] ?? [], where)
      } else differenceOf(table).rows += count
    }
    // Reviews with one member each, from which the truth gives the same tables as from all reviews.
    for (const member of dimensionMembers)
      for (const { json } of await held.query(
        `SELECT DISTINCT review.${member} AS json FROM truth_review WHERE review.${member} IS NOT NULL`,
      ))
        told.add(`{"${member}":${json}}`)
    for (const { category, subCategory } of await held.query(`
      SELECT DISTINCT element.category AS category, element."subCategory" AS "subCategory"
      FROM (${childTables.review_sentiments?.(['category', 'subCategory'])})`))
      told.add(JSON.stringify({ contents: [{ sentiments: [{ category, subCategory }] }] }))
    const contents = childTables.review_contents?.(['question', 'questionType', 'questionCode'])
    for (const { json } of await held.query(`SELECT DISTINCT to_json(element) AS json FROM (${contents})`))
      told.add(`{"contents":[${json}]}`)
  }
  const bounds = await service.query(`
    SELECT min(id)::VARCHAR AS least, max(id)::VARCHAR AS greatest
    FROM (SELECT id, row_number() OVER (ORDER BY id) // ${chunkSize} AS chunk FROM review)
    GROUP BY chunk
    ORDER BY min(id)`)
  let comparing: Promise<void> = Promise.resolve()
  for (const [i, { greatest }] of bounds.entries()) {
    // Without gaps between the chunks, so that a row with an unknown id is found too.
    const after = i === 0 ? '-1' : String(bounds[i - 1]?.greatest)
    const until = i === bounds.length - 1 ? '9223372036854775807' : String(greatest)
    const texts = await printReviews(await readReviewRows(service, `WHERE r.id > ${after} AND r.id <= ${until}`))
    await comparing
    comparing = compareChunk(texts, after, until)
    comparing.catch(() => undefined)
  }
  await comparing
  for (const table of reviewTables) {
    const difference = differenceOf(table)
    const unkeyed = Number(await held.scalar(`SELECT count(*) FROM ${quoteIdentifier(table)}`)) - difference.rows
    difference.rows += unkeyed
    difference.additional += unkeyed
    if (unkeyed > 0) difference.example ??= `${unkeyed} rows without the id of a review`
  }
  const truth = expectedRows([...told])
  for (const table of dimensionTables) await compare(table, truth[table] ?? [], 'true')
  const deleted = await service.query(
    `SELECT id::VARCHAR AS id, epoch_ms(max(modified)) AS modified FROM deleted GROUP BY id`,
  )
  await compare(
    'deleted_reviews',
    deleted.map(({ id, modified }) => ({ id, modifiedTime: new Date(Number(modified)).toISOString() })),
    'true',
  )
  service.close()
  held.close()
  return differences
}
