import type { Table } from './table'

/** The stream whose rows the deletions and the children refer to. */
export const reviewsStream = 'reviews'
export const deletionsStream = 'deleted_reviews'
const tombstoneColumnNames = ['_ab_cdc_deleted_at', '_sdc_deleted_at']

const hasTypedColumn = ({ columns }: Table, name: string, type: string): boolean =>
  columns.some((column) => column.name === name && column.type === type)

/** How a table names the review and the version of it that a row belongs to; undefined for a table about something else. */
export type ReviewReference = { readonly table: Table; readonly id: string; readonly time: string }

export const findReviewReference = (table: Table): ReviewReference | undefined => {
  if (table.name === reviewsStream || table.name === deletionsStream)
    return hasTypedColumn(table, 'id', 'BIGINT') && hasTypedColumn(table, 'modifiedTime', 'TIMESTAMPTZ')
      ? { table, id: 'id', time: 'modifiedTime' }
      : undefined
  return hasTypedColumn(table, 'reviewId', 'BIGINT') && hasTypedColumn(table, 'reviewModifiedTime', 'TIMESTAMPTZ')
    ? { table, id: 'reviewId', time: 'reviewModifiedTime' }
    : undefined
}

/** The column that is set in a tombstone only. */
export const findTombstoneColumn = ({ columns }: Pick<Table, 'columns'>): string | undefined =>
  columns.map(({ name }) => name).find((name) => tombstoneColumnNames.includes(name))
