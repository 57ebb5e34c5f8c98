import { isUtf8 } from 'node:buffer'
import { readFile } from 'node:fs/promises'
import { CommandError, configFailure } from '../cdk'
import type { Region } from './store/models'

const columnNames = ['location_id', 'location_name', 'region'] as const
type ColumnName = (typeof columnNames)[number]

type Line = { readonly number: number; readonly cells: ReadonlyArray<string> }

/** One cell, with what ends it: quoted, with quotes inside doubled, or plain. */
const createCellPattern = (separator: string): RegExp =>
  new RegExp(`(?:"((?:[^"]|"")*)"|([^"${separator}\\r\\n][^${separator}\\r\\n]*)?)(${separator}|\\r\\n|\\r|\\n|$)`, 'y')

/** The lines of a CSV file, each with its number; undefined from where a quote is not closed. */
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

export const foldName = (name: string): string => name.trim().toLowerCase()

/**
 * Reads a file of regions: CSV with a header, separated by commas, semicolons or tabs. Rejects with `CommandError` that
 * names the line. A name that several ids have is left out, since it would be ambiguous.
 */
export const readRegions = async (path: string): Promise<ReadonlyArray<Region>> => {
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    throw new CommandError(configFailure(`${path} cannot be read (${error.code ?? error.message}). Check the path.`))
  })
  if (!isUtf8(bytes))
    throw new CommandError(
      configFailure(
        `${path} is not UTF-8, so that its names cannot be read. In a spreadsheet, save it as "CSV UTF-8".`,
      ),
    )
  return decodeRegions(path, bytes.toString())
}

export const decodeRegions = (path: string, text: string): ReadonlyArray<Region> => {
  const fail = (problem: string): never => {
    throw new CommandError(configFailure(`${path}${problem}`))
  }
  const body = text.replace(/^\ufeff/, '')
  const separator = [',', ';', '\t'].find((sign) => (body.split(/[\r\n]/, 1)[0] ?? '').includes(sign)) ?? ','
  const [header, ...lines] =
    splitCsv(body, separator) ?? fail(' is not CSV: a quote is not closed, or text follows one that is.')
  const names = header?.cells.map(foldName) ?? []
  const position = (name: ColumnName) => names.indexOf(name)
  if (position('region') < 0 || (position('location_id') < 0 && position('location_name') < 0))
    fail(
      ': the first line must name the columns location_id or location_name (or ' +
        `both) and region; it has ${names.length === 0 ? 'none' : names.join(', ')}.`,
    )
  const twice = columnNames.find((name) => names.indexOf(name) !== names.lastIndexOf(name))
  if (twice !== undefined) fail(`: the first line names the column ${twice} twice. Leave one of them out.`)
  const readLine = createLineReader(names, fail)
  return withoutSharedNames(lines.map(readLine))
}

/** Reads one line after another as a region. `fail`: throws, with the file's name before the problem. */
const createLineReader = (names: ReadonlyArray<string>, fail: (problem: string) => never) => {
  const [idLines, nameLines] = [new Map<string, number>(), new Map<string, number>()]
  return ({ number, cells }: Line): Region => {
    const cell = (name: ColumnName) => cells[names.indexOf(name)] || null
    const [location_id, location_name, region] = [cell('location_id'), cell('location_name'), cell('region')]
    const where = `, line ${number}: `
    if (cells.length > names.length)
      fail(
        `${where}there are ${cells.length} cells and ${names.length} columns. Put a cell with a separator in quotes.`,
      )
    if (location_id === null && location_name === null) fail(`${where}neither location_id nor location_name is given.`)
    if (location_id !== null && !/^-?\d{1,19}$/.test(location_id))
      fail(`${where}location_id must be an integer, not ${location_id}.`)
    const [found, key] =
      location_id === null ? [nameLines, foldName(location_name ?? '')] : [idLines, String(BigInt(location_id))]
    const earlier = found.get(key)
    if (earlier !== undefined)
      fail(
        `${where}the location ${location_id ?? location_name} stands ` +
          `in line ${earlier} too. Give each location one region.`,
      )
    found.set(key, number)
    return {
      location_id: location_id === null ? null : String(BigInt(location_id)),
      location_name,
      region: region ?? fail(`${where}region is empty.`),
    }
  }
}

/** Leaves out names that several ids have. */
const withoutSharedNames = (regions: ReadonlyArray<Region>): ReadonlyArray<Region> => {
  const counts = new Map<string, number>()
  for (const { location_name } of regions)
    if (location_name !== null) counts.set(foldName(location_name), (counts.get(foldName(location_name)) ?? 0) + 1)
  return regions.map((region) =>
    region.location_id !== null &&
    region.location_name !== null &&
    (counts.get(foldName(region.location_name)) ?? 0) > 1
      ? { ...region, location_name: null }
      : region,
  )
}
