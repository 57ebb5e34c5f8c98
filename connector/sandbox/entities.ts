import type { Cells, Database } from '../snapshot/database'

/** The three identifier families of the transparency operations. */
export type Asked = {
  readonly personId?: ReadonlyArray<string>
  readonly locationId?: ReadonlyArray<string>
  readonly entityId?: ReadonlyArray<string>
}

/** An entity that somebody asked for; `reviews` is the condition that picks its reviews. */
export type Found = {
  /** As it was asked for. */
  readonly id: string
  /** Of the service's own. */
  readonly number: number
  readonly name: string
  readonly person: boolean
  readonly reviews: string
}

/** How each family is looked up: a person by id or npi, a location by id or code, a roll-up by id. */
const families = {
  personId: {
    table: 'provider',
    keys: `id::VARCHAR = $id OR npi = $id`,
    reviews: (id: string) => `provider_id = ${id}`,
  },
  locationId: {
    table: 'location',
    keys: 'active AND (id::VARCHAR = $id OR code = $id)',
    reviews: (id: string) => `location_id = ${id}`,
  },
  entityId: {
    table: 'region',
    keys: 'id::VARCHAR = $id',
    reviews: (id: string) => `location_id IN (SELECT id FROM location WHERE active AND region_id = ${id})`,
  },
} as const

const names = ['personId', 'locationId', 'entityId'] as const

export const countOf = (asked: Asked): number => names.reduce((sum, name) => sum + (asked[name]?.length ?? 0), 0)

/** The entities that exist among those asked for, in that order; each id answers as it was asked for. */
export const findEntities = async (database: Database, asked: Asked): Promise<ReadonlyArray<Found>> => {
  const found: Array<Found> = []
  for (const name of names)
    for (const id of asked[name] ?? []) {
      const { table, keys, reviews } = families[name]
      const [row]: ReadonlyArray<Cells | undefined> = await database.query(
        `SELECT id::VARCHAR AS id, name FROM ${table} WHERE ${keys}`,
        { id },
      )
      if (row !== undefined)
        found.push({
          id,
          number: Number(row.id),
          name: String(row.name),
          person: name === 'personId',
          reviews: reviews(String(row.id)),
        })
    }
  return found
}
