import { type Database, quoteLiteral } from '../snapshot/database'
import { brandNames, firstNames, lastNames, locationKinds, regionNames, reviewSources, townNames } from './names'

export type DimensionCounts = { readonly locations: number; readonly providers: number }

type DimensionValue = string | number | boolean

const insertRows = (table: string, values: ReadonlyArray<ReadonlyArray<DimensionValue | null>>): string =>
  values.length === 0
    ? ''
    : `INSERT INTO ${table} VALUES ${values
        .map(
          (row) =>
            `(${row.map((field) => (typeof field === 'string' ? quoteLiteral(field) : String(field))).join(', ')})`,
        )
        .join(', ')};`

const itemAt = <A>(list: ReadonlyArray<A>, index: number): A => {
  const item = list[index % list.length]
  if (item === undefined) throw new Error('nothing to choose from')
  return item
}

const indexRange = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, index) => index)

const locationValues = (n: number): ReadonlyArray<DimensionValue | null> => {
  const [kind, avatarType] = itemAt(locationKinds, n + Math.floor(n / townNames.length))
  const round = Math.floor(n / (townNames.length * locationKinds.length))
  const name = `${itemAt(townNames, n)} ${kind}${round === 0 ? '' : ` ${round + 1}`}`
  return [
    1001 + n,
    `LOC-${1001 + n}`,
    'INTERNAL',
    name,
    true,
    80_001 + n,
    avatarType,
    10 + (n % regionNames.length),
    60 + (n % brandNames.length),
    null,
  ]
}

const providerValues = (n: number): ReadonlyArray<DimensionValue> => [
  500_001 + n,
  `${itemAt(firstNames, n)} ${itemAt(lastNames, n * 7 + Math.floor(n / firstNames.length))}, ${n % 5 === 0 ? 'NP' : 'MD'}`,
  String(1_234_567_893 + n * 101),
]

/** What does not depend on the extent. */
export const seedConstants = (database: Database): Promise<void> =>
  database.run(
    [
      insertRows('source', reviewSources),
      insertRows(
        'region',
        regionNames.map((name, n) => [10 + n, name]),
      ),
      insertRows(
        'brand',
        brandNames.map((name, n) => [60 + n, name]),
      ),
    ].join('\n'),
  )

/** The locations and providers that reviews are about: always the same for the same extent. */
export const seedDimensions = async (database: Database, extent: DimensionCounts): Promise<void> => {
  await seedConstants(database)
  await database.run(insertRows('location', indexRange(extent.locations).map(locationValues)))
  await database.run(insertRows('provider', indexRange(extent.providers).map(providerValues)))
}
