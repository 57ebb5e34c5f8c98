import * as E from 'fp-ts/Either'
import { configFailure, type Failure } from '../cdk'
import { dialects } from './dialect'
import type { AuditedTable } from './statement'

/** The reviews that an audit found to differ. */
export type Difference = { readonly id: string; readonly difference: string }

const kinds = ['missing', 'extra', 'stale', 'newer', 'rows missing', 'doubled'] as const

/** The answer of the statement of `reviewStatement`, as a client of the warehouse saved it: CSV with a header, a JSON array, or an object a line. */
export const decodeDifferences = (text: string): E.Either<Failure, ReadonlyArray<Difference>> => {
  const body = text.replace(/^\ufeff/, '').trim()
  if (body === '') return E.right([])
  const records = /^[[{]/.test(body) ? readJsonRows(body) : readCsvRows(body)
  const differences = records?.map((record) => ({
    id: String(findValue(record, 'id') ?? ''),
    difference: String(findValue(record, 'difference')),
  }))
  const isWrong = ({ id, difference }: Difference) =>
    !/^(?:-?\d{1,19})?$/.test(id) || !kinds.some((kind) => kind === difference)
  const wrong = differences?.findIndex(isWrong) ?? 0
  return differences === undefined || wrong >= 0
    ? E.left(
        configFailure(
          `is not the answer of the statement that --ids prints${differences === undefined ? '' : `: row ${wrong + 1} has no id and difference of it`}. Save that answer as CSV with a header, or as JSON.`,
        ),
      )
    : E.right(differences)
}

type AnswerRow = Readonly<Record<string, unknown>>

/** Warehouses answer with names in upper or lower case. */
const findValue = (row: AnswerRow, name: string): unknown =>
  Object.entries(row).find(([key]) => key.toLowerCase() === name)?.[1]

const readJsonRows = (body: string): ReadonlyArray<AnswerRow> | undefined => {
  // An id may have more digits than a JSON number keeps, so it is read as text.
  const exact = body.replace(/("id"\s*:\s*)(-?\d+)/gi, '$1"$2"')
  try {
    const rows: unknown = exact.startsWith('[')
      ? JSON.parse(exact)
      : exact.split(/\r?\n/).flatMap((line) => (line.trim() === '' ? [] : [JSON.parse(line)]))
    return Array.isArray(rows) && rows.every((row) => typeof row === 'object' && row !== null) ? rows : undefined
  } catch {
    return undefined
  }
}

const readCsvRows = (body: string): ReadonlyArray<AnswerRow> => {
  const [header = '', ...lines] = body.split(/\r?\n/)
  const separator = [',', ';', '\t', '|'].find((sign) => header.includes(sign)) ?? ','
  const split = (line: string) => line.split(separator).map((cell) => cell.trim().replace(/^"(.*)"$/, '$1'))
  const names = split(header)
  return lines.map((line) => Object.fromEntries(split(line).map((cell, i) => [names[i] ?? '', cell])))
}

const idsPerStatement = 1000

/** Statements that delete the rows of reviews that are extra, stale or doubled. The run that starts from the repaired state sends what the service has of them. */
export const deleteStatement = (table: AuditedTable, differences: ReadonlyArray<Difference>): string => {
  const column = dialects[table.dialect].quote(table.idColumn)
  const ids = differences.filter(({ difference }) => difference !== 'missing').map(({ id }) => id)
  const known = ids.filter((id) => /^-?\d+$/.test(id)).map((id) => (table.idType === 'text' ? `'${id}'` : id))
  const statements: string[] = []
  for (let from = 0; from < known.length; from += idsPerStatement)
    statements.push(
      `DELETE FROM ${table.name} WHERE ${column} IN (${known.slice(from, from + idsPerStatement).join(', ')});\n`,
    )
  if (ids.includes('')) statements.push(`DELETE FROM ${table.name} WHERE ${column} IS NULL;\n`)
  return statements.join('')
}
