import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(__dirname, '../..')
const page = readFileSync(join(root, 'docs/lossless-export.md'), 'utf8')
const listFiles = (folder: string): ReadonlyArray<string> => readdirSync(join(root, folder))

describe('docs/lossless-export.md', () => {
  it('names files that exist', () => {
    const named = [...page.matchAll(/`((?:connector|test)\/[\w./-]+)`/g)].map(([, path = '']) => path)
    expect(named.length).toBeGreaterThan(8)
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([])
  })

  it('lists each file of the scan once', () => {
    const section = page.slice(page.indexOf('## Where it is in the code'))
    const listed = [...section.matchAll(/^\| `([\w-]+\.ts)` \|/gm)].map(([, file = '']) => file)
    expect([...listed].sort()).toEqual([...listFiles('connector/export/scan')].sort())
  })

  it('names tests that exist', () => {
    const tests = listFiles('test/export/scan')
      .map((file) => readFileSync(join(root, 'test/export/scan', file), 'utf8'))
      .join('\n')
    const rows = page.slice(page.indexOf('| safeguard |'), page.indexOf('For some safeguards'))
    const names = [...rows.matchAll(/"([^"…]+?) ?…?"/g)].map(([, name = '']) => name)
    expect(names.length).toBeGreaterThan(8)
    expect(names.filter((name) => !tests.includes(name))).toEqual([])
  })
})
