import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { personConventions } from '../../connector/cdk/program/exit'
import { queryCommand } from '../../connector/cli/query'
import { syncCommand } from '../../connector/cli/sync'
import { type Sandbox, startSandbox } from '../../connector/sandbox/start'
import { type Question, questionFilters, questions } from '../../connector/snapshot/questions'
import { runCommand } from '../support/run-command'
import { reviewsConfig } from '../support/sandbox'
import { withoutAges } from '../support/scheduling'

const folder = mkdtempSync(join(tmpdir(), 'questions-'))
const db = join(folder, 'reviews.duckdb')
const regions = join(folder, 'regions.csv')
let sandbox: Sandbox

/** A review as the service sends it: what the questions look at. */
type RawReview = {
  readonly id: number
  readonly mentionTime?: string
  readonly rating?: number
  readonly reviewScore?: number
  readonly location?: { readonly id: number; readonly name: string }
  readonly source?: { readonly id: number; readonly name: string }
  readonly taskDetails?: { readonly status?: string; readonly ownerName?: string; readonly ownerEmail?: string }
  /** It arrives by either name. */
  readonly engagement?: ReadonlyArray<{ readonly engagementTime?: string }>
  readonly engagements?: ReadonlyArray<{ readonly engagementTime?: string }>
}
let reviews: ReadonlyArray<RawReview>

const writeConfig = (service: Sandbox): string => {
  const path = join(folder, 'config.json')
  writeFileSync(path, JSON.stringify(reviewsConfig(service)))
  return path
}

beforeAll(async () => {
  sandbox = await startSandbox({ reviews: 400 })
  expect((await runCommand(syncCommand, ['--config', writeConfig(sandbox), '--db', db])).status).toBe(0)
  reviews = (await sandbox.truth()).reviews.map(({ json }) => JSON.parse(json))
  const ids = [...new Set(reviews.flatMap(({ location }) => (location === undefined ? [] : [location.id])))]
  const lines = ids
    .filter((id) => id % 3 !== 0)
    .map((id) => `${id},${id % 3 === 1 ? 'North' : 'South "one"'.replaceAll('"', '""')}`)
  writeFileSync(regions, `location_id,region\n${lines.map((line) => line.replace(/,(.*)/, ',"$1"')).join('\n')}\n`)
})
afterAll(async () => {
  await sandbox.close()
  rmSync(folder, { recursive: true })
})

const regionOf = ({ location }: RawReview): string =>
  location === undefined || location.id % 3 === 0 ? '(unknown)' : location.id % 3 === 1 ? 'North' : 'South "one"'
const isOpen = ({ taskDetails }: RawReview): boolean =>
  taskDetails !== undefined && taskDetails !== null && taskDetails.status?.toLowerCase() !== 'completed'
const isAnswered = ({ engagement, engagements }: RawReview): boolean =>
  (engagement ?? engagements ?? []).some(({ engagementTime }) => engagementTime)

