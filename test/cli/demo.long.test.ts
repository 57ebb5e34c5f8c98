import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { runProgram } from '../support/program'
import { sandboxKind } from '../support/sandbox'

const cwd = mkdtempSync(join(tmpdir(), 'demo-'))
afterAll(() => rmSync(cwd, { recursive: true }))

/** Of the kind that the tests run against. */
const [like, kind] =
  sandboxKind === 'published'
    ? [['--full', '--like', 'published'], 'like published deployments']
    : [[], 'like the specification']

const numbers = (text: string | undefined) =>
  [...(text ?? '').matchAll(/\d[\d,]*/g)].map(([n]) => Number(n.replaceAll(',', '')))

it('feedback demo leaves a snapshot and a report, its numbers add up, and its queries run as they stand', async () => {
  const { status, stdout, stderr } = await runProgram('feedback', ['demo', '--reviews', '300', ...like], { cwd })
  // A run of more than a minute prints its progress, a stamped line a minute.
  expect([status, stderr.replaceAll(/^\d{4}-\d\d-\d\dT\S+ \w+: .*\n/gm, '')]).toEqual([0, ''])
  expect(readdirSync(cwd).sort()).toEqual(['feedback-demo.duckdb', 'feedback-demo.html'])
  expect(stdout.trimEnd().split('\n').at(-1)).toContain('feedback-demo.html')
  const report = readFileSync(join(cwd, 'feedback-demo.html'), 'utf8')
  expect(report).toContain('</html>')
  expect(report).toContain('Deleted reviews')
  expect(/^comments .*$/m.test(stdout)).toBe(like.some((option) => option === '--full'))
  expect(stdout).toMatch(new RegExp(`^A service with 300 reviews, ${kind}, listens at http`))
  expect(stdout.match(/(\d\d) of \1 checks hold/g)).toHaveLength(2)

  const line = (start: string) => stdout.split('\n').find((text) => text.startsWith(start))
  const [changed, deleted, both, arrived] = numbers(line('The service changes:'))
  const [modified, fresh, read, deletions, before, , , after] = numbers(line('To read:'))
  expect([Number(changed) - Number(both), arrived, deleted]).toEqual([modified, fresh, deletions])
  expect([Number(modified) + Number(fresh), Number(before) - Number(deleted) + Number(arrived)]).toEqual([read, after])
  const second = stdout.slice(stdout.indexOf('The second sync'))
  expect(numbers(/^reviews .*$/m.exec(second)?.[0])[0]).toBe(read)
  expect(numbers(/^deleted_reviews .*$/m.exec(second)?.[0])[0]).toBe(deletions)
  expect(second).toContain(`${after} reviews in the file, ${after} in the service`)

  const queries = stdout.split('\n').filter((text) => text.startsWith('  node '))
  expect(queries.length).toBeGreaterThan(1)
  for (const query of queries) {
    const table = execFileSync('sh', ['-c', query], { cwd, encoding: 'utf8' })
    expect(table.split('\n').length, query).toBeGreaterThan(2)
    if (query.includes('avg(rating)')) expect(query).toContain('FROM reviews_current')
  }
})

it('feedback demo refuses a kind that it does not know', async () => {
  const { status, stderr } = await runProgram('feedback', ['demo', '--like', 'other'], { cwd })
  expect([status, stderr]).toEqual([2, expect.stringContaining('--like is wrong: give specification or published')])
})
