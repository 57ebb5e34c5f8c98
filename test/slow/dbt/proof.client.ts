import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type LoadedService, loadChangingService, loadedStreams } from './loads'
import { createProject, type Project } from './project'

let service: LoadedService
let project: Project
beforeAll(async () => {
  service = await loadChangingService(300, ['snapshot', 'meltano', 'pyairbyte'], [...loadedStreams, 'sync_audit'])
  project = await createProject(service.sandbox, service.postgres, service.files.path)
  await project.runSection('Install')
  // The server of the test is not in UTC. Directly under `vars:`, so that tests of the project itself see it.
  const file = join(service.files.path, 'dbt_project.yml')
  writeFileSync(file, `${readFileSync(file, 'utf8')}  feedback_naive_time_zone: Asia/Kolkata\n`)
  const profiles = /cat > profiles\.yml <<'EOF'\n([\s\S]*?)EOF\n/.exec(
    readFileSync(join(__dirname, '..', '..', '..', 'docs', 'models.md'), 'utf8'),
  )
  writeFileSync(join(service.files.path, 'profiles.yml'), profiles?.[1] ?? '')
})
afterAll(() => service?.close())

/** Where each loader writes: a target of dbt, its variables, and the schema before a table. */
const loaders = {
  meltano: { target: 'warehouse', vars: '{feedback_loader: meltano, feedback_schema: feedback}', schema: 'feedback.' },
  // Its times are in UTC, but that of its loading is in the zone of the server.
  pyairbyte: {
    target: 'warehouse',
    vars: '{feedback_loader: pyairbyte, feedback_schema: pyairbyte}',
    schema: 'pyairbyte.',
  },
  snapshot: {
    target: 'snapshot',
    vars: '{feedback_loader: snapshot, feedback_database: reviews, feedback_schema: main}',
    schema: '',
  },
} as const
type Loader = keyof typeof loaders

/** Runs a test of the package; returns its verdict. */
const verdict = (loader: Loader, selected: string): Promise<string> =>
  project.dbt('test', '--select', selected, '--target', loaders[loader].target, '--vars', loaders[loader].vars).then(
    () => 'pass',
    (error: Error) => /FAIL \d+/.exec(error.message)?.[0] ?? error.message,
  )

/** Changes a table of a loader, as an accident after the load would. */
const change = async (loader: Loader, sql: string): Promise<unknown> =>
  loader !== 'snapshot'
    ? service.postgres.ask(sql.replaceAll('TABLE_OF.', loaders[loader].schema))
    : project.python(
        join(__dirname, 'execute.py'),
        [service.loads.snapshot, sql.replaceAll('TABLE_OF.', '')],
        ['duckdb'],
      )

/** Undoes a change: the table as it was. */
const withCopy = async (loader: Loader, table: string, body: () => Promise<void>): Promise<void> => {
  await change(loader, `CREATE TABLE TABLE_OF.kept_rows AS SELECT * FROM TABLE_OF.${table}`)
  await body()
  await change(
    loader,
    `DELETE FROM TABLE_OF.${table};
     INSERT INTO TABLE_OF.${table} SELECT * FROM TABLE_OF.kept_rows;
     DROP TABLE TABLE_OF.kept_rows`,
  )
}

const extractedColumns = {
  meltano: '_sdc_extracted_at',
  pyairbyte: '_airbyte_extracted_at',
  snapshot: '_airbyte_extracted_at',
} as const

