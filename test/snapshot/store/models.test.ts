import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Snapshot } from '../../../connector/snapshot/store/database'
import { defaultModelVariables, readModels, renderModel } from '../../../connector/snapshot/store/models'
import { createModelViews } from '../../../connector/snapshot/store/views'
import { fillReviews } from '../../support/report-reviews'
import { openMemorySnapshot } from '../../support/snapshot-messages'

const variables = { ...defaultModelVariables, as_of: '2026-01-05T09:00:00.000Z', time_zone: 'Europe/Berlin' }
const render = (template: string) => renderModel(template, variables)

describe('renderModel', () => {
  it.each([
    [`{{ ref('reviews_current') }}`, '"reviews_current"'],
    ['{{ var("alert_score") }}', '1.5'],
    [`{{ feedback.as_of() }}`, `cast('2026-01-05T09:00:00.000Z' as timestamptz)`],
    [
      `{{ feedback.local_month('t') }}`,
      `cast(date_trunc('month', cast(t at time zone 'Europe/Berlin' as date)) as date)`,
    ],
    [`{{ feedback.as_text('a') ~ ' || ' ~ feedback.as_text("b") }}`, 'cast(a as varchar) || cast(b as varchar)'],
    [
      `{{ feedback.round_to(feedback.median('x'), 1) }}`,
      'cast(round(cast(quantile_cont(x, 0.5) as decimal(28, 9)), 1) as double)',
    ],
    [`{{ feedback.add_months('m', count=2) }}`, `cast(m + interval '1 month' * (2) as date)`],
    ['{# what it is #}select 1', 'select 1'],
  ])('%s is %s', (template, sql) => expect(render(template).sql).toBe(sql))

  it.each(['{% if true %}', '{{ adapter.dispatch("x") }}', `{{ ref('a') ref('b') }}`, '{{ + }}'])(
    'refuses %s',
    (template) => expect(() => render(template)).toThrow(/model/),
  )

  it('names what a model reads', () =>
    expect(render(`select * from {{ ref('a') }} join {{ ref('b') }} using (x), {{ ref('a') }}`).references).toEqual([
      'a',
      'b',
    ]))

  it('knows every macro of the dbt package that models may use', () => {
    const file = readFileSync(join(__dirname, '../../../dbt/macros/expressions.sql'), 'utf8')
    const names = [...file.matchAll(/{% macro (\w+)\(([^)]*)\)/g)].filter(([, name = '']) => !name.includes('__'))
    expect(names.length).toBeGreaterThan(10)
    for (const [, name, parameters = ''] of names)
      expect(() =>
        render(
          `{{ feedback.${name}(${parameters
            .split(',')
            .map(() => `'1'`)
            .join(', ')}) }}`,
        ),
      ).not.toThrow()
  })
})

describe('the models', () => {
  let snapshot: Snapshot
  beforeAll(async () => {
    snapshot = await openMemorySnapshot()
    await snapshot.db.giveAllMemory()
    await fillReviews(snapshot)
    await createModelViews(snapshot.db, { asOf: new Date('2026-07-01T00:00:00Z') })
  })
  afterAll(() => snapshot.db.close())

  it.each(readdirSync(join(__dirname, '../../../dbt/models/marts')).filter((file) => file.endsWith('.sql')))(
    '%s has rows',
    async (file) => {
      const name = file.slice(0, -'.sql'.length)
      const rows = Number(await snapshot.db.scalar(`SELECT count(*) FROM ${name}`))
      expect(rows > 0).toBe(name !== 'deleted_reviews_by_source')
    },
  )

  it('have their columns also where the file has no children, no tasks and no deletions', async () => {
    expect([...readModels().keys()].length).toBeGreaterThan(11)
    expect(await createModelViews((await openMemorySnapshot()).db)).toBe(false)
  })

  it('add up: each scope of a month has the reviews of all', async () => {
    expect(
      await snapshot.db.query(`
        SELECT month FROM scope_monthly GROUP BY month
        HAVING count(DISTINCT CASE WHEN scope = 'all' THEN reviews END) <> 1
          OR sum(CASE WHEN scope = 'location' THEN reviews ELSE 0 END)
            <> max(CASE WHEN scope = 'all' THEN reviews END)`),
    ).toEqual([])
  })

  it('list as an alert exactly what the variables say', async () => {
    const count = (sql: string) => snapshot.db.scalar(`SELECT count(*) FROM ${sql}`)
    expect(await count('critical_alerts WHERE is_overdue')).toBe(await count('review_tasks_open WHERE age_days >= 14'))
    await createModelViews(snapshot.db, {
      asOf: new Date('2026-07-01T00:00:00Z'),
      variables: { alert_open_days: 100_000 },
    })
    expect(await count('critical_alerts WHERE is_overdue')).toBe(0)
    expect(await count('critical_alerts WHERE is_low_score')).toBeGreaterThan(0)
  })
})
