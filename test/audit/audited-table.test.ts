import { describe, expect, it } from 'vitest'
import { loaderNames, toAuditedTable } from '../../connector/audit/audited-table'
import { bucketStatement } from '../../connector/audit/statement'

const scope = {
  stream: 'review_tasks',
  from: 0,
  cutoff: 1,
  shown: { from: 0, cutoff: 1 },
  changedIds: [],
  bucketCount: 1,
}

describe('toAuditedTable', () => {
  it.each(loaderNames)('names the columns of %s as its tables have them', (loader) => {
    const table = toAuditedTable('review_tasks', loader, {
      dialect: 'postgres',
      name: 'review_tasks',
      hasTombstones: false,
      keepsVersions: false,
      deletionsName: 'deleted_reviews',
    })
    const columns = [...bucketStatement(table, scope, []).matchAll(/(?:loaded|deleted)\."\w+"/g)].map(([name]) => name)
    const names = ['loaded."reviewId"', 'loaded."reviewModifiedTime"', 'deleted."id"', 'deleted."modifiedTime"']
    const expected = loader === 'pyairbyte' ? names.map((name) => name.toLowerCase()) : names
    expect([...new Set(columns)].sort()).toEqual([...expected].sort())
  })
})
