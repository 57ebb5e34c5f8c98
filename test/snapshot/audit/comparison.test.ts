import { describe, expect, it } from 'vitest'
import { type IdType, toAuditedTable } from '../../../connector/snapshot/audit/audited-table'
import { deleteStatement } from '../../../connector/snapshot/audit/comparison'

const table = (keepsVersions: boolean, idType: IdType) =>
  toAuditedTable('reviews', 'airbyte', { dialect: 'duckdb', name: 't', hasTombstones: false, keepsVersions, idType })

const differences = [
  { id: '7', difference: 'missing', isBehind: false },
  { id: '8', difference: 'stale', isBehind: true },
  { id: '9', difference: 'newer', isBehind: false },
  { id: '', difference: 'extra', isBehind: false },
]

describe('deleteStatement', () => {
  it('deletes what is wrong, and rows without an id', () => {
    expect(deleteStatement(table(false, 'number'), differences)).toBe(
      'DELETE FROM t WHERE "id" IN (8, 9);\nDELETE FROM t WHERE "id" IS NULL;\n',
    )
  })

  it('keeps the older versions of a table that has every version', () => {
    expect(deleteStatement(table(true, 'number'), differences.slice(0, 3))).toBe('DELETE FROM t WHERE "id" IN (9);\n')
  })

  it('finds ids in texts as the audit does, also those that are no number', () => {
    const extra = [{ id: '007 b', difference: 'extra', isBehind: false }, ...differences.slice(3)]
    expect(deleteStatement(table(false, 'text'), extra)).toBe(
      `DELETE FROM t WHERE TRIM("id") IN ('007 b');\nDELETE FROM t WHERE "id" IS NULL OR TRIM("id") = '';\n`,
    )
  })

  it('says that there is nothing to delete', () => {
    expect(deleteStatement(table(false, 'number'), differences.slice(0, 1))).toBe('-- There is nothing to delete.\n')
  })
})
