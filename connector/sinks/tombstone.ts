import type { Columns } from '../cdk/sink'

const marks = ['_ab_cdc_deleted_at', '_sdc_deleted_at']

/** Whether a record says that its row was deleted (Airbyte's change data capture; Singer's soft deletes). */
export const isTombstone = (columns: Columns): boolean =>
  marks.some((mark) => columns[mark] !== undefined && columns[mark] !== null && columns[mark] !== '')
