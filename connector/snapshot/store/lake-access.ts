/** One of several processes that share a backfill, counted from 0. */
export type LakeShare = { readonly index: number; readonly count: number }

/** Whether a place is a lake; any other is the path of a file. */
export const isLakePath = (path: string): boolean => path.startsWith('ducklake:')

/** Whom the versions of a lake that this program makes name as their author. */
export const lakeAuthor = 'feedback-connector'

/** The names that DuckLake gives to the files of a table. */
export const dataFilePattern = /^ducklake-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:-delete)?\.parquet$/