describe.each(['meltano', 'pyairbyte', 'snapshot'] as const)('sync_is_complete in the tables of %s', (loader) => {
  const extracted = extractedColumns[loader]
  const column = (attribute: string): string => `"${loader === 'pyairbyte' ? attribute.toLowerCase() : attribute}"`

  it('passes after the loads, in which a second run replaced rows of the first', async () => {
    expect(await verdict(loader, 'source:feedback.sync_audit')).toBe('pass')
  })

  const last = (table: string) => `(SELECT max("${extracted}") FROM TABLE_OF.${table})`
  it.each([
    ['reviews', 'DELETE'],
    ['deleted_reviews', 'DELETE'],
    ['review_contents', 'DELETE'],
    ['reviews', 'STALE'],
  ])('finds what the last run sent and %s has lost: %s', async (table, damage) => {
    await withCopy(loader, table, async () => {
      const which = `id = (SELECT min(id) FROM TABLE_OF.${table} WHERE "${extracted}" = ${last(table)})`
      await change(
        loader,
        damage === 'DELETE'
          ? `DELETE FROM TABLE_OF.${table} WHERE ${which}`
          : `UPDATE TABLE_OF.${table}
             SET ${column('modifiedTime')} = ${column('modifiedTime')} - INTERVAL '1 second'
             WHERE ${which}`,
      )
      expect(await verdict(loader, 'source:feedback.sync_audit')).toBe('FAIL 1')
    })
  })

  it('passes again, and does not miss what a run without a record has replaced', async () => {
    expect(await verdict(loader, 'source:feedback.sync_audit')).toBe('pass')
    await withCopy(loader, 'reviews', async () => {
      await change(
        loader,
        `UPDATE TABLE_OF.reviews
         SET "${extracted}" = "${extracted}" + INTERVAL '1 hour'
         WHERE "${extracted}" = ${last('reviews')}`,
      )
      expect(await verdict(loader, 'source:feedback.sync_audit')).toBe('pass')
    })
  })

  describe('rows that came twice', () => {
    const ofLastRun = `"${extracted}" = ${last('reviews')}`
    const ofFirstRun = `"${extracted}" = ${last('reviews').replace('max', 'min')}`
    const twice = (condition: string): string =>
      `INSERT INTO TABLE_OF.reviews
       SELECT * FROM TABLE_OF.reviews WHERE id = (SELECT min(id) FROM TABLE_OF.reviews WHERE ${condition})`
    const sentAgain = (count: number): string =>
      `UPDATE TABLE_OF.sync_audit SET records = records + ${count} WHERE stream = 'reviews'`

    beforeAll(async () => {
      // Tables that merge have a primary key, which refuses them.
      await change(
        loader,
        `CREATE TABLE TABLE_OF.unkeyed AS SELECT * FROM TABLE_OF.reviews;
         DROP TABLE TABLE_OF.reviews CASCADE;
         ALTER TABLE TABLE_OF.unkeyed RENAME TO reviews`,
      )
    })

    it.each([
      ['of the last run', twice(ofLastRun), 0, 'FAIL 1'],
      ['of the last run, which sent one record again', twice(ofLastRun), 1, 'pass'],
      ['of the last run twice, which sent one record again', `${twice(ofLastRun)}; ${twice(ofLastRun)}`, 1, 'FAIL 1'],
      // As tables have them to which every run appends.
      ['of an earlier run', twice(ofFirstRun), 0, 'pass'],
    ])('%s: %s; sent again: %d: %s', async (_, sql, again, wanted) => {
      await withCopy(loader, 'reviews', async () => {
        await change(loader, `${sql}; ${sentAgain(again)}`)
        expect(await verdict(loader, 'source:feedback.sync_audit')).toBe(wanted)
        await change(loader, sentAgain(-again))
      })
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
        `SELECT max(id) FROM feedback.reviews r
         WHERE NOT EXISTS (SELECT 1 FROM feedback.deleted_reviews d WHERE d.id = r.id)`,
      )
      .split('\n')
    await withCopy('meltano', 'reviews', async () => {
      await change('meltano', damage.replace('ID', id))
      expect(await verdict('meltano', 'source:raw')).toMatch(/FAIL [12]/)
    })
  })

  it('passes again', async () => {
    expect(await verdict('meltano', 'source:raw')).toBe('pass')
  })
})
