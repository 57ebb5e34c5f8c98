import { isUtf8 } from 'node:buffer'
import { readFile } from 'node:fs/promises'
import { CommandError, configFailure, unreadableFailure } from '../cdk'

type Line = { readonly number: number; readonly cells: ReadonlyArray<string> }

/** A line of a CSV file with a header. `cell`: the cell of a column, null if empty or missing. */
export type NamedLine<Name extends string> = { readonly number: number; readonly cell: (name: Name) => string | null }

/** One cell and what ends it: quoted, with inner quotes doubled, or plain. */
const createCellPattern = (separator: string): RegExp =>
  new RegExp(`(?:"((?:[^"]|"")*)"|([^"${separator}\\r\\n][^${separator}\\r\\n]*)?)(${separator}|\\r\\n|\\r|\\n|$)`, 'y')

/** The lines of a CSV file, each with its number; undefined if a quote is not closed. */
const splitCsv = (text: string, separator: string): ReadonlyArray<Line> | undefined => {
  const pattern = createCellPattern(separator)
  const lines: Array<Line> = []
  let cells: Array<string> = []
  let number = 1
  let start = 1
  while (pattern.lastIndex < text.length || cells.length > 0) {
    const match = pattern.exec(text)
    if (match === null) return undefined
    const [all, quoted, plain = '', end] = match
    cells.push((quoted?.replaceAll('""', '"') ?? plain).trim())
    number += all.split(/\r\n|\r|\n/).length - 1
    if (end === separator) continue
    if (cells.some((cell) => cell !== '')) lines.push({ number: start, cells })
    cells = []
    start = number
    if (end === '') break
  }
  return lines
}

/** The text of a CSV file. Rejects with `CommandError` if it does not exist or is not UTF-8. */
export const readCsvFile = async (path: string): Promise<string> => {
  const bytes = await readFile(path).catch((error: unknown) => {
    throw new CommandError(unreadableFailure(path, error))
  })
  if (!isUtf8(bytes))
    throw new CommandError(
      configFailure(`${path} is not UTF-8, so its names cannot be read. In a spreadsheet, save it as "CSV UTF-8".`),
    )
  return bytes.toString()
}

/**
 * The lines of a CSV file with a header, separated by commas, semicolons or tabs. `names`: its columns; `fail`: throws
 * a `CommandError` about the file. Calls `fail` if the text is not CSV.
 */
export const decodeCsv = <Name extends string>(path: string, text: string, columns: ReadonlyArray<Name>) => {
  const fail = (problem: string): never => {
    throw new CommandError(configFailure(`${path}${problem}`))
  }
  const body = text.replace(/^\ufeff/, '')
  const separator = [',', ';', '\t'].find((sign) => (body.split(/[\r\n]/, 1)[0] ?? '').includes(sign)) ?? ','
  const [header, ...lines] =
    splitCsv(body, separator) ?? fail(' is not CSV: a quote is not closed, or text follows one that is.')
  const names = header?.cells.map((name) => name.trim().toLowerCase()) ?? []
  const twice = columns.find((name) => names.indexOf(name) !== names.lastIndexOf(name))
  if (twice !== undefined) fail(`: the first line names the column ${twice} twice. Leave one of them out.`)
  return {
    names,
    fail,
    lines: lines.map(({ number, cells }): NamedLine<Name> => {
      if (cells.length > names.length)
        fail(
          `, line ${number}: there are ${cells.length} cells and ${names.length} columns. ` +
            'Put a cell with a separator in quotes.',
        )
      return { number, cell: (name) => cells[names.indexOf(name)] || null }
    }),
  }
}
