import type { InputRecord } from '../cdk/sink'

const tombstoneColumns = ['_ab_cdc_deleted_at', '_sdc_deleted_at']

/** Whether a record says that its row was deleted (Airbyte's change data capture; Singer's soft deletes). */
export const isTombstoneRecord = (columns: InputRecord): boolean =>
  tombstoneColumns.some((mark) => columns[mark] !== undefined && columns[mark] !== null && columns[mark] !== '')
