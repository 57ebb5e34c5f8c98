import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(__dirname, '../..')
const files = [
  '.ci/run',
  ...readdirSync(join(root, 'test'), { recursive: true }).map((path) => `test/${path}`.replaceAll('\\', '/')),
]
/** The files that match a path, in which * stands for any part of a name. */
const matchFiles = (path: string): ReadonlyArray<string> => {
  const pattern = path.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '[^/]*')
  return files.filter((file) => new RegExp(`^${pattern}$`).test(file))
}

const page = readFileSync(join(root, 'docs/reliability.md'), 'utf8')

/** Rows of the tables of promises: the promise, and the test that holds it. */
const promiseRows = page
  .split('\n')
  .filter((line) => /^\| [^-]/.test(line))
  .map((line) => line.split(' | '))
  .filter(([first = '', ...more]) => more.length === 1 && !/^\| promise$/.test(first))
const namedPaths = [...page.matchAll(/`((?:test|bench)\/[^`\s]+|\.ci\/run)/g)].map(([, path = '']) => path)

describe('docs/reliability.md', () => {
  it('names a test or the benchmark for each promise', () => {
    expect(promiseRows.length).toBeGreaterThan(20)
    for (const [promise, held = ''] of promiseRows) expect(held, promise).toMatch(/`(test\/|npm run bench)/)
  })

  it.each([...new Set(namedPaths)])('names %s, which exists and tests', (path) => {
    const found = matchFiles(path)
    expect(found).not.toEqual([])
    for (const one of found) {
      const file = join(root, one)
      if (/\/run$|\.sh$/.test(one)) expect(statSync(file).mode & 0o111, one).not.toBe(0)
      else expect(readFileSync(file, 'utf8'), one).toMatch(/\b(it|test)(\.[\w.]+)*[(<]/)
    }
  })
})

describe.each(['airbyte', 'docker', 'interop', 'meltano'])('docs/%s.md', (name) => {
  const text = readFileSync(join(root, `docs/${name}.md`), 'utf8')
  const tests = [...text.matchAll(/`(test\/[^`\s]+\.(?:test|client)\.ts)`/g)].map(([, path = '']) => path)

  it('names tests that exist for its claims', () => {
    expect(tests.length).toBeGreaterThan(3)
    for (const path of tests) expect([path, matchFiles(path)]).toEqual([path, [path]])
  })
})

it('docs/interop.md names the test of each client, and the day of what was tried by hand', () => {
  const text = readFileSync(join(root, 'docs/interop.md'), 'utf8')
  const rows = text.split('\n').filter((line) => /^\| (?!client|---)/.test(line))
  expect(rows.length).toBeGreaterThan(8)
  for (const row of rows) expect(row).toMatch(/\| `test\/[^`]+\.(test|client)\.ts` \|$/)
  for (const [, rest = ''] of text.matchAll(/^By hand(.{0,20})/gm)) expect(rest).toMatch(/^, on \d{4}-\d{2}-\d{2}/)
})

it('.ci/run and .ci/weekly run each part of test/slow/run', () => {
  const ci = ['run', 'weekly'].map((name) => readFileSync(join(root, '.ci', name), 'utf8')).join('\n')
  const parts = [...readFileSync(join(root, 'test/slow/run'), 'utf8').matchAll(/^# {3}(\w+)/gm)].map(
    ([, part = '']) => part,
  )
  expect(parts.length).toBeGreaterThan(5)
  for (const part of parts) expect(ci).toContain(`test/slow/run ${part}`)
})

it('test/slow/run published leaves out only what test/slow/one-kind.txt names, with a reason', () => {
  const exceptions = readFileSync(join(root, 'test/slow/one-kind.txt'), 'utf8').trim().split('\n')
  for (const line of exceptions) expect(line).toMatch(/^test\/\S+\.test\.ts \w+ .{20}/)
  const ofOneKind = matchFiles('test/*/*.test.ts')
    .concat(matchFiles('test/*/*/*.test.ts'))
    .filter((path) => /^test\/(acceptance|cli|interop|runtime|sinks|snapshot|streams)\//.test(path))
    .filter((path) =>
      /import \{[^}]*\bstartSandbox\b[^}]*\} from .[./]*connector/.test(readFileSync(join(root, path), 'utf8')),
    )
  expect(ofOneKind.sort()).toEqual(exceptions.map((line) => line.split(' ')[0]).sort())
})
