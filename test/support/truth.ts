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

const sortMembers = (value: unknown): unknown => {
  if (typeof value === 'bigint') return String(value)
  if (Array.isArray(value)) return value.map(sortMembers)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== null && member !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, member]) => [name, sortMembers(member)]),
  )
}

/** A row of the truth in the form that `rowSql` gives. */
const toRowText = (row: Fields, columns: ReadonlyArray<ColumnInfo>): string =>
  JSON.stringify(
    sortMembers(
      Object.fromEntries(
        columns.map(({ name, type }) => {
          const value = row[name] ?? null
          if (value === null) return [name, null]
          if (type.startsWith('TIMESTAMP')) return [name, Date.parse(String(value))]
          return [name, type === 'BIGINT' ? String(value) : value]
        }),
      ),
    ),
  )

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
      const [held, truth] = [JSON.stringify(sortMembers(row)), one === undefined ? undefined : toRowText(one, columns)]
      if (held === truth) continue
      difference[truth === undefined ? 'additional' : 'different'] += 1
      difference.example ??= `${held} instead of ${truth}`
    }
    for (const one of wanted.values()) difference.example ??= `${toRowText(one, columns)} is missing`
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
