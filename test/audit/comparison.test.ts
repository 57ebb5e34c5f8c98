import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { type IdType, toAuditedTable } from '../../connector/audit/audited-table'
import { deleteStatement, type ServiceVersions, useExpected } from '../../connector/audit/comparison'
import { feedOf } from '../../connector/cdk'
import { newTempPath } from '../support/files'

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

  it('finds ids in texts like the audit, including ids that are not numbers', () => {
    const extra = [{ id: '007 b', difference: 'extra', isBehind: false }, ...differences.slice(3)]
    expect(deleteStatement(table(false, 'text'), extra)).toBe(
      `DELETE FROM t WHERE TRIM("id") IN ('007 b');\nDELETE FROM t WHERE "id" IS NULL OR TRIM("id") = '';\n`,
    )
  })

  it('says that there is nothing to delete', () => {
    expect(deleteStatement(table(false, 'number'), differences.slice(0, 1))).toBe('-- There is nothing to delete.\n')
  })
})

describe('useExpected', () => {
  it('leaves out a review that is restored after the changes were read, and before the deletions are', async () => {
    const startDate = Date.UTC(2024, 0, 1)
    let isRestored = false
    const service: ServiceVersions = {
      stream: 'reviews',
      startDate,
      versions: feedOf(E.right({ rows: [{ id: '1', modifiedTime: startDate + 1, rows: 1 }], cutoff: startDate + 10 })),
      changedSince: () => feedOf(E.right(isRestored ? [{ id: '2' }] : [])),
      deletedSince: () => {
        isRestored = true
        return feedOf()
      },
    }
    const where = { bucketCount: 8, spillPath: newTempPath('spill') }
    const readChangedIds = () =>
      useExpected(service, { cutoff: undefined }, where, async ({ scope }) => scope.changedIds)
    expect(await readChangedIds()).toEqual(['2'])
  })
})
