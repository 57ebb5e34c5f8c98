import { quoteIdentifier } from '../store/database'
import { forgottenRowsSql, forgottenTableName, toPersonRows } from '../store/forgotten'
import { historyTableName } from '../store/tables'
import { type Check, failureTextSql } from './check'
import type { SnapshotStream } from './checked-file'

/** Checks that what was erased on request has not come back. */
export const erasedCheck: Check = {
  name: 'what was forgotten is gone',
  explain:
    'No row, and no older version of one, is of someone whom feedback forget has ' +
    'erased. If one is, it was written by hand: run feedback forget again with the id.',
  needs: 'erased',
  queries: ({ streams }) => streams.flatMap(erasedRowsSql),
  subjects: () => [forgottenTableName],
}

const erasedRowsSql = ({ name, columns, history, versions }: SnapshotStream): ReadonlyArray<string> => {
  const where = forgottenRowsSql(toPersonRows(name, columns))
  if (where === undefined) return []
  return [versions ?? name, ...(history ? [historyTableName(name)] : [])].map(
    (table) => `
      SELECT ${failureTextSql(table, `count(*) || ' rows'`)}
      FROM ${quoteIdentifier(table)} AS t WHERE ${where} HAVING count(*) > 0`,
  )
}
