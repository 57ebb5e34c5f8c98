import { type Database, literal } from '../snapshot/database'
import { brands, firstNames, kinds, lastNames, regions, sources, towns } from './names'
import { answers, liabilities, phrases } from './phrases'

export type Extent = { readonly locations: number; readonly providers: number }

/** How many people close tasks. */
export const owners = 40

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

/** The inside of a sentiment that does not depend on the review: all but its ids. */
const sentiment = ({ feature, opinion, score, category, subCategory, tonality }: (typeof phrases)[number]): string =>
  JSON.stringify({ feature, opinion, score, category, subCategory, tonality }).slice(1, -1)

const severities = ['low', 'medium', 'high'] as const

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

/** Everything a review refers to: always the same for the same extent. */
export const seedDimensions = (database: Database, extent: Extent): Promise<void> =>
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
      rows('location', numbers(extent.locations).map(location)),
      rows('provider', numbers(extent.providers).map(provider)),
      rows(
        'phrase',
        phrases.map((phrase, n) => [
          n,
          phrase.sentence,
          phrase.score,
          phrase.tonality,
          phrase.category,
          phrase.subCategory,
          sentiment(phrase),
        ]),
      ),
      rows(
        'liability',
        liabilities.map(([categoryName, justification, level], n) => [
          n,
          JSON.stringify({ severity: { level, name: severities[level - 1] }, categoryName, justification }).slice(
            1,
            -1,
          ),
        ]),
      ),
      rows(
        'owner',
        numbers(owners).map((n) => {
          const [first, last] = [at(firstNames, n * 5), at(lastNames, n * 3)]
          return [n, `${first} ${last}`, `owner.${n}@example.org`]
        }),
      ),
      rows(
        'answer',
        answers.map(([engagement, closure], n) => [n, engagement, closure]),
      ),
    ].join('\n'),
  )
