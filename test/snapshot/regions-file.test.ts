import { describe, expect, it } from 'vitest'
import { decodeRegions, readRegions } from '../../connector/snapshot/regions-file'
import { writeTempFile } from '../support/files'

const decode = (text: string) => decodeRegions('regions.csv', text)
const row = (location_id: string | null, location_name: string | null, region: string) => ({
  location_id,
  location_name,
  region,
})

describe('a file of regions', () => {
  it.each<[string, string, ReadonlyArray<ReturnType<typeof row>>]>([
    ['ids', 'location_id,region\n1,North\n2,South\n', [row('1', null, 'North'), row('2', null, 'South')]],
    [
      'names, quoted',
      'location_name,region\n"A, B",North\n"Say ""A""",South',
      [row(null, 'A, B', 'North'), row(null, 'Say "A"', 'South')],
    ],
    [
      'a byte order mark, semicolons and other line ends',
      '\ufeffRegion;Location_ID\r\nNorth;07\r\n\r\nSouth;8',
      [row('7', null, 'North'), row('8', null, 'South')],
    ],
    [
      'tabs, a further column and a line feed in quotes',
      'region\tnote\tlocation_name\nNorth\t"a\nb"\tX\n',
      [row(null, 'X', 'North')],
    ],
    [
      'a name that several ids have',
      'location_id,location_name,region\n1,Main,North\n2,main ,South\n3,Own,South',
      [row('1', null, 'North'), row('2', null, 'South'), row('3', 'Own', 'South')],
    ],
    ['no locations', 'location_id,region\n', []],
    ['large ids', 'location_id,region\n9007199254741743,North', [row('9007199254741743', null, 'North')]],
  ])('may have %s', (_case, text, regions) => expect(decode(text)).toEqual(regions))

  it.each([
    [
      '',
      'regions.csv: the first line must name the columns location_id ' +
        'or location_name (or both) and region; it has none.',
    ],
    ['id,region\n1,North', 'it has id, region.'],
    ['location_id,area\n1,North', 'it has location_id, area.'],
    [
      'location_id,region\n1,North\n2,South\n01,West',
      'line 4: the location 01 stands in line 2 too. Give each location one region.',
    ],
    ['location_name,region\nMain,North\n MAIN ,South', 'line 3: the location MAIN stands in line 2 too.'],
    ['location_id,region\n1,', 'line 2: region is empty.'],
    ['location_id,location_name,region\n,,North', 'line 2: neither location_id nor location_name is given.'],
    ['location_id,region\nabc,North', 'line 2: location_id must be an integer, not abc.'],
    ['location_id,region\n1,North,East', 'line 2: there are 3 cells and 2 columns.'],
    ['location_id,region\n1,"North', 'is not CSV: a quote is not closed, or text follows one that is.'],
    ['location_id,region\n1,"No"rth', 'is not CSV: a quote is not closed, or text follows one that is.'],
    ['location_id,Region,region\n1,A,B', 'regions.csv: the first line names the column region twice.'],
  ])('%j is refused', (text, message) => expect(() => decode(text)).toThrow(message))

  it.each([
    ['Latin 1', Buffer.from('location_id,region\n1,Süd\n', 'latin1')],
    ['UTF-16', Buffer.from('\ufefflocation_id,region\n1,Süd\n', 'utf16le')],
  ])('in %s is refused, since its names would be unreadable', async (_name, bytes) => {
    await expect(readRegions(writeTempFile(bytes))).rejects.toThrow('is not UTF-8')
  })

  it('in UTF-8 is read', async () => {
    expect(await readRegions(writeTempFile(Buffer.from('location_id,region\n1,Süd\n')))).toEqual([
      row('1', null, 'Süd'),
    ])
  })
})
