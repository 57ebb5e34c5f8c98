import { describe, expect, it } from 'vitest'
import { activateGeneration, finishRefresh } from '../../../connector/snapshot/load/generations'
import type { Database } from '../../../connector/snapshot/store/database'
import { listRows as list, useTables } from '../../support/snapshot-tables'

/** A database in memory with only the metadata tables, after these statements, for as long as `body` takes. */
const useMetadata = (sql: string, body: (db: Database) => Promise<void>): Promise<void> =>
  useTables([], async (db) => {
    await db.run(sql)
    await body(db)
  })

describe('a refresh ends', () => {
  const sql = `
    INSERT INTO _streams (stream, generation, refreshing) VALUES ('things', 1, true), ('others', 1, true);
    CREATE TABLE things AS SELECT n AS _airbyte_generation_id FROM range(5) AS r(n)`
  const things = { name: 'things', columns: [], history: false }
  const readStreams = (db: Database) => list(db, '_streams', 'stream', 'generation', 'refreshing')
  const readRows = (db: Database) => list(db, 'things', '_airbyte_generation_id')

  it('with the rows of older generations, in its stream alone', async () => {
    await useMetadata(sql, async (db) => {
      await finishRefresh(db, things, 2, [], 0)
      expect(await readStreams(db)).toEqual(['others 1 true', 'things 1 false'])
      expect(await readRows(db)).toEqual(['2', '3', '4'])
    })
  })

  it('in the generation that it makes the current one', async () => {
    await useMetadata(sql, async (db) => {
      await activateGeneration(db, things, 3, [], 0)
      expect(await readStreams(db)).toEqual(['others 1 true', 'things 3 false'])
      expect(await readRows(db)).toEqual(['3', '4'])
    })
  })
})
