import type { Snapshot } from '../../connector/snapshot/store/database'
import type { ModelOptions } from '../../connector/snapshot/store/models'
import { createModelViews } from '../../connector/snapshot/store/views'
import type { ModelRow, ModelRows } from './oracle'
import { openSnapshotFile } from './snapshot-messages'

/** A value in the form of the oracle: times in ISO 8601, integers beyond 2^53 as text. */
const toCell = (value: unknown): ModelRow[string] =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?\+00$/.test(value)
    ? new Date(`${value.replace(' ', 'T').slice(0, -3)}Z`).toISOString()
    : (value as ModelRow[string])

/** The rows of models as the views of an open snapshot show them. */
export const readViewRows = async (
  { db }: Snapshot,
  options: ModelOptions,
  names: ReadonlyArray<string>,
): Promise<ModelRows> => {
  await db.run("SET TimeZone = 'UTC'")
  await createModelViews(db, options)
  const rows: Record<string, ReadonlyArray<ModelRow>> = {}
  for (const name of names)
    rows[name] = (await db.query(`SELECT to_json(model)::VARCHAR AS row FROM ${name} AS model`)).map(({ row }) =>
      Object.fromEntries(
        Object.entries(JSON.parse(String(row).replace(/([:,[])(\d{16,})(?=[,}\]])/g, '$1"$2"')) as object).map(
          ([column, value]) => [column, toCell(value)],
        ),
      ),
    )
  return rows
}

/** The rows of models as the views of a snapshot's file show them. */
export const readModelRows = async (
  path: string,
  options: ModelOptions,
  names: ReadonlyArray<string>,
): Promise<ModelRows> => {
  const snapshot = await openSnapshotFile(path, 'read')
  try {
    return await readViewRows(snapshot, options, names)
  } finally {
    snapshot.db.close()
  }
}

/** Sorts rows, and each row's columns by name. */
export const toComparable = (
  rows: ReadonlyArray<ModelRow> = [],
  without: ReadonlyArray<string> = [],
): ReadonlyArray<string> =>
  rows
    .map((row) =>
      JSON.stringify(
        Object.entries(row)
          .filter(([name]) => !without.includes(name))
          .sort(([a], [b]) => (a < b ? -1 : 1)),
      ),
    )
    .sort()
