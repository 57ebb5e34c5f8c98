import { quoteIdentifier, quoteLiteral } from '../store/database'
import { countRowsSql, cursorSql, type LoadStatus } from '../store/metadata'
import type { Column, ColumnType } from '../store/tables'

// What commits change of the rows of `_loads`.

/** A killed run leaves its loads with status `running`. The next run marks them incomplete. */
export const closeAbandonedLoadsSql = `UPDATE _loads SET status = 'incomplete' WHERE status = 'running'`

/** SQL for the lowest and highest cursor in a table `t` of records, as text; `type`: the type for comparing them. */
export type CursorRange = {
  readonly table: string
  readonly least: string
  readonly greatest: string
  readonly type: ColumnType
}

export const toCursorRange = (column: Column, table: string): CursorRange => {
  const endSql = (aggregate: 'min' | 'max') => cursorSql(column, `${aggregate}(t.${quoteIdentifier(column.name)})`)
  return { table, least: endSql('min'), greatest: endSql('max'), type: column.type }
}

/** What a commit changes in a load's row in `_loads`; `range`: the cursors in its batch. */
type LoadUpdate = {
  readonly id: number | bigint
  readonly stream: string
  readonly status: LoadStatus
  readonly records: number
  readonly sourceRecords: number | undefined
  readonly range: CursorRange | undefined
}

/** Updates the loads' rows in `_loads`, in one statement for all loads with the same cursor type. */
export const updateLoadsSql = (loads: ReadonlyArray<LoadUpdate>, now: number): string =>
  [...new Set(loads.map(({ range }) => range?.type))]
    .map((type) =>
      updateLoadsOfTypeSql(
        loads.filter(({ range }) => range?.type === type),
        type,
        now,
      ),
    )
    .join(';\n')

const updateLoadsOfTypeSql = (loads: ReadonlyArray<LoadUpdate>, type: ColumnType | undefined, now: number): string => {
  const millis = `${Math.trunc(now)}::BIGINT`
  const widenSql = (saved: string, operator: '<' | '>', value: string) => `,
      ${saved} = CASE
        WHEN ${saved} IS NULL OR ${value}::${type} ${operator} ${saved}::${type} THEN ${value} ELSE ${saved} END`
  const cursors =
    type === undefined ? '' : widenSql('cursor_from', '<', 'given.least') + widenSql('cursor_to', '>', 'given.greatest')
  return `
    UPDATE _loads SET
      records = given.records, source_records = given.source_records, status = given.status, rows = given.rows,
      ended = CASE WHEN given.status <> 'running' THEN make_timestamptz(${millis} * 1000) END,
      seconds = CASE WHEN given.status <> 'running' THEN ${millis} / 1000 - epoch(started) END${cursors}
    FROM (${loads.map(givenLoadSql).join(' UNION ALL ')}) AS given
    WHERE _loads.load = given.load`
}

const givenLoadSql = ({ id, stream, status, records, sourceRecords, range }: LoadUpdate): string => `
      SELECT ${id} AS load, ${records} AS records, ${sourceRecords ?? 'NULL'}::BIGINT AS source_records,
        ${quoteLiteral(status)} AS status, ${countRowsSql(stream)} AS rows${range === undefined ? '' : rangeSql(range)}`

const rangeSql = ({ table, least, greatest }: CursorRange): string => `,
        ${least} AS least, ${greatest} AS greatest
      FROM ${table} AS t`
