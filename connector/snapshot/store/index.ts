/** The room snapshot/store. */
export { type CellValue, type Database, openDatabase, quoteIdentifier, quoteLiteral, type RowValues } from './database'
