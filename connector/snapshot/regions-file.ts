import { decodeCsv, type NamedLine, readCsvFile } from './csv'
import type { Region } from './store/models'

const columnNames = ['location_id', 'location_name', 'region'] as const

export const foldName = (name: string): string => name.trim().toLowerCase()

/**
 * Reads a file of regions: CSV with a header, separated by commas, semicolons or tabs. Rejects with a `CommandError`
 * that names the line. A name with several ids is left out, since it would be ambiguous.
 */
export const readRegions = async (path: string): Promise<ReadonlyArray<Region>> =>
  decodeRegions(path, await readCsvFile(path))

export const decodeRegions = (path: string, text: string): ReadonlyArray<Region> => {
  const { names, lines, fail } = decodeCsv(path, text, columnNames)
  if (!names.includes('region') || !(names.includes('location_id') || names.includes('location_name')))
    fail(
      ': the first line must name the columns location_id or location_name (or ' +
        `both) and region; it has ${names.length === 0 ? 'none' : names.join(', ')}.`,
    )
  const readLine = createLineReader(fail)
  return withoutSharedNames(lines.map(readLine))
}

/** Converts one line after another to a region. `fail`: throws, with the file's name before the problem. */
const createLineReader = (fail: (problem: string) => never) => {
  const [idLines, nameLines] = [new Map<string, number>(), new Map<string, number>()]
  return ({ number, cell }: NamedLine<(typeof columnNames)[number]>): Region => {
    const [location_id, location_name, region] = [cell('location_id'), cell('location_name'), cell('region')]
    const where = `, line ${number}: `
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

/** Leaves out names that have several ids. */
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
