import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pythonProgram, runShellOrThrow } from '../interop/shell'
import { type LoadedService, loadChangingService, loadedStreams } from './loads'
import { createProject, type Project } from './project'

let service: LoadedService
let project: Project
beforeAll(async () => {
  service = await loadChangingService(300, ['snapshot', 'meltano'], [...loadedStreams, 'sync_audit'])
  project = await createProject(service.sandbox, service.postgres, service.files.path)
  await project.runSection('Install')
  // The server of the test is not in UTC. Directly under `vars:`, so that tests of the project itself see it.
  const file = join(service.files.path, 'dbt_project.yml')
  writeFileSync(file, `${readFileSync(file, 'utf8')}  feedback_naive_time_zone: Asia/Kolkata\n`)
  const profiles = /cat > profiles\.yml <<'EOF'\n([\s\S]*?)EOF\n/.exec(
    readFileSync(join(__dirname, '..', '..', '..', 'docs', 'dbt.md'), 'utf8'),
  )
  writeFileSync(join(service.files.path, 'profiles.yml'), profiles?.[1] ?? '')
})
afterAll(() => service?.close())

const loaders = {
  warehouse: '{feedback_loader: meltano, feedback_schema: feedback}',
  snapshot: '{feedback_loader: snapshot, feedback_database: reviews, feedback_schema: main}',
} as const
type Target = keyof typeof loaders

/** Runs a test of the package; returns its verdict. */
const verdict = (target: Target, selected: string): Promise<string> =>
  project.dbt('test', '--select', selected, '--target', target, '--vars', loaders[target]).then(
    () => 'pass',
    (error: Error) => /FAIL \d+/.exec(error.message)?.[0] ?? error.message,
  )

/** Changes a table of a loader, as an accident after the load would. */
const change = async (target: Target, sql: string): Promise<unknown> =>
  target === 'warehouse'
    ? service.postgres.ask(sql.replaceAll('TABLE_OF.', 'feedback.'))
    : runShellOrThrow(
        pythonProgram('dbt', 'python'),
        [
          '-c',
          'import sys, duckdb; duckdb.connect(sys.argv[1]).execute(sys.argv[2])',
          service.loads.snapshot,
          sql.replaceAll('TABLE_OF.', ''),
        ],
        { cwd: service.files.path },
      )

/** Undoes a change: the table as it was. */
const withCopy = async (target: Target, table: string, body: () => Promise<void>): Promise<void> => {
  await change(target, `CREATE TABLE TABLE_OF.kept_rows AS SELECT * FROM TABLE_OF.${table}`)
  await body()
  await change(
    target,
    `DELETE FROM TABLE_OF.${table}; INSERT INTO TABLE_OF.${table} SELECT * FROM TABLE_OF.kept_rows; DROP TABLE TABLE_OF.kept_rows`,
  )
}

const extracted = { warehouse: '_sdc_extracted_at', snapshot: '_airbyte_extracted_at' } as const

describe.each(['warehouse', 'snapshot'] as const)('sync_is_complete in the %s', (target) => {
  it('passes after the loads, in which a second run replaced rows of the first', async () => {
    expect(await verdict(target, 'source:feedback.sync_audit')).toBe('pass')
  })

  const last = (table: string) => `(SELECT max("${extracted[target]}") FROM TABLE_OF.${table})`
  it.each([
    ['reviews', 'DELETE', 'id', 'id'],
    ['deleted_reviews', 'DELETE', 'id', 'id'],
    ['review_contents', 'DELETE', 'id', '"reviewId"'],
    ['reviews', 'STALE', 'id', '"modifiedTime"'],
  ])('finds what the last run sent and %s has lost: %s', async (table, damage, id, column) => {
    await withCopy(target, table, async () => {
      const which = `${id} = (SELECT min(${id}) FROM TABLE_OF.${table} WHERE "${extracted[target]}" = ${last(table)})`
      await change(
        target,
        damage === 'DELETE'
          ? `DELETE FROM TABLE_OF.${table} WHERE ${which}`
          : `UPDATE TABLE_OF.${table} SET ${column} = ${column} - INTERVAL '1 second' WHERE ${which}`,
      )
      expect(await verdict(target, 'source:feedback.sync_audit')).toBe('FAIL 1')
    })
    expect(await verdict(target, 'source:feedback.sync_audit')).toBe('pass')
  })

  it('does not miss what a run without a record has replaced', async () => {
    await withCopy(target, 'reviews', async () => {
      await change(
        target,
        `UPDATE TABLE_OF.reviews SET "${extracted[target]}" = "${extracted[target]}" + INTERVAL '1 hour' WHERE "${extracted[target]}" = ${last('reviews')}`,
      )
      expect(await verdict(target, 'source:feedback.sync_audit')).toBe('pass')
    })
  })
})

describe('feedback_equals_service', () => {
  it('passes over the tables of Meltano, as the page runs it', async () => {
    await project.runSection('Has everything arrived')
  })

  it.each([
    ['missing', 'DELETE FROM TABLE_OF.reviews WHERE id = ID'],
    ['stale', `UPDATE TABLE_OF.reviews SET "modifiedTime" = "modifiedTime" - INTERVAL '1 second' WHERE id = ID`],
    ['extra', 'UPDATE TABLE_OF.reviews SET id = 1 WHERE id = ID'],
  ])('finds what is %s', async (_kind, damage) => {
    const [id = ''] = service.postgres
      .ask(
        'SELECT max(id) FROM feedback.reviews r WHERE NOT EXISTS (SELECT 1 FROM feedback.deleted_reviews d WHERE d.id = r.id)',
      )
      .split('\n')
    await withCopy('warehouse', 'reviews', async () => {
      await change('warehouse', damage.replace('ID', id))
      expect(await verdict('warehouse', 'source:raw')).toMatch(/FAIL [12]/)
    })
    expect(await verdict('warehouse', 'source:raw')).toBe('pass')
  })
})
