import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { reportCommand } from '../../connector/cli/report'
import { openDatabase } from '../../connector/snapshot/store/database'
import { closeSnapshot, openSnapshot } from '../../connector/snapshot/store/file'
import { fillReviews } from '../support/report-reviews'
import { runCommand } from '../support/run-command'

/** The cells of each row, with quotes taken off. */
const parseCsv = (text: string): ReadonlyArray<ReadonlyArray<string>> => {
  const rows: Array<Array<string>> = [[]]
  for (const [, quoted, plain = '', end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\n]*))(,|\n)/g)) {
    rows.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain)
    if (end === '\n') rows.push([])
  }
  return rows.slice(0, -1)
}

describe('feedback report', () => {
  let folder = ''
  let db = ''
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'report-verb-'))
    db = join(folder, 'reviews.duckdb')
    const opened = await openSnapshot(db)()
    if (opened._tag === 'Left') throw new Error(opened.left.message)
    await fillReviews(opened.right)
    await closeSnapshot(opened.right)
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  it('writes the page over an older file, and no other file', async () => {
    const out = join(folder, 'report.html')
    for (const _ of [1, 2])
      expect(await runCommand(reportCommand, ['--db', db, '--out', out])).toEqual({
        status: 0,
        stdout: `${out} is written.\n`,
        stderr: '',
      })
    expect(readFileSync(out, 'utf8')).toMatch(/^<!doctype html>[\s\S]*<\/html>\n$/)
    expect(readdirSync(folder).sort()).toEqual(['report.html', 'reviews.duckdb'])
    expect(readFileSync(out, 'utf8')).toContain('<h1>Feedback in December 2025</h1>')
  })

  it('prints the numbers as JSON', async () => {
    const { status, stdout } = await runCommand(reportCommand, ['--db', db, '--json'])
    expect(status).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ file: 'reviews.duckdb', month: '2025-12', data: { reviews: 500 } })
  })

  it('writes the format that the ending of the file names', async () => {
    const begins = {
      html: '<!doctype html>',
      HTM: '<!doctype html>',
      month: '<!doctype html>',
      md: '# Feedback in December 2025',
      markdown: '# Feedback in December 2025',
      csv: '\ufeffsection,key,name,metric,value,previous,change,p,mark',
      json: '{',
    }
    for (const [format, begin] of Object.entries(begins)) {
      const out = join(folder, `out.${format}`)
      await runCommand(reportCommand, ['--db', db, '--out', out])
      expect(readFileSync(out, 'utf8').startsWith(begin)).toBe(true)
      rmSync(out)
    }
  })

  it('prints one tidy table as CSV, in which no text is a formula', async () => {
    const regions = join(folder, 'regions.csv')
    writeFileSync(regions, 'location_id,region\n1,"=HYPERLINK(""x"")"\n2,@South\n')
    const { stdout, stderr } = await runCommand(reportCommand, ['--db', db, '--format', 'csv', '--regions', regions])
    rmSync(regions)
    expect(stderr).toBe('')
    const rows = parseCsv(stdout)
    expect(new Set(rows.map((cells) => cells.length))).toEqual(new Set([9]))
    const texts = rows.flatMap((cells) => cells.slice(0, 4))
    expect(texts.filter((cell) => /^[=+\-@\t\r]/.test(cell))).toEqual([])
    expect(texts).toContain(`'=HYPERLINK("x")`)
    const numbers = rows.slice(1).filter(([section]) => section === 'all')
    expect(numbers.length).toBeGreaterThan(15)
    expect(numbers.flatMap((cells) => cells.slice(4, 8)).filter((cell) => Number.isNaN(Number(cell)))).toEqual([])
    const json = JSON.parse((await runCommand(reportCommand, ['--db', db, '--json'])).stdout)
    const { value, previous, change } = json.figures.reviews
    expect(numbers.find(([, , , metric]) => metric === 'reviews')?.slice(4, 7)).toEqual(
      [value, previous, change].map(String),
    )
  })

  it('escapes what Markdown would take for markup', async () => {
    const { stdout } = await runCommand(reportCommand, ['--db', db, '--format', 'md', '--with-text'])
    expect(stdout).not.toMatch(/(?<!\\)<(script|img)/)
    expect(stdout).toMatch(/\| Review \| Why \| Location \| Region \| Owner \| Age \| Text \|\n\| --- \| --- /)
    const columns = [...stdout.matchAll(/^\|.*$/gm)].map(([line]) => line.replaceAll(/\\./g, '').split('|').length)
    expect(Math.min(...columns)).toBeGreaterThan(4)
  })

  it.each<[string, ReadonlyArray<string>, number, string]>([
    ['a malformed month', ['--month', '2026-13'], 2, '--month must be a month such as 2026-10, not 2026-13.'],
    ['a month in the future', ['--month', '9999-01'], 2, '--month 9999-01 is in the future: it is '],
    [
      'a month without reviews',
      ['--month', '2019-01'],
      0,
      'No review of this file was mentioned in January 2019. It has reviews from March 2024 to May 2026.',
    ],
    [
      'an unknown format',
      ['--format', 'cvs'],
      2,
      '--format must be one of html, md, json, csv, not cvs. Did you mean csv?',
    ],
    ['two formats', ['--format', 'csv', '--json'], 2, '--json prints JSON, but --format says csv.'],
    [
      'a file that the page would not open in',
      ['--out', '/tmp/none/report.PDF'],
      2,
      'For a PDF, print the page from a browser',
    ],
    ['a page without a file', ['--format', 'html'], 2, 'Give --out FILE'],
    [
      'a missing regions file',
      ['--json', '--regions', '/nowhere/r.csv'],
      1,
      '/nowhere/r.csv cannot be read (ENOENT). Check the path.',
    ],
  ])('says what is wrong with %s', async (_case, args, status, message) => {
    const format = ['--format', '--json', '--out'].some((name) => args.includes(name)) ? [] : ['--format', 'md']
    const result = await runCommand(reportCommand, ['--db', db, ...args, ...format])
    expect([result.status, result.stderr.includes(message)], result.stderr).toEqual([status, true])
  })

  it('names the locations of the regions file that no review has', async () => {
    const regions = join(folder, 'regions.csv')
    writeFileSync(regions, 'location_id,location_name,region\n1,,North\n99,,North\n,No such place,South\n')
    const { status, stderr, stdout } = await runCommand(reportCommand, [
      '--db',
      db,
      '--format',
      'md',
      '--regions',
      regions,
    ])
    rmSync(regions)
    expect([status, stderr]).toEqual([
      0,
      'The regions file names the location 99, which no review has.\nThe ' +
        'regions file names the location "No such place", which no review has.\n',
    ])
    expect(stdout).toContain('## Regions')
  })

  it('needs a file to write to', async () => {
    expect(await runCommand(reportCommand, ['--db', db])).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('--out FILE'),
    })
  })

  it('names the file that cannot be written, and leaves no part of it', async () => {
    const out = join(folder, 'nowhere', 'report.html')
    const { status, stderr } = await runCommand(reportCommand, ['--db', db, '--out', out])
    expect(status).toBe(1)
    expect(stderr).toContain(`${out} cannot be written.`)
    expect(existsSync(join(folder, 'nowhere'))).toBe(false)
  })

  it('writes the page of a wrong snapshot too, and says that a check fails', async () => {
    const opened = await openDatabase(db)()
    if (opened._tag === 'Left') throw new Error(opened.left.message)
    await opened.right.run('UPDATE reviews SET rating = 9 WHERE id = 1000')
    opened.right.close()
    const out = join(folder, 'broken.html')
    const { status, stderr } = await runCommand(reportCommand, ['--db', db, '--out', out])
    expect(status).toBe(0)
    expect(stderr).toContain('The check "ratings" fails')
    expect(readFileSync(out, 'utf8')).toContain('id 1000 has rating 9')
  })
})
