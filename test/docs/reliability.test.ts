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
      else expect(readFileSync(file, 'utf8'), one).toMatch(/\b(it|test\w*)(\.[\w.]+)*[(<]/)
    }
  })
})

const pages = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'))

it.each(pages)('docs/%s names only tests that exist', (name) => {
  const text = readFileSync(join(root, 'docs', name), 'utf8')
  const tests = [...text.matchAll(/`(test\/[^`\s*]+\.(?:test|client)\.ts)`/g)].map(([, path = '']) => path)
  for (const path of tests) expect([path, matchFiles(path)]).toEqual([path, [path]])
})

it('docs/airbyte.md names the test of each client', () => {
  const text = readFileSync(join(root, 'docs/airbyte.md'), 'utf8').split('## Clients we test with')[1] ?? ''
  const rows = text.split('\n').filter((line) => /^\| (?!client|---)/.test(line))
  expect(rows.length).toBeGreaterThan(8)
  for (const row of rows) expect(row).toMatch(/\| `test\/[^`]+\.(test|client)\.ts` \|$/)
})

it('.ci/run and .ci/weekly run each part of test/slow/run, and its help names them', () => {
  const run = readFileSync(join(root, 'test/slow/run'), 'utf8')
  const cases = [...run.matchAll(/^ {2}([a-z0-9 |]+)\)(?: |$)/gm)].flatMap(([, names = '']) => names.split(' | '))
  expect(cases.length).toBeGreaterThan(10)
  expect([...run.matchAll(/^# {3}(\w+)/gm)].map(([, part = '']) => part).sort()).toEqual([...cases].sort())
  const weekly =
    /^all=\(([^)]*)\)/m
      .exec(readFileSync(join(root, '.ci/weekly'), 'utf8'))?.[1]
      ?.trim()
      .split(/\s+/) ?? []
  const each = readFileSync(join(root, '.ci/run'), 'utf8')
  expect(cases.filter((part) => !weekly.includes(part) && !each.includes(`test/slow/run ${part}`))).toEqual([])
})

describe('CONTRIBUTING.md', () => {
  const text = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8').replaceAll('\n   ', ' ')
  const commands = [...text.matchAll(/npx vitest(?: run)? ((?:test\/[\w./-]+ ?)+)/g)].map(([, paths = '']) =>
    paths.trim(),
  )

  it.each([...new Set(commands.flatMap((paths) => paths.split(' ')))])('runs %s, which `npm test` runs too', (path) => {
    expect(files.some((file) => file.startsWith(path) && file.endsWith('.test.ts'))).toBe(true)
    expect(path).not.toMatch(/^test\/slow/)
  })
})
