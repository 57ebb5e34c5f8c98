import { type Database, literal } from '../snapshot/database'
import { brands, firstNames, kinds, lastNames, regions, sources, towns } from './names'

export type Extent = { readonly locations: number; readonly providers: number }

type Field = string | number | boolean

const rows = (table: string, values: ReadonlyArray<ReadonlyArray<Field | null>>): string =>
  values.length === 0
    ? ''
    : `INSERT INTO ${table} VALUES ${values
        .map(
          (row) => `(${row.map((field) => (typeof field === 'string' ? literal(field) : String(field))).join(', ')})`,
        )
        .join(', ')};`

const at = <A>(list: ReadonlyArray<A>, index: number): A => {
  const item = list[index % list.length]
  if (item === undefined) throw new Error('nothing to choose from')
  return item
}

const numbers = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, index) => index)

const location = (n: number): ReadonlyArray<Field | null> => {
  const [kind, avatarType] = at(kinds, n + Math.floor(n / towns.length))
  const round = Math.floor(n / (towns.length * kinds.length))
  const name = `${at(towns, n)} ${kind}${round === 0 ? '' : ` ${round + 1}`}`
  return [
    1001 + n,
    `LOC-${1001 + n}`,
    'INTERNAL',
    name,
    true,
    80_001 + n,
    avatarType,
    10 + (n % regions.length),
    60 + (n % brands.length),
    null,
  ]
}

const provider = (n: number): ReadonlyArray<Field> => [
  500_001 + n,
  `${at(firstNames, n)} ${at(lastNames, n * 7 + Math.floor(n / firstNames.length))}, ${n % 5 === 0 ? 'NP' : 'MD'}`,
  String(1_234_567_893 + n * 101),
]

/** What does not depend on the extent. */
export const seedFixed = (database: Database): Promise<void> =>
  database.run(
    [
      rows('source', sources),
      rows(
        'region',
        regions.map((name, n) => [10 + n, name]),
      ),
      rows(
        'brand',
        brands.map((name, n) => [60 + n, name]),
      ),
    ].join('\n'),
  )

/** The locations and providers that reviews are about: always the same for the same extent. */
export const seedDimensions = async (database: Database, extent: Extent): Promise<void> => {
  await seedFixed(database)
  await database.run(rows('location', numbers(extent.locations).map(location)))
  await database.run(rows('provider', numbers(extent.providers).map(provider)))
}
