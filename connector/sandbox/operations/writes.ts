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
import { patchOriginal } from '../data/tables'

const hasText = (text: string | null | undefined): boolean => typeof text === 'string' && text.trim() !== ''

/** Whether a record can be taken; `codes`: the locations there are. What makes a record an Error is not shown beyond what is required. */
const isValidVisit =
  (codes: ReadonlySet<string>) =>
  (record: VisitRecord): boolean =>
    (hasText(record.name) || (hasText(record.firstName) && hasText(record.lastName))) &&
    hasText(record.email) &&
    /^[^\s@]+@[^\s@]+$/.test(record.email ?? '') &&
    codes.has(record.locationCode ?? '') &&
    hasText(record.npi) &&
    (record.visitTime === undefined || record.visitTime === null || !Number.isNaN(toMillis(record.visitTime)))

/** Operation 4. A visitRecordId that was taken before is a Success that changes nothing. */
export const saveVisitRecords = async (
  database: Database,
  now: number,
  nonce: number,
  records: ReadonlyArray<VisitRecord>,
): Promise<VisitRecordResult> => {
  const codes = new Set(
    (await database.query('SELECT code FROM location WHERE active')).map(({ code }) => String(code)),
  )
  const judged = records.map((record, index) => ({
    id: hasText(record.visitRecordId) ? String(record.visitRecordId) : `generated-${nonce}-${index}`,
    record,
    accepted: isValidVisit(codes)(record),
  }))
  const rows = judged
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
  const failed = judged.filter(({ accepted }) => !accepted).length
  return {
    status: { code: 200, message: failed === 0 ? 'Success' : `${failed} of ${records.length} records failed` },
    records: Object.fromEntries(judged.map(({ id, accepted }) => [id, accepted ? 'Success' : 'Error'])),
  }
}

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
