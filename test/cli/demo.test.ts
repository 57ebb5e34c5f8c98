import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { runProgram } from '../support/program'

const folder = mkdtempSync(join(tmpdir(), 'demo-'))
afterAll(() => rmSync(folder, { recursive: true }))

it('feedback demo leaves one file in the folder, and its last line names the report elsewhere', async () => {
  const [cwd, temporary] = ['work', 'temporary'].map((name) => join(folder, name))
  for (const place of [cwd, temporary]) mkdirSync(String(place))
  const { status, stdout, stderr } = await runProgram('feedback', ['demo', '--reviews', '300'], {
    cwd: String(cwd),
    env: { TMPDIR: String(temporary) },
  })
  expect([status, stderr]).toEqual([0, ''])
  expect(readdirSync(String(cwd))).toEqual(['feedback-demo.duckdb'])
  const report = /\S+\.html$/.exec(stdout.trimEnd().split('\n').at(-1) ?? '')?.[0] ?? ''
  expect(dirname(dirname(report))).toBe(temporary)
  expect(readFileSync(report, 'utf8')).toContain('</html>')
  expect(stdout.match(/(\d\d) of \1 checks hold/g)).toHaveLength(2)
}, 60_000)
