import type { Database, RowValues } from '../snapshot/database'

/** The three identifier families of the transparency operations. */
export type RequestedIds = {
  readonly personId?: ReadonlyArray<string>
  readonly locationId?: ReadonlyArray<string>
  readonly entityId?: ReadonlyArray<string>
}

/** An entity that somebody asked for; `reviews` is the condition that picks its reviews. */
export type RequestedEntity = {
  /** As it was asked for. */
  readonly id: string
  /** Of the service's own. */
  readonly serviceId: number
  readonly name: string
  readonly isPerson: boolean
  readonly reviewCondition: string
}

/** How each family is looked up: a person by id or npi, a location by id or code, a roll-up by id. */
const idFamilies = {
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

const familyNames = ['personId', 'locationId', 'entityId'] as const

export const countIds = (asked: RequestedIds): number =>
  familyNames.reduce((sum, name) => sum + (asked[name]?.length ?? 0), 0)

/** The entities that exist among those asked for, in that order; each id answers as it was asked for. */
export const findEntities = async (
  database: Database,
  asked: RequestedIds,
): Promise<ReadonlyArray<RequestedEntity>> => {
  const found: Array<RequestedEntity> = []
  for (const name of familyNames)
    for (const id of asked[name] ?? []) {
      const { table, keys, reviews } = idFamilies[name]
      const [row]: ReadonlyArray<RowValues | undefined> = await database.query(
        `SELECT id::VARCHAR AS id, name FROM ${table} WHERE ${keys}`,
        { id },
      )
      if (row !== undefined)
        found.push({
          id,
          serviceId: Number(row.id),
          name: String(row.name),
          isPerson: name === 'personId',
          reviewCondition: reviews(String(row.id)),
        })
    }
  return found
}
