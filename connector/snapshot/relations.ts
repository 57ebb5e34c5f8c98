import type { Table } from './table'

/** The stream whose rows the deletions and the children refer to. */
export const parent = 'reviews'
export const deletions = 'deleted_reviews'
const tombstones = ['_ab_cdc_deleted_at', '_sdc_deleted_at']

const has = ({ columns }: Table, name: string, type: string): boolean =>
  columns.some((column) => column.name === name && column.type === type)

/** How a table names the review and the version of it that a row belongs to; undefined for a table about something else. */
export type Versioned = { readonly table: Table; readonly id: string; readonly time: string }

export const versioned = (table: Table): Versioned | undefined => {
  if (table.name === parent || table.name === deletions)
    return has(table, 'id', 'BIGINT') && has(table, 'modifiedTime', 'TIMESTAMPTZ')
      ? { table, id: 'id', time: 'modifiedTime' }
      : undefined
  return has(table, 'reviewId', 'BIGINT') && has(table, 'reviewModifiedTime', 'TIMESTAMPTZ')
    ? { table, id: 'reviewId', time: 'reviewModifiedTime' }
    : undefined
}

/** The column that is set in a tombstone only. */
export const tombstoneColumn = ({ columns }: Pick<Table, 'columns'>): string | undefined =>
  columns.map(({ name }) => name).find((name) => tombstones.includes(name))
