import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { auditCommand } from '../../connector/cli/audit'
import { stateCommand } from '../../connector/cli/state'
import { syncCommand } from '../../connector/cli/sync'
import { type Sandbox, startSandbox } from '../../connector/sandbox/start'
import { docsFolder } from '../support/doc-blocks'
import { runCommand } from '../support/run-command'
import { reviewsConfig } from '../support/sandbox'
import { useDatabase } from '../support/snapshot-messages'

const folder = mkdtempSync(join(tmpdir(), 'proof-'))
const path = (name: string): string => join(folder, name)
const [config, db, state] = [path('config.json'), path('reviews.duckdb'), path('state.json')]
let sandbox: Sandbox

beforeAll(async () => {
  sandbox = await startSandbox({ reviews: 300, until: Date.UTC(2026, 9, 1) })
  writeFileSync(config, JSON.stringify(reviewsConfig(sandbox, { page_size: 10 })))
})
afterAll(async () => {
  await sandbox.close()
  rmSync(folder, { recursive: true })
})

type Answer = Readonly<Record<string, unknown>>

const ask = (sql: string): Promise<ReadonlyArray<Answer>> => useDatabase(db, 'change', ({ query }) => query(sql))

const run = async (command: Parameters<typeof runCommand>[0], ...args: ReadonlyArray<string>): Promise<string> => {
  const { status, stdout, stderr } = await runCommand(command, args)
  expect([status, status === 0 ? '' : stderr]).toEqual([0, ''])
  return stdout
}

const audit = (stream: string, ...args: ReadonlyArray<string>): Promise<string> =>
  run(
    auditCommand,
    ...['--config', config, '--stream', stream, '--table', stream, '--dialect', 'duckdb', '--loader', 'snapshot'],
    ...['--state', state, ...args],
  )

const sync = async (): Promise<ReadonlyArray<Answer>> => {
  const streams = 'deleted_reviews,reviews,review_contents'
  const printed = await run(syncCommand, '--config', config, '--db', db, '--select', streams, '--json')
  await run(stateCommand, 'export', '--db', db, '--out', state)
  return JSON.parse(printed)
}

/** The reviews that are damaged, from the sorted list of all. */
const damage = (rows: ReadonlyArray<{ readonly id: string; readonly time: string }>) => {
  const at = (position: number) => rows[position] ?? { id: '', time: '' }
  const [dropped, doubled, stale, one, other] = [at(40), at(80), at(120), at(160), at(200)]
  return [
    ['a row was lost', `DELETE FROM reviews WHERE id = ${dropped.id}`],
    ['a row came twice', `INSERT INTO reviews FROM reviews WHERE id = ${doubled.id}`],
    [
      'an older version stayed',
      `UPDATE reviews SET "modifiedTime" = "modifiedTime" - INTERVAL 1 DAY WHERE id = ${stale.id}`,
    ],
    ['a row that the service lacks', `INSERT INTO reviews (id, "modifiedTime") VALUES (7, '2026-01-01')`],
    [
      'two versions were swapped',
      `UPDATE reviews SET "modifiedTime" = CASE id WHEN ${one.id} THEN '${other.time}' ELSE '${one.time}' END ` +
        `WHERE id IN (${one.id}, ${other.id})`,
    ],
  ] as const
}

const list = (rows: ReadonlyArray<Answer>, columns: ReadonlyArray<string>): string =>
  rows.map((row) => `\`${columns.map((column) => String(row[column] ?? '')).join(',')}\``).join('<br>')

it('proof.md shows what each kind of damage is answered by, and that the repair heals it', async () => {
  await sync()
  const rows = await ask(
    `
      SELECT id::VARCHAR AS id, strftime("modifiedTime" AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%gZ') AS time
      FROM reviews
      ORDER BY id`,
  )
  const lines: string[] = []
  const damages = damage(rows as ReadonlyArray<{ readonly id: string; readonly time: string }>)
  await ask('CREATE TABLE whole AS FROM reviews')
  const [buckets, reviews] = [await audit('reviews'), await audit('reviews', '--buckets', '1', '--ids', '0')]
  expect([await ask(buckets), await ask(reviews)]).toEqual([[], []])
  for (const [what, sql] of damages) {
    await ask(sql)
    const [first, second] = [await ask(buckets), await ask(reviews)]
    expect(first.length).toBeGreaterThan(0)
    lines.push(
      `| ${what} | ${list(first, ['bucket', 'difference', 'expected_reviews', 'found_reviews'])} ` +
        `| ${list(second, ['id', 'difference', 'expected_version', 'found_version'])} |`,
    )
    await ask('DELETE FROM reviews; INSERT INTO reviews FROM whole')
  }
  for (const [, sql] of damages) await ask(sql)
  const named = await ask(reviews)
  writeFileSync(
    path('answer.json'),
    JSON.stringify(named, (_, value) => (typeof value === 'bigint' ? String(value) : value)),
  )
  await runCommand(auditCommand, [
    ...['--config', config, '--stream', 'reviews', '--table', 'reviews', '--dialect', 'duckdb', '--loader', 'snapshot'],
    ...['--state', state, '--repair', path('answer.json'), '--folder', path('repair')],
  ])
  const deletion = readFileSync(path('repair/delete.sql'), 'utf8')
  await ask(deletion)
  await run(stateCommand, 'import', '--db', db, '--state', path('repair/state.json'))
  const sent = Object.fromEntries((await sync()).map(({ stream, records }) => [stream, records]))
  expect([await ask(await audit('reviews')), await ask(await audit('review_contents'))]).toEqual([[], []])
  expect(sent).toEqual({ deleted_reviews: 0, reviews: damages.length, review_contents: 0 })
  const section = [
    '| what happened | the statement: bucket, difference, expected and found reviews ' +
      `| \`--ids\`: id, difference, expected and found version |`,
    '| --- | --- | --- |',
    ...lines,
    '',
    `With all of them at once, \`--repair\` writes this \`delete.sql\`. The next run from its state sends ` +
      `${sent.reviews} reviews, and after it`,
    'the statements have no rows.',
    '',
    '```sql',
    deletion.trim(),
    '```',
  ].join('\n')
  const page = readFileSync(join(docsFolder, 'proof.md'), 'utf8')
  const [start, end] = ['<!-- made by test/docs/proof.long.test.ts -->\n', '\n<!-- end -->']
  expect(page).toContain(start)
  const [before = '', rest = ''] = page.split(start)
  const text = `${before}${start}${section}${end}${rest.slice(rest.indexOf(end) + end.length)}`
  await expect(text).toMatchFileSnapshot('../../docs/proof.md')
})
