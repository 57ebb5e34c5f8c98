import { printExactJson } from '../api/json-text'
import type { Location, LocationSyncResult } from '../api/model/location'
import { toInstant } from '../api/model/scalar'
import type { Database } from '../snapshot/database'
import { patchOriginal } from './patched'

/** Locations whose sync is not enabled, so that a partial success can be had. */
export const unsyncablePrefix = 'NOSYNC'

const isSyncable = ({ code, active }: Location): boolean =>
  typeof code === 'string' && code.trim() !== '' && !code.startsWith(unsyncablePrefix) && typeof active === 'boolean'

/** The last item of each code, since one statement may touch a row only once. */
const lastByCode = (items: ReadonlyArray<Location>): ReadonlyArray<Location> => [
  ...new Map(items.map((item) => [item.code, item])).values(),
]

const locationRows = `SELECT row.* FROM (SELECT unnest(from_json($rows,
  '[{"code":"VARCHAR","codeType":"VARCHAR","name":"VARCHAR","active":"BOOLEAN","details":"VARCHAR"}]')) AS row)`

/** Operation 5: creates, updates and deactivates. Reviews of a location that is renamed are modified now. */
export const saveLocations = async (
  database: Database,
  now: number,
  items: ReadonlyArray<Location>,
): Promise<LocationSyncResult> => {
  const accepted = items.filter(isSyncable)
  const rows = JSON.stringify(
    lastByCode(accepted).map(({ code, codeType, name, active, ...details }) => ({
      code,
      codeType: codeType ?? null,
      name: name ?? null,
      active,
      details: printExactJson(details),
    })),
  )
  await database.transaction(async () => {
    await database.run(
      `UPDATE review SET modified = epoch_ms(${now}), original = ${patchOriginal(
        `'{"modifiedTime":"${toInstant(now)}","location":{"name":' || to_json(renamed.name) || '}}'`,
      )}
       FROM (SELECT l.id, row.name FROM location l JOIN (${locationRows}) row USING (code)
         WHERE row.active AND row.name IS NOT NULL AND row.name IS DISTINCT FROM l.name) renamed
       WHERE review.location_id = renamed.id`,
      { rows },
    )
    await database.run(
      `UPDATE location SET active = row.active, name = coalesce(CASE WHEN row.active THEN row.name END, location.name),
         code_type = coalesce(row."codeType", code_type), details = row.details
       FROM (${locationRows}) row WHERE row.code = location.code`,
      { rows },
    )
    await database.run(
      `INSERT INTO location SELECT last + n, code, "codeType", coalesce(name, code), true, 79000 + last + n, 'Location',
         (SELECT min(id) + (last + n) % count(*) FROM region), (SELECT min(id) FROM brand), details
       FROM (SELECT row.*, row_number() OVER (ORDER BY code) AS n, (SELECT coalesce(max(id), 1000) FROM location) AS last
         FROM (${locationRows}) row WHERE row.active AND row.code NOT IN (SELECT code FROM location))`,
      { rows },
    )
  })
  const refused = items.filter((item) => !isSyncable(item))
  return {
    status: refused.length === 0 ? 'SUCCESS' : 'PARTIAL_SUCCESS',
    message: refused.length === 0 ? 'All locations were accepted' : 'Some locations could not be processed',
    nonSyncableList: refused,
    totalRequests: items.length,
    successfulRequests: accepted.length,
    failedRequests: refused.length,
  }
}
