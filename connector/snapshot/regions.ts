import { isUtf8 } from 'node:buffer'
import { readFile } from 'node:fs/promises'
import { CommandError, configFailure } from '../cdk'
import { type Database, quoteIdentifier } from './store/database'
import type { Region } from './store/models'
import { type FileModels, findModels } from './store/views'

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

const foldName = (name: string): string => name.trim().toLowerCase()

/**
 * Reads a file of regions: CSV with a header, separated by commas, semicolons or tabs. Rejects with `CommandError` that
 * names the line. A name that several ids have is left out, since it would not tell them apart.
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
  const linesById = new Map<string, number>()
  const linesByName = new Map<string, number>()
  const regions = lines.map(({ number, cells }): Region => {
    const cell = (name: ColumnName) => cells[position(name)] || null
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
      location_id === null ? [linesByName, foldName(location_name ?? '')] : [linesById, String(BigInt(location_id))]
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
  })
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

/** The locations of a file of regions that no review has, by id or else by name. */
export const findUnknownRegions = async (
  db: Database,
  regions: ReadonlyArray<Region>,
  view = 'reviews_current',
): Promise<ReadonlyArray<string>> => {
  const rows = await db.query(
    `SELECT DISTINCT location_id::VARCHAR AS id, lower(trim(location_name)) AS name FROM ${quoteIdentifier(view)}`,
  )
  const [ids, names] = [new Set(rows.map(({ id }) => id)), new Set(rows.map(({ name }) => name))]
  return regions
    .filter(
      ({ location_id, location_name }) =>
        !(location_id !== null && ids.has(location_id)) &&
        !(location_name !== null && names.has(foldName(location_name))),
    )
    .map(({ location_id, location_name }) =>
      location_id === null ? `the location "${location_name}"` : `the location ${location_id}`,
    )
}

/** At most so many unknown locations are named one by one. */
const maxNamed = 10

/** A sentence for each location that no review has; the last one counts the rest. */
export const explainUnknownRegions = (unknown: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...unknown.slice(0, maxNamed).map((name) => `The regions file names ${name}, which no review has.`),
  ...(unknown.length > maxNamed ? [`It names ${unknown.length - maxNamed} more locations that no review has.`] : []),
]

/** Makes sure that the models and views which a query names exist, as this version defines them. */
export const createNamedViews = async (
  db: Database,
  sql: string,
  regions: ReadonlyArray<Region> | undefined,
  onWarning: (message: string) => void,
): Promise<void> => provideModels(db, await findModels(db), sql, regions, onWarning)

/**
 * `onWarning`: called with a message where a table of the user has the name of a model, and for each location of `regions` that no
 * review has.
 */
export const provideModels = async (
  db: Database,
  { renamed, provide }: FileModels,
  sql: string,
  regions: ReadonlyArray<Region> | undefined,
  onWarning: (message: string) => void,
): Promise<void> => {
  const words = new Set(sql.toLowerCase().match(/\w+/g))
  for (const [model, name] of renamed)
    if (words.has(model)) onWarning(`${model} is a table or view of the file's own; the model of that name is ${name}.`)
  if (!(await provide(words, regions)) || regions === undefined) return
  for (const warning of explainUnknownRegions(
    await findUnknownRegions(db, regions, renamed.get('reviews_current') ?? 'reviews_current'),
  ))
    onWarning(warning)
}
