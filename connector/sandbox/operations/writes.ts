import {
  type Location,
  type LocationSyncResult,
  toInstant,
  toMillis,
  type VisitRecord,
  type VisitRecordResult,
} from '../../api'
import { printExactJson } from '../../cdk'
import type { Database } from '../../snapshot/store'
import { patchOriginal } from '../data/review-text'

const hasText = (text: string | null | undefined): boolean => typeof text === 'string' && text.trim() !== ''

/** Whether a record has the required attributes and the code of a location in `codes`. The specification names no other errors. */
const isValidVisit =
  (codes: ReadonlySet<string>) =>
  (record: VisitRecord): boolean =>
    (hasText(record.name) || (hasText(record.firstName) && hasText(record.lastName))) &&
    hasText(record.email) &&
    /^[^\s@]+@[^\s@]+$/.test(record.email ?? '') &&
    codes.has(record.locationCode ?? '') &&
    hasText(record.npi) &&
    (record.visitTime === undefined || record.visitTime === null || !Number.isNaN(toMillis(record.visitTime)))

/** Operation 4. A record whose visitRecordId exists already is reported as Success and changes nothing. */
export const saveVisitRecords = async (
  database: Database,
  now: number,
  nonce: number,
  records: ReadonlyArray<VisitRecord>,
): Promise<VisitRecordResult> => {
  const codes = new Set(
    (await database.query('SELECT code FROM location WHERE active')).map(({ code }) => String(code)),
  )
  const results = records.map((record, index) => ({
    id: hasText(record.visitRecordId) ? String(record.visitRecordId) : `generated-${nonce}-${index}`,
    record,
    accepted: isValidVisit(codes)(record),
  }))
  const rows = results
    .filter(({ accepted }) => accepted)
    .map(({ id, record }) => ({ id, code: record.locationCode, npi: record.npi, record: JSON.stringify(record) }))
  if (rows.length > 0)
    await database.run(
      `INSERT INTO visit SELECT row.id, epoch_ms(${now}), row.code, row.npi, row.record, false
       FROM (SELECT unnest(from_json($rows, '[{"id":"VARCHAR","code":"VARCHAR","npi":"VARCHAR","record":"VARCHAR"}]')) AS row)
       QUALIFY row_number() OVER (PARTITION BY row.id) = 1
       ON CONFLICT DO NOTHING`,
      { rows: JSON.stringify(rows) },
    )
  const failures = results.filter(({ accepted }) => !accepted).length
  return {
    status: { code: 200, message: failures === 0 ? 'Success' : `${failures} of ${records.length} records failed` },
    records: Object.fromEntries(results.map(({ id, accepted }) => [id, accepted ? 'Success' : 'Error'])),
  }
}

/** Locations whose code begins with this cannot be synced, so that a test can cause a partial success. */
export const unsyncablePrefix = 'NOSYNC'

const isSyncable = ({ code, active }: Location): boolean =>
  typeof code === 'string' && code.trim() !== '' && !code.startsWith(unsyncablePrefix) && typeof active === 'boolean'

/** The last item of each code, since one statement may change a row only once. */
const lastByCode = (items: ReadonlyArray<Location>): ReadonlyArray<Location> => [
  ...new Map(items.map((item) => [item.code, item])).values(),
]

const locationRows = `SELECT row.* FROM (SELECT unnest(from_json($rows,
  '[{"code":"VARCHAR","codeType":"VARCHAR","name":"VARCHAR","active":"BOOLEAN","details":"VARCHAR"}]')) AS row)`

/** Operation 5: creates, updates and deactivates locations. A new name of a location modifies its reviews at `now`. */
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
      details: printExactJson({ ...details, modifiedTime: toInstant(now) }),
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
  const rejected = items.filter((item) => !isSyncable(item))
  return {
    status: rejected.length === 0 ? 'SUCCESS' : 'PARTIAL_SUCCESS',
    message: rejected.length === 0 ? 'All locations were accepted' : 'Some locations could not be processed',
    nonSyncableList: rejected,
    totalRequests: items.length,
    successfulRequests: accepted.length,
    failedRequests: rejected.length,
  }
}