type Row = Readonly<Record<string, unknown>>
const ask = async (...args: ReadonlyArray<string>): Promise<ReadonlyArray<Row>> => {
  const { status, stdout, stderr } = await runCommand(queryCommand, ['--db', db, '--format', 'json', ...args])
  expect([status, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}
const groupCounts = <A>(items: ReadonlyArray<A>, keyOf: (item: A) => string): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {}
  for (const item of items) counts[keyOf(item)] = (counts[keyOf(item)] ?? 0) + 1
  return counts
}
const sum = (rows: ReadonlyArray<Row>, column: string): number =>
  rows.reduce((total, row) => total + Number(row[column]), 0)

describe('the list', () => {
  it('has a line for each question, models and at least 12 more, and needs no file', async () => {
    const { status, stdout } = await runCommand(queryCommand, ['--list'])
    expect(status).toBe(0)
    const escape = (text: string) => text.replaceAll(/[()*]/g, '.')
    for (const { name, description, filters, example } of questions) {
      const lines = [
        `  ${name} +${escape(description)}`,
        ...(filters.length === 0 ? [] : [` +${filters.map((each) => `--${each}`).join(' ')}`]),
        ...(example === undefined ? [] : [` +feedback query --db FILE ${escape(example)}`]),
      ]
      expect(stdout).toMatch(new RegExp(`^${lines.join('\\n')}$`, 'm'))
    }
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThan(132)
    expect(questions.filter(({ name, view }) => name !== view).length).toBeGreaterThanOrEqual(15)
    expect(new Set(questions.map(({ name }) => name.replaceAll('-', '_'))).size).toBe(questions.length)
    const { stdout: json } = await runCommand(queryCommand, ['--list', '--json'])
    expect(JSON.parse(json)).toHaveLength(questions.length)
  })

  it('has every question that the help asks', () => {
    const examples = (queryCommand.examples ?? []).flatMap((line) => /--db \S+ ([a-z]\S*)/.exec(line)?.[1] ?? [])
    expect(examples.length).toBeGreaterThan(3)
    const names = questions.map(({ name }) => name)
    expect(examples.filter((name) => !names.includes(name))).toEqual([])
  })
})

const filterValues = {
  region: '(unknown)',
  location: '1003',
  source: 'Google',
  provider: '500001',
  owner: 'nobody',
  month: '2026-01',
} as const

describe('each question', () => {
  it.each(questions.map((question) => [question.name, question] as const))(
    '%s is answered, with its filters too',
    async (name, { filters }: Question) => {
      const all = await ask(name)
      const { status, stdout } = await runCommand(queryCommand, [
        ...['--db', db, '--json', name],
        ...filters.flatMap((filter) => [`--${filter}`, filterValues[filter]]),
      ])
      expect(status).toBe(0)
      expect(stdout.split('\n').length - 1).toBeLessThanOrEqual(Math.max(all.length, 50))
      for (const filter of questionFilters.filter((each) => !filters.includes(each)))
        expect(
          await runCommand(queryCommand, ['--db', db, name, `--${filter}`, filterValues[filter]], {
            fail: personConventions.reportFailure,
          }),
        ).toMatchObject({ status: 2, stderr: expect.stringContaining(`has no filter --${filter}`) })
    },
  )

  it('review_tasks_open leaves the rows that have the value of a filter', async () => {
    const open = withoutAges(await ask('review_tasks_open')) as ReadonlyArray<Row>
    for (const filter of ['source', 'location', 'month'] as const) {
      const column = filter === 'source' ? 'source_name' : filter === 'location' ? 'location_id' : 'mention_time'
      expect(withoutAges(await ask('review_tasks_open', `--${filter}`, filterValues[filter]))).toEqual(
        open.filter((row) => String(row[column]).startsWith(filterValues[filter])),
      )
    }
  })
})

describe('the answers are those of a count over the reviews themselves', () => {
  it('task-ageing', async () => {
    const rows = await ask('task-ageing', '--regions', regions)
    expect(Object.fromEntries(rows.map(({ region, open_tasks }) => [region, open_tasks]))).toEqual(
      groupCounts(reviews.filter(isOpen), regionOf),
    )
    const bands = ['days_0_to_2', 'days_3_to_6', 'days_7_to_13', 'days_14_to_29', 'days_30_and_more']
    for (const row of rows) expect(bands.reduce((total, band) => total + Number(row[band]), 0)).toBe(row.open_tasks)
    const ages = reviews
      .filter(isOpen)
      .map(({ mentionTime }) => Math.floor((Date.now() - Date.parse(mentionTime ?? '')) / 86_400_000))
    expect(sum(rows, 'days_30_and_more')).toBe(ages.filter((age) => age >= 30).length)
    expect(Math.max(...rows.map(({ oldest_days }) => Number(oldest_days)))).toBe(Math.max(...ages))
    for (const region of ['North', 'south "ONE"', '(unknown)'])
      expect(await ask('task-ageing', '--regions', regions, '--region', region)).toEqual(
        rows.filter((row) => String(row.region).toLowerCase() === region.toLowerCase()),
      )
  })

  it('owner-backlog, unowned-tasks and oldest-tasks', async () => {
    const open = reviews.filter(isOpen)
    const owned = open.filter(({ taskDetails }) => taskDetails?.ownerName || taskDetails?.ownerEmail)
    const backlog = await ask('owner-backlog')
    expect(sum(backlog, 'open_tasks')).toBe(open.length)
    expect(
      Object.fromEntries(
        backlog
          .filter(({ owner_email }) => owner_email)
          .map(({ owner_email, open_tasks }) => [owner_email, open_tasks]),
      ),
    ).toEqual(groupCounts(owned, ({ taskDetails }) => taskDetails?.ownerEmail ?? ''))
    expect(await ask('unowned-tasks')).toHaveLength(open.length - owned.length)
    const oldest = (await ask('oldest-tasks')).map(({ age_days }) => Number(age_days))
    expect(oldest).toHaveLength(Math.min(50, open.length))
    expect(oldest).toEqual([...oldest].sort((a, b) => b - a))
  })

  it('nps-by-location, of the last month that was over when the reviews were read', async () => {
    const ofLocations = "SELECT DISTINCT month FROM nps_monthly WHERE scope = 'location'"
    const months = (await ask(ofLocations)).map(({ month }) => String(month).slice(0, 7)).sort()
    const newest = months.at(-1) ?? ''
    const over = months.filter((month) => month < new Date().toISOString().slice(0, 7))
    const asked = async (...args: ReadonlyArray<string>) => [
      ...new Set((await ask('nps-by-location', ...args)).map(({ month }) => String(month).slice(0, 7))),
    ]
    expect(await asked()).toEqual(over.slice(-1))
    expect(await asked('--month', newest)).toEqual([newest])
  })

  it('unanswered-negatives, of one source and month too', async () => {
    const negative = reviews.filter((review) => (review.reviewScore ?? 5) < 2.5 && !isAnswered(review))
    const idsOf = (rows: ReadonlyArray<{ readonly id: number }>) => rows.map(({ id }) => id).sort((a, b) => a - b)
    const found = async (...args: ReadonlyArray<string>) =>
      (await ask('unanswered-negatives', ...args)).map(({ review_id }) => Number(review_id)).sort((a, b) => a - b)
    expect(await found()).toEqual(idsOf(negative))
    const google = negative.filter(({ source }) => source?.name === 'Google')
    expect(google.length).toBeGreaterThan(0)
    expect(await found('--source', 'google')).toEqual(idsOf(google))
    const month = google[0]?.mentionTime?.slice(0, 7) ?? ''
    expect(await found('--source', String(google[0]?.source?.id), '--month', month)).toEqual(
      idsOf(google.filter(({ mentionTime }) => mentionTime?.startsWith(month))),
    )
  })

  it('locations-without-region', async () => {
    const rows = await ask('locations-without-region', '--regions', regions)
    const unnamed = reviews.filter((review) => review.location && regionOf(review) === '(unknown)')
    expect(Object.fromEntries(rows.map(({ location_id, reviews: count }) => [location_id, count]))).toEqual(
      groupCounts(unnamed, ({ location }) => String(location?.id)),
    )
    expect(sum(rows, 'open_tasks')).toBe(unnamed.filter(isOpen).length)
    const everyone = await ask('locations-without-region')
    expect(sum(everyone, 'reviews')).toBe(reviews.filter(({ location }) => location).length)
    const every = join(folder, 'every.csv')
    writeFileSync(every, `location_id,region\n${everyone.map(({ location_id }) => `${location_id},All`).join('\n')}\n`)
    expect(await ask('locations-without-region', '--regions', every)).toEqual([])
  })

  it('recent-deletions', async () => {
    const rows = await ask('recent-deletions')
    const { deleted } = await sandbox.truth()
    const months = groupCounts(deleted, ({ modifiedTime }) => modifiedTime.slice(0, 7))
    const newest = Object.keys(months).sort().reverse().slice(0, 12)
    expect(
      Object.fromEntries(rows.map(({ month, deleted_in_month }) => [String(month).slice(0, 7), deleted_in_month])),
    ).toEqual(Object.fromEntries(newest.map((month) => [month, months[month]])))
    expect([...new Set(rows.map(({ month }) => String(month).slice(0, 7)))]).toEqual(newest)
  })

  it('changes-this-month', async () => {
    const countOf = (month: string) => reviews.filter(({ mentionTime }) => mentionTime?.startsWith(month)).length
    const monthBefore = (month: string) =>
      new Date(Date.UTC(Number(month.slice(0, 4)), Number(month.slice(5)) - 2)).toISOString().slice(0, 7)
    const newest =
      reviews
        .flatMap(({ mentionTime }) => mentionTime?.slice(0, 7) ?? [])
        .sort()
        .at(-1) ?? ''
    for (const [month, ...args] of [[newest], ['2026-01', '--month', '2026-01']] as const) {
      const rows = await ask('changes-this-month', ...args)
      const all = rows.find(({ scope, metric }) => scope === 'all' && metric === 'reviews')
      const counts = [countOf(month), countOf(monthBefore(month))]
      // What has not changed is not listed.
      expect(all && [all.value, all.month_before]).toEqual(counts[0] === counts[1] ? undefined : counts)
      expect(
        rows.every(
          ({ change, value, month_before }) => Math.abs(Number(value) - Number(month_before) - Number(change)) < 0.01,
        ),
      ).toBe(true)
      expect(new Set([...rows.map(({ scope }) => scope), 'all'])).toEqual(new Set(['all', 'region', 'source']))
    }
  })

  it('source-mix', async () => {
    const rows = await ask('source-mix')
    expect(Object.fromEntries(rows.map(({ source_name, reviews: count }) => [source_name, count]))).toEqual(
      groupCounts(reviews, ({ source }) => source?.name ?? 'null'),
    )
  })

  it('alert-reasons and critical_alerts', async () => {
    const dayMs = 86_400_000
    const isOverdue = (review: RawReview) =>
      isOpen(review) && Date.now() - Date.parse(review.mentionTime ?? '') >= 14 * dayMs
    const isClosed = ({ taskDetails }: RawReview) => taskDetails?.status?.toLowerCase() === 'completed'
    const isLow = (review: RawReview) => (review.reviewScore ?? 5) < 1.5 && !isClosed(review)
    const rows = await ask('alert-reasons', '--regions', regions)
    expect([sum(rows, 'overdue'), sum(rows, 'low_score')]).toEqual([
      reviews.filter(isOverdue).length,
      reviews.filter(isLow).length,
    ])
    const alerts = await ask('critical_alerts')
    expect(alerts).toHaveLength(sum(rows, 'alerts'))
    expect(alerts.length).toBeGreaterThanOrEqual(reviews.filter((review) => isOverdue(review) || isLow(review)).length)
    expect(Object.keys(alerts[0] ?? {}).filter((column) => /text|justification|comment/.test(column))).toEqual([])
  })
})

describe('a question', () => {
  it.each([
    [['task-agein'], 2, 'There is no question task-agein. Did you mean task-ageing?'],
    [['reviews'], 2, 'the rows of a table are "FROM reviews"'],
    [['task-ageing', '--month', '2026-13'], 2, '--month must be a month such as 2026-10'],
    [['FROM reviews', '--region', 'North'], 2, '--region needs a named question'],
    [['owner_scorecard', '--region', 'North'], 2, 'Its filters are --owner.'],
    [['--list', 'task-ageing'], 2, '--list takes no question'],
    [['task-ageing', '--regions', join(folder, 'none.csv')], 78, 'none.csv'],
    [['task-ageing', '--source', 'Gogle'], 0, 'No row of review_tasks_open has the source Gogle. Did you mean Google?'],
    [['task-ageing', '--source', "x' OR true --"], 0, "No row of review_tasks_open has the source x' OR true --."],
  ])('that is wrong is reported: %j', async (args, status, expected) => {
    const outcome = await runCommand(queryCommand, ['--db', db, ...args], { fail: personConventions.reportFailure })
    expect(outcome.status).toBe(status)
    expect(outcome.stderr).toContain(expected)
    expect(outcome.stdout).toBe(status === 0 ? 'No rows.\n' : '')
  })

  it('is found whatever its case and hyphens', async () => {
    expect(await ask('Task_Ageing')).toEqual(await ask('task-ageing'))
    expect(withoutAges(await ask('CRITICAL-ALERTS'))).toEqual(withoutAges(await ask('critical_alerts')))
  })

  it('is written as Parquet too', async () => {
    const out = join(folder, 'alerts.parquet')
    expect(
      await runCommand(queryCommand, ['--db', db, '--format', 'parquet', '--out', out, 'critical_alerts']),
    ).toMatchObject({ status: 0, stdout: '' })
  })

  it('of a service without reviews has an empty answer, and of a file without the stream a reason', async () => {
    const none = await startSandbox({ reviews: 0 })
    const empty = join(folder, 'empty.duckdb')
    const config = writeConfig(none)
    expect((await runCommand(syncCommand, ['--config', config, '--db', empty])).status).toBe(0)
    for (const name of ['critical_alerts', 'task-ageing', 'location-movers', 'source-mix', 'provider_scorecard'])
      expect([name, await runCommand(queryCommand, ['--db', empty, '--json', name])]).toEqual([
        name,
        { status: 0, stdout: '', stderr: '' },
      ])
    const other = join(folder, 'other.duckdb')
    await runCommand(syncCommand, ['--config', config, '--db', other, '--select', 'locations'])
    await none.close()
    const outcome = await runCommand(queryCommand, ['--db', other, 'critical_alerts'], {
      fail: personConventions.reportFailure,
    })
    expect(outcome).toMatchObject({ status: 78, stderr: expect.stringContaining('has no reviews') })
    expect((await runCommand(queryCommand, ['--db', other, 'FROM locations'])).status).toBe(0)
    for (const name of ['review_facts', 'Critical_Alerts', 'reviews_current', 'location_scorecard']) {
      const asked = await runCommand(queryCommand, ['--db', other, `SELECT count(*) FROM ${name}`], {
        fail: personConventions.reportFailure,
      })
      expect(asked.status).toBe(78)
      expect(asked.stderr).toContain(
        `There is no table or view ${name}. It is a view of the reviews, ` +
          'and the file has none yet: read the stream reviews into it first.',
      )
    }
  })
})
