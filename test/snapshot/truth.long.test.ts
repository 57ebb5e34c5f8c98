import { copyFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { runOrThrow } from '../../connector/cdk'
import { syncCommand } from '../../connector/cli/sync'
import { openDatabase } from '../../connector/snapshot/store/database'
import { streams } from '../../connector/streams/streams'
import { newTempPath, writeTempFile } from '../support/files'
import { runCommand } from '../support/run-command'
import { sandboxConfig, startTestSandbox } from '../support/sandbox'
import { compareWithTruth, comparedTables as tables } from '../support/truth'

const [data, snapshot] = [newTempPath('duckdb'), newTempPath('duckdb')]

beforeAll(async () => {
  const sandbox = await startTestSandbox({ reviews: 1500, db: data })
  const config = writeTempFile(sandboxConfig(sandbox))
  expect((await runCommand(syncCommand, ['--config', config, '--db', snapshot])).status).toBe(0)
  await sandbox.close()
})

const keyOf = (table: string): ReadonlyArray<string> =>
  (streams.find(({ name }) => name === table)?.primaryKey ?? []).map((name) => `"${name}"`)

/**
 * What the comparison counts after each of these statements, by table; without the tables that are as they are to be.
 */
const compareAfter = async (sql: (table: string) => string | Promise<string>) => {
  const path = newTempPath('duckdb')
  copyFileSync(snapshot, path)
  const db = await runOrThrow(openDatabase(path))
  for (const table of tables) await db.run(await sql(table))
  db.close()
  const differences = await compareWithTruth(data, path, 400)
  return Object.fromEntries(
    tables.map((table) => {
      const { missing, additional, different } = differences[table] ?? {}
      return [table, { missing, additional, different }]
    }),
  )
}

const all = <A>(value: A) => Object.fromEntries(tables.map((table) => [table, value]))
const nth = (table: string, n: number) => `(SELECT rowid FROM ${table} ORDER BY ${keyOf(table)} LIMIT 1 OFFSET ${n})`

const otherValues: Readonly<Record<string, (column: string) => string>> = {
  BIGINT: (column) => `coalesce(${column}, 0) + 1`,
  DOUBLE: (column) => `coalesce(${column}, 0) + 1e-9`,
  VARCHAR: (column) => `coalesce(${column}, '') || ' '`,
  JSON: (column) => `json_merge_patch(coalesce(${column}, '{}'), '{"other": 1}')`,
  'TIMESTAMP WITH TIME ZONE': (column) => `coalesce(${column}, now()) + INTERVAL 1 MILLISECOND`,
}

describe('the comparison with the truth', () => {
  it('finds nothing in what was read, however its JSON is written', async () => {
    const same = all({ missing: 0, additional: 0, different: 0 })
    expect(await compareAfter(() => 'SELECT 1')).toEqual(same)
    expect(
      await compareAfter((table) =>
        table === 'reviews' ? `UPDATE reviews SET contents = replace(contents::VARCHAR, '":', '" : ')` : 'SELECT 1',
      ),
    ).toEqual(same)
  })

  it('finds one cell of each column', async () => {
    const db = await runOrThrow(openDatabase(snapshot, { readOnly: true }))
    const cells = new Map<string, ReadonlyArray<{ readonly name: string; readonly type: string }>>()
    for (const table of tables) {
      const columns = await db.query(
        `SELECT column_name AS name, data_type AS type FROM duckdb_columns()
         WHERE table_name = '${table}' AND NOT starts_with(column_name, '_')`,
      )
      // A location, provider, source or category comes from whichever review named it last.
      const isCompared = (name: string) =>
        !keyOf(table).includes(`"${name}"`) && (name !== 'reviewModifiedTime' || table.startsWith('review_'))
      cells.set(
        table,
        columns
          .map(({ name, type }) => ({ name: String(name), type: String(type) }))
          .filter(({ name }) => isCompared(name)),
      )
    }
    db.close()
    const found = await compareAfter((table) =>
      (cells.get(table) ?? [])
        .map(
          ({ name, type }, n) =>
            `UPDATE ${table} SET "${name}" = ${otherValues[type]?.(`"${name}"`)} WHERE rowid = ${nth(table, n)}`,
        )
        .join('; '),
    )
    expect(found).toEqual(
      Object.fromEntries(
        [...cells].map(([table, { length }]) => [table, { missing: 0, additional: 0, different: length }]),
      ),
    )
    expect([...cells.values()].flat().length).toBeGreaterThan(40)
  })

  it('finds a row that is missing, one that is there twice, and both at once', async () => {
    const drop = (table: string) => `DELETE FROM ${table} WHERE rowid = ${nth(table, 0)}`
    const double = (table: string) => `INSERT INTO ${table} FROM ${table} WHERE rowid = ${nth(table, 1)}`
    expect(await compareAfter(drop)).toEqual(all({ missing: 1, additional: 0, different: 0 }))
    expect(await compareAfter(double)).toEqual(all({ missing: 0, additional: 1, different: 0 }))
    expect(await compareAfter((table) => `${double(table)}; ${drop(table)}`)).toEqual(
      all({ missing: 1, additional: 1, different: 0 }),
    )
  })

  it('finds a row of a review that there is not, and one of none', async () => {
    const copyAs = (table: string, id: string) =>
      `INSERT INTO ${table} SELECT * REPLACE (${id} AS ${keyOf(table)[0]}) FROM ${table} WHERE rowid = ${nth(table, 0)}`
    expect(
      await compareAfter((table) => copyAs(table, ['categories', 'questions'].includes(table) ? `'x'` : '1')),
    ).toEqual(all({ missing: 0, additional: 1, different: 0 }))
    expect(await compareAfter((table) => copyAs(table, 'NULL'))).toEqual(
      all({ missing: 0, additional: 1, different: 0 }),
    )
  })
})
