import * as E from 'fp-ts/Either'
import { readReviewRows, reviewText } from '../../connector/sandbox/data/review-text'
import { type Database, openDatabase, quoteIdentifier } from '../../connector/snapshot/store/database'
import { streams } from '../../connector/streams/streams'
import type { Fields } from './destination'
import { expectedOfReviews } from './expected-rows'

/** Reviews that are compared at a time. */
const chunkSize = 20_000

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
    await db.query(
      `SELECT column_name AS name, data_type AS type FROM duckdb_columns() WHERE table_name = '${table}' AND column_name NOT LIKE '\\_%' ESCAPE '\\' ORDER BY column_index`,
    )
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

/** JSON with integers beyond 2^53 as texts, in a tenth of the time that an exact parser takes. No text of the sandbox looks like one. */
const parseQuickly = (text: string): unknown => JSON.parse(text.replace(/([:,[])(\d{16,})(?=[,}\]])/g, '$1"$2"'))

/** Whether two values of JSON are the same where an absent member is like a null. */
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

/** Compares every table of a snapshot with the rows that the sandbox's data gives, computed without the connector. */
export const compareWithTruth = async (
  sandboxData: string,
  snapshot: string,
): Promise<Readonly<Record<string, TableDifference>>> => {
  const [service, held] = [await open(sandboxData), await open(snapshot)]
  const keys = new Map(streams.map(({ name, primaryKey }) => [name, primaryKey]))
  const differences: Record<string, TableDifference> = {}
  const compare = async (table: string, expected: ReadonlyArray<Fields>, where: string) => {
    // A location, provider, source or category is of whichever review told it last.
    const columns = (await columnsOf(held, table)).filter(
      ({ name }) => name !== 'reviewModifiedTime' || table.startsWith('review_'),
    )
    const key = keys.get(table) ?? []
    const keyOf = (row: Fields) => key.map((name) => String(row[name])).join(' ')
    const difference: Difference = { ...(differences[table] ?? { rows: 0, missing: 0, additional: 0, different: 0 }) }
    const wanted = new Map(expected.map((row) => [keyOf(row), row]))
    const found = await held.query(`SELECT ${rowSql(columns)} AS row FROM ${quoteIdentifier(table)} WHERE ${where}`)
    difference.rows += found.length
    for (const { row: text } of found) {
      const row = parseQuickly(String(text)) as Fields
      const one = wanted.get(keyOf(row))
      wanted.delete(keyOf(row))
      const isEqual =
        one !== undefined && columns.every(({ name, type }) => isSame(row[name], toHeldValue(one[name], type)))
      if (isEqual) continue
      difference[one === undefined ? 'additional' : 'different'] += 1
      difference.example ??= `${text} instead of ${JSON.stringify(one && toHeldRow(one, columns))}`
    }
    for (const one of wanted.values()) difference.example ??= `${JSON.stringify(toHeldRow(one, columns))} is missing`
    differences[table] = { ...difference, missing: difference.missing + wanted.size }
  }
  const dimensions = new Map<string, Map<string, Fields>>()
  const bounds = await service.query(
    `SELECT min(id)::VARCHAR AS least, max(id)::VARCHAR AS greatest FROM (SELECT id, row_number() OVER (ORDER BY id) // ${chunkSize} AS chunk FROM review) GROUP BY chunk ORDER BY min(id)`,
  )
  for (const [i, { greatest }] of bounds.entries()) {
    // Without gaps between the chunks, so that a row with an unknown id is found too.
    const after = i === 0 ? '-1' : String(bounds[i - 1]?.greatest)
    const until = i === bounds.length - 1 ? '9223372036854775807' : String(greatest)
    const rows = await readReviewRows(service, `WHERE r.id > ${after} AND r.id <= ${until}`)
    const reviews = rows.map((row) => ({
      id: row.id,
      modifiedTime: '',
      json: reviewText(row, ['brand', 'visitRecordId']),
    }))
    const truth = expectedOfReviews({ reviews }, parseQuickly)
    for (const [table, expected] of Object.entries(truth)) {
      const key = keys.get(table) ?? []
      if (table === 'reviews' || table.startsWith('review_')) {
        const id = table === 'reviews' ? 'id' : '"reviewId"'
        await compare(table, expected, `${id} > ${after} AND ${id} <= ${until}`)
      } else {
        const all = dimensions.get(table) ?? new Map<string, Fields>()
        for (const row of expected) all.set(key.map((name) => String(row[name])).join(' '), row)
        dimensions.set(table, all)
      }
    }
  }
  for (const [table, rows] of dimensions) await compare(table, [...rows.values()], 'true')
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
