import { toMillis } from '../api/model/scalar'
import type { VisitRecord, VisitRecordResult } from '../api/model/visit-record'
import type { Database } from '../snapshot/database'

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
