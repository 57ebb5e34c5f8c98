/** The place is a lake; any other is the path of a file. */
export const isLakePath = (path: string): boolean => path.startsWith('ducklake:')

/** The names that DuckLake gives to the files of a table. */
export const dataFilePattern = /^ducklake-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:-delete)?\.parquet$/
