import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { reportCommand } from '../../connector/cli/query'
import { openDatabase } from '../../connector/snapshot/store/database'
import { closeSnapshot, openSnapshot } from '../../connector/snapshot/store/open'
import { fillReviews } from '../support/report-reviews'
import { runCommand } from '../support/run-command'

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
  })

  it('prints the numbers as JSON', async () => {
    const { status, stdout } = await runCommand(reportCommand, ['--db', db, '--json'])
    expect(status).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ file: 'reviews.duckdb', reviews: { reviews: 500 } })
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
